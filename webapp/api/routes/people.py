"""Members of a project: told to everybody in it; added, given roles and taken out by its owners."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router
from ninja.responses import Status
from pydantic import BaseModel, StringConstraints

from webapp.accounts import queries, services
from webapp.accounts.access import member_to_remove
from webapp.accounts.forms import MemberForm
from webapp.accounts.models import Membership
from webapp.api.guard import Token, project_of
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


class NewMember(BaseModel):
    """Somebody who has signed up already."""

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
    url_name="get_member",
    summary="One member",
)
def get_member(request: HttpRequest, slug: str, member_id: RowId) -> MemberShape:
    return _member(request, queries.member_in(project_of(request, slug), member_id))


@router.post(
    "/projects/{slug}/members",
    auth=Token("manage"),
    response={201: MemberShape},
    summary="Add a member",
)
def add(request: HttpRequest, response: HttpResponse, slug: str, member: NewMember) -> Status:
    """They see the project from now on. 409 for one who is a member already, or has not signed up yet."""
    project = project_of(request, slug, "owner")
    made = services.add_member(project, **cleaned(MemberForm(member.model_dump())))
    response["Location"] = reverse("api_v1:get_member", args=[slug, made.pk])
    return Status(201, _member(request, made))


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
