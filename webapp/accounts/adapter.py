"""Where sign-in follows this installation's settings instead of allauth's defaults."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.http import HttpRequest


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.STARLING_SIGNUP == "open")

    def add_message(self, *args: object, **kwargs: object) -> None:
        """Says nothing: allauth's toasts repeat what its next page shows."""
