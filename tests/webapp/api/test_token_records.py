"""What a token did stays on record, and every token says when it ends."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.factories import FixedClock, make_project, make_user
from tests.members import add_member
from tests.webapp.api_callers import ApiCaller
from webapp.api.models import ApiToken, Deed
from webapp.api.tokens import make_token, valid_tokens

pytestmark = pytest.mark.django_db


def test_the_record_of_what_a_token_did_survives_its_persons_account() -> None:
    owner, bob = make_user(), make_user("bob@example.org")
    project = make_project(owner)
    add_member(project, bob.email, "owner")
    guest = add_member(project, make_user().email, "viewer")
    path = f"/projects/{project.slug}/members/{guest.pk}"
    caller = ApiCaller(bob)
    label = f"test ({caller.token.pk})"
    assert caller("PUT", path, {"role": "owner"}).status_code == 200
    bob.delete()
    assert not ApiToken.objects.exists()
    lines = list(Deed.objects.order_by("pk").values_list("person", "token_name", "what", "outcome"))
    assert lines == [
        ("bob@example.org", label, "Token made", ""),
        ("bob@example.org", label, f"PUT /api/v1{path}", "200"),
    ]


def test_it_survives_the_tokens_project() -> None:
    owner = make_user("ada@example.org")
    project = make_project(owner)
    make_token(user=owner, name="CI", scopes=(), project=project)
    project.delete()
    assert not ApiToken.objects.exists()
    assert Deed.objects.values_list("person", "what").get() == ("ada@example.org", "Token made")


def test_a_token_ends_after_ninety_days_unless_it_says_otherwise() -> None:
    clock, user = FixedClock(), make_user()
    token, _ = make_token(user=user, name="CI", scopes=(), clock=clock)
    assert token.expires_at == clock.now() + timedelta(days=90)
    clock.forward(90 * 86_400)
    assert not valid_tokens(user, clock=clock).exists()


def test_each_answer_says_when_the_token_ends() -> None:
    caller = ApiCaller(make_user(), days=7)
    answer = caller.get("/projects")
    assert datetime.fromisoformat(answer.headers["Starling-Token-Ends"]) == caller.token.expires_at
