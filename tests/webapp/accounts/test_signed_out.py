"""A new password, a lost account and "sign out everywhere" end sessions, sockets and tokens."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail
from django.core.management import call_command
from django.test import Client

from tests.factories import make_job, make_project, make_user
from tests.signed_in import signed_in
from tests.webapp.api_callers import ApiCaller
from webapp.accounts.models import Role, User
from webapp.accounts.services import remove_member
from webapp.jobs.events.viewers import SIGNED_OUT, Viewer, check_access

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"
NEW = "a better horse"


class Scene:
    """A person with a session, a socket's session and a token."""

    def __init__(self) -> None:
        self.user = make_user("ada@example.org", PASSWORD)
        self.project = make_project(self.user)
        self.job = make_job(self.project, self.user)
        self.browser = signed_in(self.user)
        self.elsewhere = signed_in(self.user)
        self.token = ApiCaller(self.user)

    def socket(self) -> Role | int:
        """In which role a socket under the session elsewhere may look, or the code it is closed with."""
        viewer = Viewer(self.elsewhere.cookies["sessionid"].value, self.job.pk)
        return check_access([viewer])[viewer]

    def holds(self) -> tuple[bool, bool, bool]:
        """Whether the session elsewhere, a socket under it, and the token still open something."""
        return (
            self.elsewhere.get("/account/").status_code == 200,
            isinstance(self.socket(), Role),
            self.token.get("/projects").status_code != 401,
        )


ALL, NONE = (True, True, True), (False, False, False)


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    assert made.holds() == ALL
    return made


def _change(scene: Scene) -> None:
    given = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    scene.browser.post("/accounts/password/change/", given)


def _reset(scene: Scene) -> None:
    Client().post("/accounts/password/reset/", {"email": "ada@example.org"})
    link = re.search(r"https?://[^/\s]+(/accounts/password/reset/key/\S+)", mail.outbox[-1].body)
    assert link
    visitor = Client()
    form = visitor.get(link.group(1), follow=True)
    visitor.post(form.redirect_chain[-1][0], {"password1": NEW, "password2": NEW})


def _shell(scene: Scene) -> None:
    user = User.objects.get(pk=scene.user.pk)
    user.set_password(NEW)
    user.save()


def _sign_out_everywhere(scene: Scene) -> None:
    scene.browser.post("/account/sign-out-everywhere/")


def _switch_off(scene: Scene) -> None:
    User.objects.filter(pk=scene.user.pk).update(is_active=False)


@pytest.mark.parametrize("act", [_change, _reset, _shell, _sign_out_everywhere, _switch_off])
def test_it_ends_sessions_sockets_and_tokens(act: Any, scene: Scene) -> None:
    act(scene)
    assert scene.holds() == NONE
    assert scene.socket() == SIGNED_OUT


def test_a_change_of_password_keeps_the_browser_it_was_made_in(scene: Scene) -> None:
    _change(scene)
    assert scene.browser.get("/account/").status_code == 200
    assert scene.user.check_password(PASSWORD)
    assert User.objects.get(pk=scene.user.pk).check_password(NEW)


def test_signing_out_everywhere_ends_this_browser_too_and_leaves_the_password(scene: Scene) -> None:
    _sign_out_everywhere(scene)
    assert scene.browser.get("/account/").status_code == 302
    assert Client().post("/accounts/login/", {"login": "ada@example.org", "password": PASSWORD}).url == "/"


def test_no_one_without_a_password_signs_out_everywhere() -> None:
    """They would have no way back in."""
    user = make_user()
    client = signed_in(user, fresh=False)
    answer = client.post("/account/sign-out-everywhere/")
    assert answer.url.startswith("/accounts/password/set/")
    assert client.get("/account/").status_code == 200


def test_signing_in_again_with_a_stronger_hash_ends_nothing(scene: Scene, settings: Any) -> None:
    """The password is the same then."""
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.PBKDF2PasswordHasher",
        *settings.PASSWORD_HASHERS,
    ]
    assert User.objects.get(pk=scene.user.pk).check_password(PASSWORD)
    assert User.objects.get(pk=scene.user.pk).password.startswith("pbkdf2")
    assert scene.token.get("/projects").status_code == 200


def test_a_person_who_is_removed_loses_the_projects_token_and_keeps_the_others() -> None:
    owner, other = make_user(), make_user()
    project = make_project(owner)
    membership = project.memberships.create(user=other, role="editor")
    here, everywhere = ApiCaller(other, project=project), ApiCaller(other)
    assert here.get(f"/projects/{project.slug}").status_code == 200
    remove_member(membership)
    assert here.get(f"/projects/{project.slug}").status_code == 401
    assert everywhere.get(f"/projects/{project.slug}").status_code == 404
    project.memberships.create(user=other, role="editor")
    assert here.get(f"/projects/{project.slug}").status_code == 401


def test_a_new_password_set_by_the_operator_ends_tokens(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getpass", lambda **_: NEW)
    call_command("changepassword", "ada@example.org")
    assert scene.holds() == NONE
