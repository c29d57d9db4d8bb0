"""The app of the API. When a membership ends, the person's tokens for that project alone are revoked."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete


class ApiConfig(AppConfig):
    name = "webapp.api"
    verbose_name = "API"

    def ready(self) -> None:
        post_delete.connect(_revoke_tokens, "accounts.Membership", dispatch_uid="tokens_of_former_members")


def _revoke_tokens(instance: Any, origin: Any, **_: Any) -> None:
    from webapp.api.tokens import revoke_for_member  # models load after apps

    # If the person or the project is deleted, the tokens are deleted too.
    if getattr(origin, "model", type(origin)) is type(instance):
        revoke_for_member(user_id=instance.user_id, project_id=instance.project_id)
