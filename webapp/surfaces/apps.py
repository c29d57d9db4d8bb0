from django.apps import AppConfig


class SurfacesConfig(AppConfig):
    """Reward surfaces around policies."""

    default_auto_field = "django.db.models.BigAutoField"
    name = "webapp.surfaces"
    label = "surfaces"
