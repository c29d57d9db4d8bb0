"""Members of a project: told to everybody in it; invited, given roles and taken out by its owners."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.conf import settings
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, Field, StringConstraints

from webapp.accounts import invitations, queries, services
from webapp.accounts.access import member_to_remove
from webapp.accounts.forms import MemberForm
from webapp.accounts.models import Invitation, Membership
from webapp.api.auth import Token, project_of
from webapp.api.page_forms import cleaned
from webapp.api.paging import After, Limit, NumberedPage, RowId, oldest_first

router = Router(tags=["people"])
_Role = Literal["viewer", "editor", "owner"]


class MemberShape(BaseModel):
    id: int
    email: str
    role: _Role
    you: bool
    since: datetime


class InvitationShape(BaseModel):
    id: int
    email: str
    role: _Role
    invited_by: str | None
    since: datetime
    ends_at: datetime


class MadeInvitation(InvitationShape):
    link: str = Field(description="For this person alone; in this answer and nowhere after.")


class NewInvitation(BaseModel):
    """One person, whether or not they have signed up already."""

    model_config = {"extra": "forbid"}

    email: Annotated[str, StringConstraints(min_length=3, max_length=254)]
    role: _Role = "viewer"


class NewRole(BaseModel):
    model_config = {"extra": "forbid"}

    role: _Role


@router.get("/projects/{slug}/members", response=NumberedPage[MemberShape], summary="Members of a project")
def list_members(
    request: HttpRequest, slug: str, after: After = 0, limit: Limit = 50
) -> NumberedPage[MemberShape]:
    """Whoever came first is first."""
    found, following = oldest_first(queries.members_of(project_of(request, slug)), after, limit)
    return NumberedPage(results=[_member(request, one) for one in found], next=following)


@router.get(
    "/projects/{slug}/members/{member_id}",
    response=MemberShape,
    summary="One member",
)
def get_member(request: HttpRequest, slug: str, member_id: RowId) -> MemberShape:
    return _member(request, queries.member_in(project_of(request, slug), member_id))


@router.get(
    "/projects/{slug}/invitations",
    auth=Token("manage"),
    response=NumberedPage[InvitationShape],
    summary="Open invitations",
)
def list_invitations(
    request: HttpRequest, slug: str, after: After = 0, limit: Limit = 50
) -> NumberedPage[InvitationShape]:
    """Whoever was invited first is first."""
    rows = invitations.open_invitations(project_of(request, slug, "owner"))
    found, following = oldest_first(rows, after, limit)
    return NumberedPage(results=[_invitation(one) for one in found], next=following)


@router.post(
    "/projects/{slug}/invitations",
    auth=Token("manage"),
    response={201: MadeInvitation},
    summary="Invite somebody",
)
def invite(request: HttpRequest, slug: str, invitation: NewInvitation) -> Status:
    """They are a member once they accept, within 7 days. Inviting again makes another link; 409 for a member."""
    project = project_of(request, slug, "owner")
    person: Any = request.auth  # type: ignore[attr-defined]
    made, path = invitations.invite(project, by=person, **cleaned(MemberForm(invitation.model_dump())))
    link = f"{settings.STARLING_BASE_URL}{path}"
    return Status(201, MadeInvitation(link=link, **_invitation(made).model_dump()))


@router.delete(
    "/projects/{slug}/invitations/{invitation_id}",
    auth=Token("manage"),
    response={204: None},
    summary="Withdraw an invitation",
)
def withdraw(request: HttpRequest, slug: str, invitation_id: RowId) -> Status:
    """Its link opens nothing from now on."""
    open_ones = invitations.open_invitations(project_of(request, slug, "owner"))
    invitations.withdraw(get_object_or_404(open_ones, pk=invitation_id))
    return Status(204, None)


@router.put(
    "/projects/{slug}/members/{member_id}",
    auth=Token("manage"),
    response=MemberShape,
    summary="Change a member's role",
)
def change_role(request: HttpRequest, slug: str, member_id: RowId, role: NewRole) -> MemberShape:
    """A project keeps one owner at least."""
    project = project_of(request, slug, "owner")
    services.change_role(queries.member_in(project, member_id), role.role)
    return _member(request, queries.member_in(project, member_id))


@router.delete(
    "/projects/{slug}/members/{member_id}",
    auth=Token("manage"),
    response={204: None},
    summary="Take a member out, or leave",
)
def remove(request: HttpRequest, slug: str, member_id: RowId) -> Status:
    """Owners take out anybody; everybody may leave. Jobs go on."""
    person: Any = request.auth  # type: ignore[attr-defined]
    services.remove_member(member_to_remove(person, project_of(request, slug), member_id))
    return Status(204, None)


def _member(request: HttpRequest, one: Membership) -> MemberShape:
    return MemberShape(
        id=one.pk,
        email=one.user.email,
        role=one.role,
        you=one.user_id == request.auth.pk,  # type: ignore[attr-defined]
        since=one.created_at,
    )


def _invitation(one: Invitation) -> InvitationShape:
    return InvitationShape(
        id=one.pk,
        email=one.email,
        role=one.role,
        invited_by=one.invited_by.email if one.invited_by else None,
        since=one.created_at,
        ends_at=one.expires_at,
    )
