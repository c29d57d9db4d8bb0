from django.apps import AppConfig


class MoneyConfig(AppConfig):
    name = "webapp.money"
    label = "money"
