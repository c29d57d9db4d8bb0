from django.apps import AppConfig


class ProfilingConfig(AppConfig):
    """Memory profiles of actors' functions."""

    default_auto_field = "django.db.models.BigAutoField"
    name = "webapp.profiling"
