"""Invitations into projects: how people become members. Nothing here reveals who has an account."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from webapp.accounts.models import Invitation, Membership, Project, Role, User
from webapp.accounts.queries import confirmed_addresses, is_confirmed
from webapp.accounts.services import MembershipError, join_project
from webapp.clock import SYSTEM_CLOCK, Clock

LIFETIME = timedelta(days=7)
OPEN_AT_ONCE = 50
_SIGNER = signing.Signer(salt="starling.accounts.invitation")


class InvitationOver(Exception):
    """An invitation that does not work (any more); the text says why, for the page."""


def invite(
    project: Project, email: str, role: str, by: User, clock: Clock = SYSTEM_CLOCK
) -> tuple[Invitation, str]:
    """A new invitation of one person, and the path of its link, which cannot be shown again.

    A second invitation of an address replaces the first one and its link. MembershipError if the address is a member's.
    """
    address = email.strip().lower()
    now, secret = clock.now(), secrets.token_urlsafe(24)
    member = project.memberships.filter(user__email__iexact=address).first()
    if member is not None:
        raise MembershipError(f"{address} is {member.role} of this project already.")
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=project.pk)
        project.invitations.filter(expires_at__lte=now).delete()
        project.invitations.filter(email=address).delete()
        if project.invitations.count() >= OPEN_AT_ONCE:
            raise MembershipError(
                f"{OPEN_AT_ONCE} invitations are open, which is as many as a project may have. Withdraw one first."
            )
        made = Invitation.objects.create(
            project=project,
            email=address,
            role=Role(role).value,
            secret_sha256=_digest(secret),
            invited_by=by,
            created_at=now,
            expires_at=now + LIFETIME,
        )
    return made, reverse("accounts:join", args=[_SIGNER.sign(secret)])


def open_invitations(project: Project, clock: Clock = SYSTEM_CLOCK) -> QuerySet[Invitation]:
    """The project's invitations that still work, newest first."""
    return project.invitations.filter(expires_at__gt=clock.now()).order_by("-created_at", "-pk")


def invitations_of(user: User, clock: Clock = SYSTEM_CLOCK) -> QuerySet[Invitation]:
    """Open invitations for the addresses that this person has confirmed."""
    mine = Invitation.objects.filter(email__in=confirmed_addresses(user), expires_at__gt=clock.now())
    return mine.select_related("project", "invited_by").order_by("-created_at", "-pk")


def invitation_of_token(token: str, clock: Clock = SYSTEM_CLOCK) -> Invitation:
    """The invitation of this link. InvitationOver if the link is invalid, accepted, withdrawn or too old."""
    try:
        digest = _digest(_SIGNER.unsign(token))
    except signing.BadSignature:
        raise InvitationOver("This invitation is not complete. Copy the whole line.") from None
    rows = Invitation.objects.select_related("project", "invited_by")
    found = rows.filter(secret_sha256=digest, expires_at__gt=clock.now()).first()
    if found is None:
        raise InvitationOver(
            "This invitation was accepted or withdrawn, or is older than 7 days."
            " Ask an owner of the project for another."
        )
    return found


def must_confirm_first(user: User) -> bool:
    """Whether this person can confirm an address and has not. Without a mail server no one can: the link is enough."""
    return bool(settings.STARLING_SMTP_URL) and not is_confirmed(user)


def accept(invitation: Invitation, user: User) -> Membership:
    """Make the person a member and delete the invitation. MembershipError says why not."""
    if must_confirm_first(user):
        raise MembershipError(f"Confirm {user.email} first: a letter with a link was sent there.")
    with transaction.atomic():
        Project.objects.select_for_update().get(pk=invitation.project_id)
        if not Invitation.objects.filter(pk=invitation.pk).exists():
            raise MembershipError("This invitation was accepted or withdrawn already.")
        membership = join_project(invitation.project, user, invitation.role)
        Invitation.objects.filter(pk=invitation.pk).delete()
    return membership


def withdraw(invitation: Invitation) -> None:
    """Delete the invitation. Its link no longer works."""
    Invitation.objects.filter(pk=invitation.pk).delete()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
