from django.apps import AppConfig


class ResourcesConfig(AppConfig):
    name = "webapp.resources"
    label = "resources"
