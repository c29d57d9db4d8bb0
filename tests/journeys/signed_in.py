"""A browser tab that is signed in, without going through the sign-in page."""

from typing import TYPE_CHECKING, Any

from django.conf import settings

from tests import signed_in

if TYPE_CHECKING:
    from playwright.sync_api import Page


def sign_in(page: "Page", site: str, user: Any) -> None:
    """Gives the tab's browser a session of this person, who has just given the password."""
    client = signed_in.signed_in(user)
    value = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": value, "url": site}])


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
