"""Pages about people: the way in, and the account."""

from __future__ import annotations

from typing import Any

from allauth.account import views as allauth_views
from allauth.account.models import EmailConfirmationHMAC
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login, logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from webapp.accounts import fresh_sign_in, queries, services
from webapp.accounts.access import SESSION_KEY, person_of
from webapp.accounts.invitations import invitations_of

SIGN_IN_BACKEND = "webapp.accounts.sign_in.AddressBackend"
_CHANGES_ADDRESSES = ("action_add", "action_primary", "action_remove")


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Redirect to the overview of the project that was opened last."""
    person = person_of(request)
    projects = queries.projects_of(person)
    project = projects.filter(slug=request.session.get(SESSION_KEY, "")).first() or projects.first()
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
    fresh_sign_in.record_sign_in_link(request)
    return redirect("accounts:home")


@login_required
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


@login_required
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


@login_required
def email(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
    """The page of a person's addresses. Changes require a fresh sign-in. Only a confirmed address becomes primary."""
    if request.method != "POST" or not any(name in request.POST for name in _CHANGES_ADDRESSES):
        page: HttpResponseBase = allauth_views.email(request, *args, **kwargs)
        return page
    chosen = request.POST.get("email", "").lower()
    if "action_primary" in request.POST and chosen not in queries.confirmed_addresses(person_of(request)):
        messages.error(request, "Confirm this address first: then it can become the first one.")
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


_change_addresses = fresh_sign_in.fresh_sign_in(allauth_views.email)


@sensitive_post_parameters("password1", "password2")
@login_required
def set_password(request: HttpRequest) -> HttpResponseBase:
    """Set the first password. Only people who signed in by a link within the last hour may."""
    person = person_of(request)
    if not person.has_usable_password() and not fresh_sign_in.may_set_first_password(request):
        context = {"email": person.email}
        return render(request, "accounts/link_wanted.html", context, status=403)
    answer: HttpResponseBase = allauth_views.password_set(request)
    if person.has_usable_password() and request.method == "POST":
        return fresh_sign_in.resume_request_after_password(request) or answer
    return answer
