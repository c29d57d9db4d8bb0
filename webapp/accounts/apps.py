"""The accounts app. It connects the sign-up signal on start."""

from importlib import import_module

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "webapp.accounts"
    label = "accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        import_module("webapp.accounts.signals")
