"""Limits as a Django app."""

from django.apps import AppConfig


class LimitsConfig(AppConfig):
    name = "webapp.limits"
    verbose_name = "Limits"
