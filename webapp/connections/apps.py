"""The connections app."""

from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "webapp.connections"
    label = "credentials"
    verbose_name = "Clouds"
