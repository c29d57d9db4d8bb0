"""The accounts app. A person who signs up gets a personal project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allauth.account.signals import user_signed_up
from django.apps import AppConfig

if TYPE_CHECKING:
    from webapp.accounts.models import User


class AccountsConfig(AppConfig):
    name = "webapp.accounts"

    def ready(self) -> None:
        user_signed_up.connect(_give_personal_project, dispatch_uid="personal_project")


def _give_personal_project(user: User, **_: Any) -> None:
    from webapp.accounts.services import ensure_personal_project  # models load after apps

    ensure_personal_project(user)
