"""The credentials app."""

from django.apps import AppConfig


class CredentialsConfig(AppConfig):
    name = "webapp.connections"
    label = "credentials"
    verbose_name = "Clouds"
