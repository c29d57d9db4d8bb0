"""Clients of people who are signed in, with or without having given the password just now."""

from __future__ import annotations

from typing import Any

from allauth.account.internal.flows.reauthentication import reauthenticate_by_password
from django.http import HttpRequest
from django.test import Client

PASSWORD = "a long pass phrase"


def signed_in(user: Any, *, fresh: bool = True) -> Client:
    """A browser of this person's, who has just given the password unless `fresh` says otherwise."""
    client = Client()
    sign_in(client, user, fresh=fresh)
    return client


def sign_in(client: Client, user: Any, *, fresh: bool = True) -> None:
    if fresh and not user.has_usable_password():
        user.set_password(PASSWORD)
        user.save()
    client.force_login(user)
    if fresh:
        confirm(client, user)


def confirm(client: Client, user: Any) -> None:
    """As if the password had just been given once more, as what costs money asks for."""
    request = HttpRequest()
    request.session, request.user = client.session, user
    reauthenticate_by_password(request)
    request.session.save()
