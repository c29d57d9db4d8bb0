"""What outlasts a session asks for a fresh sign-in: a stolen one, without the password, wins nothing that stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from tests.factories import make_connection, make_project, make_user, make_webhook
from tests.signed_in import signed_in
from webapp.accounts.models import Membership, User
from webapp.accounts.services import one_time_sign_in_path
from webapp.alerts.models import Channel, ChannelSecret
from webapp.api.models import ApiToken
from webapp.connections.models import SealedSecret

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"
SECRET = "s3cret/of+twenty=letters"


class Scene:
    def __init__(self, password: str | None = PASSWORD) -> None:
        self.owner = make_user("ada@example.org", password)
        self.project = make_project(self.owner)
        self.other = self.project.memberships.create(user=make_user("bob@example.org"), role="viewer")
        self.connection = make_connection(self.project, self.owner, secret="")
        self.channel = make_webhook(self.project)

    def state(self) -> list[Any]:
        kinds = (EmailAddress, Membership, ApiToken, Channel, ChannelSecret, SealedSecret)
        return [list(kind.objects.order_by("pk").values()) for kind in kinds] + [
            list(self.project.invitations.values())
        ]


Posted = tuple[str, dict[str, str]]
ACTS: dict[str, Callable[[Scene], Posted]] = {
    "an invitation": lambda scene: (
        reverse("accounts:invite", args=[scene.project.slug]),
        {"email": "eve@example.org", "role": "viewer"},
    ),
    "an owner": lambda scene: (
        reverse("accounts:change_role", args=[scene.project.slug, scene.other.pk]),
        {"role": "owner"},
    ),
    "an address": lambda scene: ("/accounts/email/", {"action_add": "", "email": "eve@example.org"}),
    "another first address": lambda scene: (
        "/accounts/email/",
        {"action_primary": "", "email": "ada@example.com"},
    ),
    "one address less": lambda scene: (
        "/accounts/email/",
        {"action_remove": "", "email": "ada@example.com"},
    ),
    "a reading token": lambda scene: (reverse("api:tokens"), {"name": "CI", "ability": "", "days": "30"}),
    "a managing token": lambda scene: (
        reverse("api:tokens"),
        {"name": "CI", "ability": "manage", "days": "30"},
    ),
    "a cloud identity": lambda scene: (
        reverse("connections:identity", args=[scene.project.slug, scene.connection.pk]),
        {"access_key_id": "AKIAABCDEFGHIJKLMNOP", "secret_access_key": SECRET},
    ),
    "a channel": lambda scene: (
        reverse("alerts:channel_new", args=[scene.project.slug, "webhook"]),
        {"name": "Hook", "url": f"http://127.0.0.1:9/{SECRET}"},
    ),
    "another channel": lambda scene: (
        reverse("alerts:channel_change", args=[scene.project.slug, scene.channel.pk]),
        {"name": "Renamed", "kinds": ["budget"]},
    ),
    "a channel's key": lambda scene: (
        reverse("alerts:channel_key", args=[scene.project.slug, scene.channel.pk]),
        {},
    ),
}


@pytest.fixture(autouse=True)
def _hooks_on_this_machine(settings: Any) -> None:
    settings.STARLING_ALERT_HOSTS = ["127.0.0.1:9"]


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    EmailAddress.objects.create(user=made.owner, email="ada@example.com", verified=True)
    return made


@pytest.mark.parametrize("name", ACTS)
def test_a_stolen_session_without_the_password_wins_nothing_that_stays(name: str, scene: Scene) -> None:
    address, given = ACTS[name](scene)
    before = scene.state()
    stolen = signed_in(scene.owner, fresh=False)
    response = stolen.post(address, given)
    assert (response.status_code, response.url.partition("?")[0]) == (302, "/accounts/reauthenticate/")
    wrong = stolen.post(response.url, {"password": "guessed"})
    assert wrong.status_code == 200
    assert scene.state() == before
    for session in Session.objects.all():
        assert SECRET not in str(session.get_decoded()), "a secret waits in the session's row, unsealed"


@pytest.mark.parametrize("name", ACTS)
def test_with_the_password_it_is_done(name: str, scene: Scene) -> None:
    address, given = ACTS[name](scene)
    before = scene.state()
    answer = signed_in(scene.owner).post(address, given)
    assert not answer.headers.get("Location", "").startswith("/accounts/reauthenticate/")
    assert scene.state() != before


@pytest.mark.parametrize("name", ACTS)
def test_people_of_a_sign_in_link_set_a_password_first(name: str) -> None:
    scene = Scene(password=None)
    EmailAddress.objects.create(user=scene.owner, email="ada@example.com", verified=True)
    client = Client()
    client.post(one_time_sign_in_path(scene.owner))
    address, given = ACTS[name](scene)
    before = scene.state()
    response = client.post(address, given)
    assert (response.status_code, response.url.partition("?")[0]) == (302, "/accounts/password/set/")
    assert scene.state() == before
    client.post(response.url, {"password1": PASSWORD, "password2": PASSWORD})
    assert User.objects.get(pk=scene.owner.pk).check_password(PASSWORD)
    client.post(address, given)
    assert scene.state() != before


def test_a_stolen_session_of_a_link_cannot_set_the_password_later(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(password=None)
    stolen = signed_in(scene.owner, fresh=False)
    given = {"password1": PASSWORD, "password2": PASSWORD}
    assert "sign-in link" in stolen.post("/accounts/password/set/", given).content.decode()
    client = Client()
    client.post(one_time_sign_in_path(scene.owner))
    later = time.time() + 3601
    monkeypatch.setattr("webapp.accounts.fresh_sign_in.time.time", lambda: later)
    assert "sign-in link" in client.post("/accounts/password/set/", given).content.decode()
    assert not User.objects.get(pk=scene.owner.pk).has_usable_password()


def test_what_was_requested_is_done_once_the_password_is_given(scene: Scene) -> None:
    address, given = ACTS["an owner"](scene)
    client = signed_in(scene.owner, fresh=False)
    response = client.post(address, given)
    client.post(response.url, {"password": PASSWORD})
    scene.other.refresh_from_db()
    assert scene.other.role == "owner"


def test_a_person_who_has_just_signed_in_with_the_password_is_not_asked_again(scene: Scene) -> None:
    client = Client()
    client.post("/accounts/login/", {"login": "ada@example.org", "password": PASSWORD})
    address, given = ACTS["an owner"](scene)
    client.post(address, given)
    scene.other.refresh_from_db()
    assert scene.other.role == "owner"
