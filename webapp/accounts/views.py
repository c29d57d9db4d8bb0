"""Pages about people: the way in, the account, a project's members, and invitations."""

from __future__ import annotations

from typing import Any

from allauth.account import views as allauth_views
from allauth.account.models import EmailConfirmationHMAC
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.views import redirect_to_login
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts import queries, services
from webapp.accounts.access import (
    SESSION_KEY,
    member_to_remove,
    person_of,
    project_action,
    project_page,
    signed_in,
)
from webapp.accounts.fresh_sign_in import (
    fresh_sign_in,
    may_set_first_password,
    record_sign_in_link,
    resume_request_after_password,
)
from webapp.accounts.invitation_mail import send_invitation_mail
from webapp.accounts.models import Invitation, Project, Role
from webapp.accounts.services import invitations_of

SIGN_IN_BACKEND = "webapp.accounts.sign_in.AddressBackend"
_CHANGES_ADDRESSES = ("action_add", "action_primary", "action_remove")


@signed_in
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the overview of the project that was opened last."""
    person = person_of(request)
    projects = queries.projects_of(person)
    last = projects.filter(slug=request.session.get(SESSION_KEY, "")).first()
    project = last or projects.order_by(F("archived_at").asc(nulls_first=True), "name", "pk").first()
    project = project or services.ensure_personal_project(person)
    return redirect("overview:page", project.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def one_time_sign_in(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by a fresh link, once, after a click. Programs that prefetch links use none up."""
    try:
        if request.method != "POST":
            link = services.sign_in_link(token)
            return render(request, "accounts/link_confirm.html", {"user_shown": link.user})
        user = services.redeem_sign_in_link(token)
    except services.LinkError as error:
        return render(request, "accounts/link_refused.html", {"reason": str(error)}, status=403)
    login(request, user, backend=SIGN_IN_BACKEND)
    record_sign_in_link(request)
    return redirect("accounts:home")


@signed_in
@require_safe
def account(request: HttpRequest) -> HttpResponse:
    person = person_of(request)
    context = {
        "section": "account",
        "confirmed": queries.is_confirmed(person),
        "mail_leaves": bool(settings.STARLING_SMTP_URL),
        "invitations": invitations_of(person),
    }
    return render(request, "accounts/account.html", context)


@signed_in
@require_POST
def sign_out_everywhere(request: HttpRequest) -> HttpResponse:
    """End every session, socket and token of this person, including this browser's session."""
    person = person_of(request)
    if not person.has_usable_password():
        messages.info(request, "Set a password first: without one you could not sign in again.")
        return redirect("account_set_password")
    person.end_access()
    logout(request)
    messages.success(request, "You are signed out everywhere. Your tokens no longer work.")
    return redirect("account_login")


@signed_in
def email(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
    """The page of a person's addresses. Changes require a fresh sign-in. Only a confirmed address becomes primary."""
    if request.method != "POST" or not any(name in request.POST for name in _CHANGES_ADDRESSES):
        page: HttpResponseBase = allauth_views.email(request, *args, **kwargs)
        return page
    chosen = request.POST.get("email", "").lower()
    if "action_primary" in request.POST and chosen not in queries.confirmed_addresses(person_of(request)):
        messages.error(request, "Confirm this address first, then make it primary.")
        return redirect("account_email")
    answer: HttpResponseBase = _change_addresses(request, *args, **kwargs)
    return answer


def confirm_email(request: HttpRequest, key: str) -> HttpResponseBase:
    """Confirm an address. The person must be signed in to the account that gave it.

    So a stranger who caused the mail gains nothing when its reader clicks.
    """
    confirmation = EmailConfirmationHMAC.from_key(key)
    if confirmation is None or confirmation.email_address.user_id == request.user.pk:
        page: HttpResponseBase = allauth_views.confirm_email(request, key=key)
        return page
    if not request.user.is_authenticated:
        return redirect_to_login(request.path)
    context = {"address": confirmation.email_address.email}
    return render(request, "accounts/address_of_another.html", context, status=403)


_change_addresses = fresh_sign_in(allauth_views.email)


@sensitive_post_parameters("password1", "password2")
@signed_in
def set_password(request: HttpRequest) -> HttpResponseBase:
    """Set the first password. Only people who signed in by a link within the last hour may."""
    person = person_of(request)
    if not person.has_usable_password() and not may_set_first_password(request):
        context = {"email": person.email}
        return render(request, "accounts/link_wanted.html", context, status=403)
    answer: HttpResponseBase = allauth_views.password_set(request)
    if person.has_usable_password() and request.method == "POST":
        return resume_request_after_password(request) or answer
    return answer


ROLES_IN_WORDS = (
    (Role.VIEWER, "sees everything, changes nothing"),
    (Role.EDITOR, "also launches and stops jobs and sets budgets"),
    (Role.OWNER, "also decides who is a member"),
)


class MemberForm(forms.Form):
    email = forms.EmailField(label="E-mail address", max_length=254)
    role = forms.ChoiceField(label="Role", choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(label="Role", choices=Role.choices)


@project_page()
@require_safe
def members(request: HttpRequest, project: Project) -> HttpResponse:
    return _members_page(request, project, MemberForm())


@project_action("owner")
@fresh_sign_in
@never_cache
@sensitive_variables("path")
def invite(request: HttpRequest, project: Project) -> HttpResponse:
    """Invite one person, by mail too where mail leaves. Only this response shows the link."""
    form = MemberForm(request.POST)
    if form.is_valid():
        try:
            made, path = services.invite(project, by=person_of(request), **form.cleaned_data)
        except services.MembershipError as error:
            form.add_error("email", str(error))
        else:
            link = f"{settings.STARLING_BASE_URL}{path}"
            unsent = send_invitation_mail(made, link, person_of(request))
            return _members_page(request, project, MemberForm(), made=made, link=link, unsent=unsent)
    return _members_page(request, project, form, status=422)


@project_action("owner", archived=True)
def withdraw(request: HttpRequest, project: Project, invitation_id: int) -> HttpResponse:
    invitation = get_object_or_404(Invitation, pk=invitation_id, project=project)
    services.withdraw(invitation)
    messages.success(request, f"The invitation of {invitation.email} is withdrawn. Its link no longer works.")
    return redirect("accounts:members", project.slug)


@project_action("owner")
@fresh_sign_in
def change_role(request: HttpRequest, project: Project, membership_id: int) -> HttpResponse:
    membership = queries.member_in(project, membership_id)
    membership.version.refuse_if_stale(request.POST)
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise services.MembershipError("A role is viewer, editor or owner.")
    services.change_role(membership, form.cleaned_data["role"])
    messages.success(request, f"{membership.user.email} is {form.cleaned_data['role']} now.")
    return redirect("accounts:members", project.slug)


@project_action("viewer")
def remove_member(request: HttpRequest, project: Project, membership_id: int) -> HttpResponse:
    """Owners remove any member. Every member may leave."""
    membership = member_to_remove(request.user, project, membership_id)
    membership.version.refuse_if_stale(request.POST)
    leaving = membership.user_id == request.user.pk
    services.remove_member(membership)
    if leaving:
        messages.success(request, f"You left {project.name}.")
        return redirect("accounts:home")
    messages.success(request, f"{membership.user.email} is no longer a member.")
    return redirect("accounts:members", project.slug)


# Pages of invited people


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def join(request: HttpRequest, token: str) -> HttpResponse:
    """The page of an invitation's link: the project, the role, and a button that joins."""
    try:
        invitation = services.invitation_of_token(token)
    except services.InvitationOver as over:
        return render(request, "accounts/invitation_over.html", {"reason": str(over)}, status=404)
    if request.method == "POST" and request.user.is_authenticated:
        return _accept(request, invitation)
    context = {
        "invitation": invitation,
        "must_confirm": request.user.is_authenticated and services.must_confirm_first(person_of(request)),
        "may_sign_up": settings.STARLING_SIGNUP == "open" or invitation.account_id is None,
        "only_as": invitation.email if settings.STARLING_SIGNUP != "open" else "",
    }
    return render(request, "accounts/join.html", context)


@signed_in
@require_POST
def accept(request: HttpRequest, invitation_id: int) -> HttpResponse:
    """Accept an invitation of an address that this person has confirmed. The account's page lists them."""
    return _accept(request, get_object_or_404(services.invitations_of(person_of(request)), pk=invitation_id))


@signed_in
@require_POST
def decline(request: HttpRequest, invitation_id: int) -> HttpResponse:
    services.withdraw(get_object_or_404(services.invitations_of(person_of(request)), pk=invitation_id))
    messages.success(request, "You declined the invitation.")
    return redirect("accounts:account")


def _accept(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    try:
        membership = services.accept(invitation, person_of(request))
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
    unsent: str = "",
    status: int = 200,
) -> HttpResponse:
    owner = request.membership.allows("owner")  # type: ignore[attr-defined]
    context = {
        "section": "members",
        "members": queries.members_of(project),
        "invitations": services.open_invitations(project) if owner else [],
        "form": form,
        "made": made,
        "link": link,
        "unsent": unsent,
        "mail_leaves": bool(settings.STARLING_SMTP_URL),
        "roles": Role.choices,
        "roles_in_words": ROLES_IN_WORDS,
    }
    return render(request, "accounts/members.html", context, status=status)
