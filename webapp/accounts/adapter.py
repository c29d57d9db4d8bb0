"""Where sign-in follows this installation's settings instead of allauth's defaults."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.STARLING_SIGNUP == "open")

    def send_confirmation_mail(self, request: HttpRequest, emailconfirmation: Any, signup: bool) -> None:
        """If another account has confirmed the address, mail that it exists. The page is the same."""
        address = emailconfirmation.email_address
        if address.can_set_verified():
            super().send_confirmation_mail(request, emailconfirmation, signup)
        else:
            self.send_account_already_exists_mail(address.email)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
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
