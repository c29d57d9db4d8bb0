"""A browser tab that is signed in, without going through the sign-in page."""

from typing import TYPE_CHECKING, Any

from allauth.account.internal.flows.reauthentication import reauthenticate_by_password
from django.conf import settings
from django.http import HttpRequest
from django.test import Client

if TYPE_CHECKING:
    from playwright.sync_api import Page


def sign_in(page: "Page", site: str, user: Any) -> None:
    """Gives the tab's browser a session of this person, who has just given the password."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    confirm(client, user)
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": value, "url": site}])


def confirm(client: Client, user: Any) -> None:
    """As if the password had just been given once more, as what costs money asks for."""
    request = HttpRequest()
    request.session, request.user = client.session, user
    reauthenticate_by_password(request)
    request.session.save()


def watch_for_faults(page: "Page") -> list[str]:
    """Collects what the page's scripts and its security policy complain of."""
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if _is_fault(message) else None)
    return faults


def _is_fault(message: Any) -> bool:
    # Pages that say 4xx on purpose, and sockets that a test cuts, are no faults of a script.
    expected = ("Failed to load resource", "WebSocket connection")
    return message.type == "error" and not message.text.startswith(expected)
