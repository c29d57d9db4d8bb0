"""How allauth signs people up and in: this installation's settings, and several accounts that claim one address."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.auth_backends import AuthenticationBackend
from allauth.account.forms import ResetPasswordForm
from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.core.cache import cache
from django.core.exceptions import ImproperlyConfigured, PermissionDenied, ValidationError
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.http import HttpRequest
from django.urls import reverse

from webapp.accounts.models import Invitation, User
from webapp.accounts.queries import confirmed_addresses
from webapp.accounts.services import InvitationOver, claim_for_sign_up, sign_up_invitation

log = logging.getLogger(__name__)

_PASSWORDS_TRIED = 2
"""At least. An address with one account takes as long as one with two, so that timing reveals nothing."""


_RESET_EVERY_S = 60 * 60


class AddressBackend(AuthenticationBackend):
    """Finds the account with this address and password: first one that confirmed the address, then the oldest."""

    def _authenticate_by_email(self, email: str, password: str) -> User | None:
        accounts = _accounts_with(email)
        for _ in range(_PASSWORDS_TRIED - len(accounts)):
            self._mitigate_timing_attack(password)
            self._did_check_password = True
        fitting = [account for account in accounts if self._check_password(account, password)]
        return fitting[0] if fitting else None


def _accounts_with(email: str) -> list[User]:
    mine = EmailAddress.objects.filter(user_id=OuterRef("pk"), email=email.lower())
    accounts = User.objects.annotate(has=Exists(mine), confirmed=Exists(mine.filter(verified=True)))
    return list(accounts.filter(Q(has=True) | Q(email=email.lower())).order_by("-confirmed", "pk"))


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Where sign-up is closed, an invitation's link opens it: for the invited address, once."""
        return settings.STARLING_SIGNUP == "open" or _invitation_of(request) is not None

    def clean_email(self, email: str) -> str:
        address: str = super().clean_email(email)
        invitation = self._needed_invitation()
        if invitation is not None and address.lower() != invitation.email:
            raise ValidationError(f"This invitation is for {invitation.email}. Sign up with that address.")
        return address

    def save_user(self, request: HttpRequest, user: User, form: Any, commit: bool = True) -> User:
        """Create the account; where sign-up is closed, its invitation creates no other one."""
        with transaction.atomic():
            made: User = super().save_user(request, user, form, commit=commit)
            if (invitation := self._needed_invitation()) is not None:
                _claim(invitation, made)
        return made

    def _needed_invitation(self) -> Invitation | None:
        """The invitation without which this request could not sign up; None where sign-up is open."""
        if settings.STARLING_SIGNUP == "open" or self.request.user.is_authenticated:
            return None
        return _invitation_of(self.request)

    def send_confirmation_mail(self, request: HttpRequest, emailconfirmation: Any, signup: bool) -> None:
        """If another account has confirmed the address, mail that it exists. The page is the same."""
        address = emailconfirmation.email_address
        if address.can_set_verified():
            super().send_confirmation_mail(request, emailconfirmation, signup)
        else:
            self.send_account_already_exists_mail(address.email)

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a letter whose links lead to the site's own address, whatever host the request named.

        A mail server is not waited for, so the time of an answer does not reveal that a letter was sent. Nor does a
        letter that could not be sent or written: the log has it.
        """
        named, own = self.request.build_absolute_uri("/"), f"{settings.STARLING_BASE_URL}/"
        links = {name: value for name, value in context.items() if str(value).startswith(named)}
        site = SimpleNamespace(domain=urlsplit(own).netloc, name=urlsplit(own).netloc)
        rest = {"request": self.request, "email": email, "current_site": site, **context}
        letter = self.render_mail(
            template_prefix, email, rest | {name: own + link[len(named) :] for name, link in links.items()}
        )
        if settings.STARLING_SMTP_URL:
            threading.Thread(target=_send, args=[letter]).start()
        else:
            _send(letter)

    def get_reauthentication_methods(self, user: User | AnonymousUser) -> list[dict[str, Any]]:
        """The ways to confirm a sign-in. A person without a password sets one."""
        if user.is_authenticated and not user.has_usable_password():
            page = reverse("account_set_password")
            return [{"id": "set_password", "description": "Set a password", "url": page}]
        methods: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        return methods

    def get_password_change_redirect_url(self, request: HttpRequest) -> str:
        return reverse("accounts:account")

    def add_message(self, *args: object, **kwargs: object) -> None:
        """Adds no message: allauth's toasts repeat what its next page shows."""


def _send(letter: EmailMessage) -> None:
    try:
        letter.send()
    # A mail server's own refusals are of the first kind, a folder for letters that cannot be made of the second.
    except (OSError, ImproperlyConfigured) as error:
        log.error("A letter (%s) could not be sent: %s", letter.subject, error)


def _claim(invitation: Invitation, user: User) -> None:
    try:
        claim_for_sign_up(invitation, user)
    except InvitationOver as over:
        raise PermissionDenied(str(over)) from None


def _invitation_of(request: HttpRequest) -> Invitation | None:
    """The invitation to which a sign-up leads on: `next` is its link."""
    return sign_up_invitation(request.POST.get("next") or request.GET.get("next") or "")


class ResetForm(ResetPasswordForm):
    """Sends the link to a new password to an address that its account has confirmed, once an hour. Sends no other mail.

    The page is the same for every address.
    """

    users: list[Any]

    def clean_email(self) -> str:
        email: str = super().clean_email()
        self.users = [user for user in self.users if email.lower() in confirmed_addresses(user)]
        return email

    def save(self, request: HttpRequest, **options: Any) -> str:
        email: str = self.cleaned_data["email"]
        if cache.add(f"password reset of {email.lower()}", True, _RESET_EVERY_S) and self.users:
            super().save(request, **options)
        return email
