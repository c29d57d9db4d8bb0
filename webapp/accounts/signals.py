"""A person who signs up gets a personal project."""

from typing import Any

from allauth.account.signals import user_signed_up
from django.dispatch import receiver

from webapp.accounts import services
from webapp.accounts.models import User


@receiver(user_signed_up, dispatch_uid="personal_project")
def give_personal_project(user: User, **_: Any) -> None:
    services.ensure_personal_project(user)
