from django.apps import AppConfig


class SchedulersConfig(AppConfig):
    """Trained schedulers and their trainings."""

    default_auto_field = "django.db.models.BigAutoField"
    name = "webapp.schedulers"
