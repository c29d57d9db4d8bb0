from django.apps import AppConfig


class StandingConfig(AppConfig):
    name = "webapp.standing"
    label = "standing"
