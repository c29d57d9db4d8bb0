"""Pages about people: the way in, the account, and a project's members."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from webapp.accounts import queries, services
from webapp.accounts.access import SESSION_KEY, member_to_remove, project_page
from webapp.accounts.forms import MemberForm, RoleForm
from webapp.accounts.models import Project, Role

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
ROLES_IN_WORDS = (
    (Role.VIEWER, "sees everything, changes nothing"),
    (Role.EDITOR, "also launches and stops jobs and sets budgets"),
    (Role.OWNER, "also decides who is a member"),
)


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """To the overview of the project last looked at."""
    projects = queries.projects_of(request.user)
    project = projects.filter(slug=request.session.get(SESSION_KEY, "")).first() or projects.first()
    project = project or services.ensure_personal_project(request.user)
    return redirect("overview:page", project.slug)


@never_cache
def one_time_sign_in(request: HttpRequest, token: str) -> HttpResponse:
    """Signs in whoever holds a fresh link, once."""
    try:
        user = services.redeem_sign_in_link(token)
    except services.LinkError as error:
        return render(request, "accounts/link_refused.html", {"reason": str(error)}, status=403)
    login(request, user, backend=MODEL_BACKEND)
    return redirect("accounts:home")


@login_required
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    return render(request, "accounts/account.html", {"section": "account"})


@project_page()
@require_safe
def members(request: HttpRequest, project: Project) -> HttpResponse:
    return _members_page(request, project, MemberForm())


@project_page(needs="owner")
@require_POST
def add_member(request: HttpRequest, project: Project) -> HttpResponse:
    form = MemberForm(request.POST)
    if form.is_valid():
        try:
            added = services.add_member(project, form.cleaned_data["email"], form.cleaned_data["role"])
        except services.MembershipError as error:
            form.add_error("email", str(error))
        else:
            messages.success(request, f"{added.user.email} is {added.role} of this project now.")
            return redirect("accounts:members", project.slug)
    return _members_page(request, project, form, status=422)


@project_page(needs="owner")
@require_POST
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
    """Owners remove anybody; everybody may leave."""
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


def _members_page(
    request: HttpRequest, project: Project, form: MemberForm, status: int = 200
) -> HttpResponse:
    context = {
        "section": "members",
        "members": queries.members_of(project),
        "form": form,
        "roles": Role.choices,
        "roles_in_words": ROLES_IN_WORDS,
    }
    return render(request, "accounts/members.html", context, status=status)
