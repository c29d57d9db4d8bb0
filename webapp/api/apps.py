"""The app of the API: what the window can do, for programs."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "webapp.api"
    label = "api"
    verbose_name = "API"
