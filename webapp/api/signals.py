"""When a membership ends, the person's tokens for that project alone are revoked."""

from typing import Any

from django.db.models.signals import post_delete
from django.dispatch import receiver

from webapp.accounts.models import Membership
from webapp.api.tokens import revoke_for_member


@receiver(post_delete, sender=Membership, dispatch_uid="tokens_of_former_members")
def revoke_tokens(instance: Membership, origin: Any, **_: Any) -> None:
    # If the person or the project is deleted, the tokens are deleted too.
    if getattr(origin, "model", type(origin)) is Membership:
        revoke_for_member(user_id=instance.user_id, project_id=instance.project_id)
