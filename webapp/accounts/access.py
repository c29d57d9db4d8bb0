"""Access to projects: every page and API route checks here whether a person's role in a project is enough.

A project without a membership of the person answers 404. A role that is too low answers 403, and so does an archived
project to those who want to change it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts.models import Membership, Project, Role, User
from webapp.accounts.queries import member_in
from webapp.http.refusals import back_if_refused

SESSION_KEY = "last_project"
SIGNED_OUT = "You were signed out, so nothing was changed. Sign in, then do it again."
ARCHIVED = (
    "This project is archived, so nothing in it can be changed. An owner can unarchive it under Projects."
)


def membership_for(
    user: User | AnonymousUser, slug: str, needs: str = "viewer", *, archived: bool = False
) -> Membership:
    """The person's membership of the project. Http404 if there is none, PermissionDenied if its role is too low.

    An archived project is read-only: PermissionDenied for more than viewing, unless `archived` allows it.
    """
    if not user.is_authenticated:
        raise Http404("There is no such project.")
    membership = (
        Membership.objects.select_related("project").filter(user_id=user.pk, project__slug=slug).first()
    )
    if membership is None:
        raise Http404("There is no such project.")
    if not Role(membership.role).allows(needs):
        raise PermissionDenied(refusal(membership.role, needs))
    if not archived and not membership.allows(needs):
        raise PermissionDenied(ARCHIVED)
    return membership


def person_of(request: HttpRequest) -> User:
    """The signed-in person of a request. PermissionDenied if no one is signed in."""
    if not isinstance(request.user, User):
        raise PermissionDenied("Sign in first.")
    return request.user


def current_membership(request: HttpRequest) -> Membership | None:
    """The membership of the page's project. On other pages, of the project opened last."""
    if not hasattr(request, "membership"):
        memberships = (
            Membership.objects.select_related("project")
            .filter(user=person_of(request))
            .order_by(F("project__archived_at").asc(nulls_first=True), "pk")
        )
        last = request.session.get(SESSION_KEY, "")
        request.membership = memberships.filter(project__slug=last).first() or memberships.first()  # type: ignore[attr-defined]
    membership: Membership | None = request.membership  # type: ignore[attr-defined]
    return membership


def member_to_remove(user: User | AnonymousUser, project: Project, membership_id: int) -> Membership:
    """The member, if this person may remove them: owners may remove anyone, and each member themselves."""
    member = member_in(project, membership_id)
    if member.user_id != user.pk:
        membership_for(user, project.slug, "owner", archived=True)
    return member


def refusal(role: str, needs: str) -> str:
    """Why a role is not enough: a sentence for the page."""
    may = "view it" if role == Role.VIEWER else "view and run it"
    return (
        f"You are {role} of this project and may {may}. This needs the role {needs}; ask one of its owners."
    )


ProjectView = Callable[..., HttpResponseBase]


def signed_in(view: ProjectView) -> ProjectView:
    """For views of signed-in people. Others are sent to sign in; those who wanted to change something read that they
    did not.
    """
    checked = login_required(view)

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "POST" and not request.user.is_authenticated:
            messages.warning(request, SIGNED_OUT)
        return checked(request, *args, **kwargs)

    return wrapped


def project_page(
    needs: str = "viewer", *, archived: bool = False
) -> Callable[[ProjectView], Callable[..., HttpResponseBase]]:
    """For views under /p/<slug>/: requires sign-in and the role, and passes the project to the view.

    `archived`: for what may be done in an archived project as well.
    """
    least = Role(needs)  # an unknown role is found when the module is read

    def decorate(view: ProjectView) -> Callable[..., HttpResponseBase]:
        @signed_in
        @wraps(view)
        def wrapped(request: HttpRequest, slug: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            membership = membership_for(request.user, slug, least, archived=archived)
            request.membership = membership  # type: ignore[attr-defined]
            if request.session.get(SESSION_KEY) != slug:
                request.session[SESSION_KEY] = slug
            return view(request, membership.project, *args, **kwargs)

        return wrapped

    return decorate


def live_page(needs: str = "viewer") -> Callable[[ProjectView], Callable[..., HttpResponseBase]]:
    """As `project_page`, for a page that only shows the present state. It is never cached."""
    return lambda view: project_page(needs)(require_safe(never_cache(view)))


def project_action(
    needs: str, *, archived: bool = False
) -> Callable[[ProjectView], Callable[..., HttpResponseBase]]:
    """As `project_page`, for what changes something: by POST alone. What is refused opens the page above again."""

    def decorate(view: ProjectView) -> ProjectView:
        action = project_page(needs, archived=archived)(require_POST(back_if_refused(view)))
        action.post_only = True  # type: ignore[attr-defined]
        return action

    return decorate
