"""Members by the API: the same rules as on their page, and a project that keeps an owner."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import make_project, make_user
from tests.webapp.api_callers import ApiCaller
from webapp.accounts.models import Membership
from webapp.accounts.services import add_member

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Any:
    return make_user("ada@example.org")


@pytest.fixture
def base(owner: Any) -> str:
    return f"/projects/{make_project(owner).slug}/members"


def test_a_member_comes_is_given_a_role_and_goes(owner: Any, base: str) -> None:
    call = ApiCaller(owner)
    early = call.post(base, {"email": "Bob@example.org", "role": "editor"})
    assert early.status_code == 409
    assert "Nobody has signed up as bob@example.org yet" in early.json()["why"]
    bob = make_user("bob@example.org")
    made = call.post(base, {"email": "Bob@example.org", "role": "editor"})
    assert made.status_code == 201
    told, address = made.json(), made.headers["Location"]
    assert (told["email"], told["role"], told["you"]) == ("bob@example.org", "editor", False)
    assert call.get(address).json() == told
    assert "editor of this project already" in call.post(base, {"email": "bob@example.org"}).json()["why"]
    assert call("PUT", address, {"role": "viewer"}).json()["role"] == "viewer"
    assert call("PUT", address, {"role": "emperor"}).status_code == 422
    assert call("DELETE", address).status_code == 204
    assert call.get(address).status_code == 404
    assert ApiCaller(bob).get(base).status_code == 404


def test_the_last_owner_stays_and_everybody_may_leave(owner: Any, base: str) -> None:
    call = ApiCaller(owner)
    (mine,) = call.get(base).json()["results"]
    for refused in (
        call("DELETE", f"{base}/{mine['id']}"),
        call("PUT", f"{base}/{mine['id']}", {"role": "viewer"}),
    ):
        assert refused.status_code == 409
        assert "only owner" in refused.json()["why"]
    guest = make_user()
    membership = add_member(Membership.objects.get(pk=mine["id"]).project, guest.email, "viewer")
    theirs = ApiCaller(guest)
    assert theirs("DELETE", f"{base}/{mine['id']}").status_code == 403
    assert theirs("DELETE", f"{base}/{membership.pk}").status_code == 204
    assert list(Membership.objects.values_list("user", flat=True)) == [owner.pk]


def test_pages_of_members_miss_nobody(owner: Any, base: str) -> None:
    project = Membership.objects.get().project
    people = [owner.email, *(add_member(project, make_user().email, "viewer").user.email for _ in range(4))]
    call, seen, after = ApiCaller(owner, scopes=()), [], 0
    while after is not None:
        page = call.get(f"{base}?limit=2&after={after}").json()
        assert len(page["results"]) <= 2
        seen += [one["email"] for one in page["results"]]
        after = page["next"]
    assert seen == people
