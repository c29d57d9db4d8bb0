"""The app of the API. On start it connects the signal that revokes tokens of former members."""

from importlib import import_module

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "webapp.api"
    label = "api"
    verbose_name = "API"

    def ready(self) -> None:
        import_module("webapp.api.signals")
