"""The installation as a Django app: it has no models, only commands, and the Celery application that tasks bind to."""

from importlib import import_module

from django.apps import AppConfig


class WebappConfig(AppConfig):
    name = "webapp"
    verbose_name = "Starling"

    def ready(self) -> None:
        import_module("webapp.database.schema")
        # Without this, tasks would bind to a default application that does not know the broker.
        import_module("webapp.celery")
