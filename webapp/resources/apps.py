from django.apps import AppConfig


class StandingConfig(AppConfig):
    name = "webapp.resources"
    label = "standing"
