"""Everything that changes people, projects and memberships."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.core import signing
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.urls import Resolver404, resolve, reverse
from django.utils.text import slugify

from webapp.accounts.models import Invitation, Membership, Project, Role, SignInLink, User
from webapp.accounts.queries import confirmed_addresses, is_confirmed
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.http.refusals import ActionRefused

LINK_LIFETIME = timedelta(hours=1)
_LINK_SIGNER = signing.Signer(salt="starling.accounts.sign_in_link")
_LINK_OVER = "This sign-in link was used already or is older than an hour. Ask for a new one."


MOST_PROJECTS = 100
"""Of which one person may be the owner."""
LONGEST_NAME = 80


class ProjectRefused(ValueError):
    """A project that cannot be created or renamed like this; the text says why."""


class MembershipError(ActionRefused):
    """A change of members that cannot be made; the text says why, for the page."""


class LinkError(Exception):
    """A sign-in link that does not work (any more); the text says why, for the page."""


def create_project(name: str, owner: User) -> Project:
    """A project of `owner`. Its slug comes from the name. If the slug is taken, a few letters are added."""
    base = slugify(name)[:50] or "project"
    for slug in (base, *(f"{base}-{secrets.token_hex(2)}" for _ in range(5))):
        if Project.objects.filter(slug=slug).exists():
            continue
        try:
            with transaction.atomic():
                project = Project.objects.create(name=name[:80], slug=slug)
                Membership.objects.create(project=project, user=owner, role=Role.OWNER)
                return project
        except IntegrityError:  # a concurrent request took the slug
            continue
    raise RuntimeError(f"No free address for a project named {name!r}.")


def start_project(name: str, owner: User) -> Project:
    """A further project of this person. ProjectRefused for a name without letters, or beyond what one may own."""
    name = _checked_name(name)
    if owner.memberships.filter(role=Role.OWNER).count() >= MOST_PROJECTS:
        raise ProjectRefused(
            f"You own {MOST_PROJECTS} projects, which is as many as one person may. Leave one first."
        )
    return create_project(name, owner)


def rename_project(project: Project, name: str) -> None:
    """Set the project's name. Its slug stays, so addresses keep working. ProjectRefused for an empty or long name."""
    project.name = _checked_name(name)
    project.save(update_fields=["name"])


def _checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        raise ProjectRefused(f"A project's name has between 1 and {LONGEST_NAME} letters.")
    return name


def ensure_personal_project(user: User) -> Project:
    """The person's first project, created if there is none. Called at sign-up, idempotent."""
    existing = user.projects.order_by("memberships__created_at", "pk").first()
    if existing is not None:
        return existing
    return create_project(f"{user.email.partition('@')[0]}'s project", user)


def create_person(email: str, password: str | None = None) -> User:
    """A person with a personal project, as sign-up makes them; for the demo account and for tests."""
    with transaction.atomic():
        user = User.objects.create_user(email, password)
        ensure_personal_project(user)
    return user


def put_guide_away(membership: Membership, at: datetime | None) -> None:
    """Hide the first steps of this project from this person. `at=None` shows them again."""
    membership.guide_put_away_at = at
    membership.save(update_fields=["guide_put_away_at"])


# Members


def join_project(project: Project, user: User, role: str) -> Membership:
    """Gives the person a role in the project. MembershipError if they are a member, or share a member's address."""
    same = project.memberships.filter(Q(user=user) | Q(user__email__iexact=user.email)).first()
    if same is not None:
        raise MembershipError(f"{user.email} is {same.role} of this project already.")
    return Membership.objects.create(project=project, user=user, role=Role(role).value)


def change_role(membership: Membership, role: str) -> None:
    """Sets the role, unless that would leave the project without an owner."""
    with transaction.atomic():
        locked = _locked(membership)
        if role != Role.OWNER:
            _keep_an_owner(locked)
        locked.role = Role(role).value
        locked.save(update_fields=["role"])


def remove_member(membership: Membership) -> None:
    """Takes the person out of the project, unless they are its last owner."""
    with transaction.atomic():
        locked = _locked(membership)
        _keep_an_owner(locked)
        locked.delete()


def _locked(membership: Membership) -> Membership:
    # The project's row is the lock: two owners who leave at once must not both succeed.
    Project.objects.select_for_update().get(pk=membership.project_id)
    try:
        return Membership.objects.select_related("user").get(pk=membership.pk)
    except Membership.DoesNotExist:
        raise MembershipError("This person is no longer a member.") from None


def _keep_an_owner(membership: Membership) -> None:
    others = Membership.objects.filter(project_id=membership.project_id, role=Role.OWNER).exclude(
        pk=membership.pk
    )
    if membership.role == Role.OWNER and not others.exists():
        raise MembershipError(
            f"{membership.user.email} is the only owner. Make another member an owner first: "
            "a project needs one."
        )


# One-time sign-in


def one_time_sign_in_path(user: User, clock: Clock = SYSTEM_CLOCK) -> str:
    """The path of a fresh link that signs this person in once, within an hour."""
    secret = secrets.token_urlsafe(24)
    SignInLink.objects.create(
        secret_sha256=_digest(secret), user=user, expires_at=clock.now() + LINK_LIFETIME
    )
    return reverse("accounts:one_time_sign_in", args=[_LINK_SIGNER.sign(secret)])


def sign_in_link(token: str, clock: Clock = SYSTEM_CLOCK) -> SignInLink:
    """The link of this token. Reading it does not use it up. LinkError if it no longer works."""
    try:
        digest = _digest(_LINK_SIGNER.unsign(token))
    except signing.BadSignature:
        raise LinkError("This sign-in link is not complete. Copy the whole line.") from None
    fresh = SignInLink.objects.filter(
        secret_sha256=digest, used_at__isnull=True, expires_at__gt=clock.now(), user__is_active=True
    )
    link = fresh.select_related("user").first()
    if link is None:
        raise LinkError(_LINK_OVER)
    return link


def redeem_sign_in_link(token: str, clock: Clock = SYSTEM_CLOCK) -> User:
    """Mark the link used and return its person. LinkError if it is invalid, used or too old."""
    link = sign_in_link(token, clock)
    unused = SignInLink.objects.filter(pk=link.pk, used_at__isnull=True)
    if unused.update(used_at=clock.now()) != 1:
        raise LinkError(_LINK_OVER)
    return link.user


# Invitations: how people become members. Nothing here reveals who has an account.

INVITATION_LIFETIME = timedelta(days=7)
OPEN_AT_ONCE = 50
_INVITATION_SIGNER = signing.Signer(salt="starling.accounts.invitation")


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
            expires_at=now + INVITATION_LIFETIME,
        )
    return made, reverse("accounts:join", args=[_INVITATION_SIGNER.sign(secret)])


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
        digest = _digest(_INVITATION_SIGNER.unsign(token))
    except signing.BadSignature:
        raise InvitationOver("This invitation is not complete. Copy the whole line.") from None
    rows = Invitation.objects.select_related("project", "invited_by")
    row = rows.filter(secret_sha256=digest, expires_at__gt=clock.now()).first()
    if row is None:
        raise InvitationOver(
            "This invitation was accepted or withdrawn, or is older than 7 days."
            " Ask an owner of the project for another."
        )
    return row


def must_confirm_first(user: User) -> bool:
    """Whether this person can confirm an address and has not. Without a mail server no one can: the link is enough."""
    return bool(settings.STARLING_SMTP_URL) and not is_confirmed(user)


def accept(invitation: Invitation, user: User) -> Membership:
    """Make the person a member and delete the invitation. MembershipError says why not."""
    if must_confirm_first(user):
        raise MembershipError(f"Confirm {user.email} first: a mail with a link was sent there.")
    with transaction.atomic():
        project = Project.objects.select_for_update().get(pk=invitation.project_id)
        if project.archived_at is not None:
            raise MembershipError(f"{project.name} is archived, so no one can join it now.")
        if not Invitation.objects.filter(pk=invitation.pk).exists():
            raise MembershipError("This invitation was accepted or withdrawn already.")
        membership = join_project(invitation.project, user, invitation.role)
        Invitation.objects.filter(pk=invitation.pk).delete()
    return membership


def sign_up_invitation(path: str, clock: Clock = SYSTEM_CLOCK) -> Invitation | None:
    """The invitation that lets a person create an account where sign-up is closed: the one whose link `path` is.

    None if it is no such link, if the link no longer works, or if an account was created with it.
    """
    try:
        match = resolve(path)
        if match.view_name != "accounts:join":
            return None
        invitation = invitation_of_token(match.kwargs["token"], clock)
    except (Resolver404, InvitationOver):
        return None
    return invitation if invitation.account_id is None else None


def claim_for_sign_up(invitation: Invitation, user: User) -> None:
    """Record that this account was created with the invitation. InvitationOver if another one was."""
    unclaimed = Invitation.objects.filter(pk=invitation.pk, account=None)
    if unclaimed.update(account=user) != 1:
        raise InvitationOver("An account was created with this invitation already. Sign in with that.")


def withdraw(invitation: Invitation) -> None:
    """Delete the invitation. Its link no longer works."""
    Invitation.objects.filter(pk=invitation.pk).delete()


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
