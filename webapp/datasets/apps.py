from django.apps import AppConfig


class DataSetsConfig(AppConfig):
    """Tables that people upload, and the data sets made of them."""

    default_auto_field = "django.db.models.BigAutoField"
    name = "webapp.datasets"
