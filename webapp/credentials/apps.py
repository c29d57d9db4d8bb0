"""The credentials app."""

from django.apps import AppConfig


class CredentialsConfig(AppConfig):
    name = "webapp.credentials"
    label = "credentials"
    verbose_name = "Clouds"
