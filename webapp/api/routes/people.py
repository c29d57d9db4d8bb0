"""Members of a project. Every member can list them; owners invite, change roles and remove."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from django.conf import settings
from django.shortcuts import get_object_or_404
from pydantic import AliasPath, Field

from webapp.accounts import queries, services
from webapp.accounts.access import member_to_remove
from webapp.accounts.invitation_mail import send_invitation_mail
from webapp.accounts.models import Invitation, Membership, User
from webapp.accounts.views import MemberForm
from webapp.api.auth import Token
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first
from webapp.api.problems import cleaned
from webapp.api.router import ApiRouter, ArchivedOwnersProject, OwnersProject, Person, ViewersProject
from webapp.api.schemas import Address, Request, Shape

router = ApiRouter(tags=["people"])
_Role = Literal["viewer", "editor", "owner"]


class MemberShape(Shape):
    id: int
    email: str = Field(validation_alias=AliasPath("user", "email"))
    role: _Role
    you: bool
    since: datetime = Field(validation_alias="created_at")


class InvitationShape(Shape):
    id: int
    email: str
    role: _Role
    invited_by: str | None
    since: datetime = Field(validation_alias="created_at")
    ends_at: datetime = Field(validation_alias="expires_at")


class MadeInvitation(InvitationShape):
    link: str = Field(description="For this person alone. Only this response contains it.")
    not_mailed: str = Field(description="Why no mail took the link to the address; empty: one did.")


class NewInvitation(Request):
    """One person, with or without an account."""

    email: Address
    role: _Role = "viewer"


class NewRole(Request):
    role: _Role


@router.get("/projects/{slug}/members", summary="Members of a project")
def list_members(
    project: ViewersProject, person: Person, after: After = 0, limit: Limit = 50
) -> NumberedPage[MemberShape]:
    """In the order in which they joined."""
    return oldest_first(queries.members_of(project), after, limit, lambda one: _member(person, one))


@router.get("/projects/{slug}/members/{member_id}", summary="One member")
def get_member(project: ViewersProject, person: Person, member_id: RowId) -> MemberShape:
    return _member(person, queries.member_in(project, member_id))


@router.get("/projects/{slug}/invitations", auth=Token("manage"), summary="Open invitations")
def list_invitations(
    project: OwnersProject, after: After = 0, limit: Limit = 50
) -> NumberedPage[InvitationShape]:
    """In the order of the invitations."""
    rows = services.open_invitations(project)
    return oldest_first(rows, after, limit, _invitation)


@router.post("/projects/{slug}/invitations", auth=Token("manage"), response=201, summary="Invite a person")
def invite_member(project: OwnersProject, person: Person, invitation: NewInvitation) -> MadeInvitation:
    """They are a member once they accept, within 7 days; they need no account before. A second invitation replaces the
    link; 409 for a member."""
    made, path = services.invite(project, by=person, **cleaned(MemberForm(invitation.model_dump())))
    link = f"{settings.STARLING_BASE_URL}{path}"
    not_mailed = send_invitation_mail(made, link, person)
    return MadeInvitation.of(made, link=link, not_mailed=not_mailed, invited_by=person.email)


@router.delete(
    "/projects/{slug}/invitations/{invitation_id}",
    auth=Token("manage"),
    response=204,
    summary="Withdraw an invitation",
)
def withdraw_invitation(project: ArchivedOwnersProject, invitation_id: RowId) -> None:
    """Its link no longer works."""
    open_ones = services.open_invitations(project)
    services.withdraw(get_object_or_404(open_ones, pk=invitation_id))


@router.put("/projects/{slug}/members/{member_id}", auth=Token("manage"), summary="Change a member's role")
def change_member_role(
    project: OwnersProject, person: Person, member_id: RowId, role: NewRole
) -> MemberShape:
    """A project keeps at least one owner."""
    services.change_role(queries.member_in(project, member_id), role.role)
    return _member(person, queries.member_in(project, member_id))


@router.delete(
    "/projects/{slug}/members/{member_id}",
    auth=Token("manage"),
    response=204,
    summary="Remove a member, or leave",
)
def remove_member(project: ViewersProject, person: Person, member_id: RowId) -> None:
    """Owners may remove any member, and every member may leave. Jobs continue."""
    services.remove_member(member_to_remove(person, project, member_id))


def _member(person: User, membership: Membership) -> MemberShape:
    return MemberShape.of(membership, you=membership.user_id == person.pk)


def _invitation(invitation: Invitation) -> InvitationShape:
    return InvitationShape.of(invitation, invited_by=invitation.invited_by and invitation.invited_by.email)
