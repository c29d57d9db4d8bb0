"""The app of experiment trackers."""

from django.apps import AppConfig


class TrackersConfig(AppConfig):
    """Settings of experiment trackers, and what became of sending runs there."""

    default_auto_field = "django.db.models.BigAutoField"
    name = "webapp.trackers"
