from django.apps import AppConfig


class ComparingConfig(AppConfig):
    name = "webapp.comparing"
    label = "comparing"
