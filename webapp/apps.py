"""The installation as a Django app: it has no models, only commands, and the Celery application that tasks bind to."""

from importlib import import_module

from django.apps import AppConfig


class WebappConfig(AppConfig):
    name = "webapp"
    verbose_name = "Starling"

    def ready(self) -> None:
        # Whoever sends a task must know the broker; without this, tasks would bind to a nameless default.
        import_module("webapp.celery")
