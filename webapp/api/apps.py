"""The app of the API: what the window can do, for programs. On start it listens for members who go."""

from importlib import import_module

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "webapp.api"
    label = "api"
    verbose_name = "API"

    def ready(self) -> None:
        import_module("webapp.api.signals")
