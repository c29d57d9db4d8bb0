"""Pages of a project's members, and of people who are invited."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts import invitations, queries, services
from webapp.accounts.access import member_to_remove, person_of, project_page
from webapp.accounts.forms import MemberForm, RoleForm
from webapp.accounts.fresh_sign_in import fresh_sign_in
from webapp.accounts.models import Invitation, Project, Role

ROLES_IN_WORDS = (
    (Role.VIEWER, "sees everything, changes nothing"),
    (Role.EDITOR, "also launches and stops jobs and sets budgets"),
    (Role.OWNER, "also decides who is a member"),
)


@project_page()
@require_safe
def members(request: HttpRequest, project: Project) -> HttpResponse:
    return _members_page(request, project, MemberForm())


@project_page(needs="owner")
@require_POST
@fresh_sign_in
@never_cache
@sensitive_variables("path")
def invite(request: HttpRequest, project: Project) -> HttpResponse:
    """Invite one person. Only this response shows the link."""
    form = MemberForm(request.POST)
    if form.is_valid():
        try:
            made, path = invitations.invite(project, by=person_of(request), **form.cleaned_data)
        except services.MembershipError as error:
            form.add_error("email", str(error))
        else:
            link = f"{settings.STARLING_BASE_URL}{path}"
            return _members_page(request, project, MemberForm(), made=made, link=link)
    return _members_page(request, project, form, status=422)


@project_page(needs="owner")
@require_POST
def withdraw(request: HttpRequest, project: Project, invitation_id: int) -> HttpResponse:
    invitation = get_object_or_404(Invitation, pk=invitation_id, project=project)
    invitations.withdraw(invitation)
    messages.success(request, f"The invitation of {invitation.email} is withdrawn. Its link no longer works.")
    return redirect("accounts:members", project.slug)


@project_page(needs="owner")
@require_POST
@fresh_sign_in
def change_role(request: HttpRequest, project: Project, membership_id: int) -> HttpResponse:
    membership = queries.member_in(project, membership_id)
    form = RoleForm(request.POST)
    try:
        if not form.is_valid():
            raise services.MembershipError("A role is viewer, editor or owner.")
        services.change_role(membership, form.cleaned_data["role"])
    except services.MembershipError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"{membership.user.email} is {form.cleaned_data['role']} now.")
    return redirect("accounts:members", project.slug)


@project_page()
@require_POST
def remove_member(request: HttpRequest, project: Project, membership_id: int) -> HttpResponse:
    """Owners remove any member. Every member may leave."""
    membership = member_to_remove(request.user, project, membership_id)
    leaving = membership.user_id == request.user.pk
    try:
        services.remove_member(membership)
    except services.MembershipError as error:
        messages.error(request, str(error))
        return redirect("accounts:members", project.slug)
    if leaving:
        messages.success(request, f"You left {project.name}.")
        return redirect("accounts:home")
    messages.success(request, f"{membership.user.email} is no member any more.")
    return redirect("accounts:members", project.slug)


# Pages of invited people


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def join(request: HttpRequest, token: str) -> HttpResponse:
    """The page of an invitation's link: the project, the role, and a button that joins."""
    try:
        invitation = invitations.invitation_of_token(token)
    except invitations.InvitationOver as over:
        return render(request, "accounts/invitation_over.html", {"reason": str(over)}, status=404)
    if request.method == "POST" and request.user.is_authenticated:
        return _accept(request, invitation)
    context = {
        "invitation": invitation,
        "must_confirm": request.user.is_authenticated and invitations.must_confirm_first(person_of(request)),
        "sign_up_is_open": settings.STARLING_SIGNUP == "open",
    }
    return render(request, "accounts/join.html", context)


@login_required
@require_POST
def accept(request: HttpRequest, invitation_id: int) -> HttpResponse:
    """Accept an invitation of an address that this person has confirmed. The account's page lists them."""
    return _accept(
        request, get_object_or_404(invitations.invitations_of(person_of(request)), pk=invitation_id)
    )


@login_required
@require_POST
def decline(request: HttpRequest, invitation_id: int) -> HttpResponse:
    invitations.withdraw(get_object_or_404(invitations.invitations_of(person_of(request)), pk=invitation_id))
    messages.success(request, "You declined the invitation.")
    return redirect("accounts:account")


def _accept(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    try:
        membership = invitations.accept(invitation, person_of(request))
    except services.MembershipError as error:
        messages.error(request, str(error))
        return redirect("accounts:account")
    messages.success(request, f"You are {membership.role} of {membership.project.name} now.")
    return redirect("overview:page", membership.project.slug)


@sensitive_variables("link")
def _members_page(
    request: HttpRequest,
    project: Project,
    form: MemberForm,
    *,
    made: Invitation | None = None,
    link: str = "",
    status: int = 200,
) -> HttpResponse:
    owner = request.membership.allows("owner")  # type: ignore[attr-defined]
    context = {
        "section": "members",
        "members": queries.members_of(project),
        "invitations": invitations.open_invitations(project) if owner else [],
        "form": form,
        "made": made,
        "link": link,
        "roles": Role.choices,
        "roles_in_words": ROLES_IN_WORDS,
    }
    return render(request, "accounts/members.html", context, status=status)
