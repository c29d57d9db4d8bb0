"""Members by the API: the same rules as on their page, and a project that keeps an owner."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import make_project, make_user
from tests.members import add_member
from tests.signed_in import signed_in
from tests.webapp.api_callers import ApiCaller
from webapp.accounts.models import Membership

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Any:
    return make_user("ada@example.org")


@pytest.fixture
def base(owner: Any) -> str:
    return f"/projects/{make_project(owner).slug}/members"


@pytest.fixture
def invitations(base: str) -> str:
    return base.replace("members", "invitations")


def test_a_member_is_invited_given_a_role_and_goes(owner: Any, base: str, invitations: str) -> None:
    call = ApiCaller(owner)
    made = call.post(invitations, {"email": "Bob@example.org", "role": "editor"})
    assert made.status_code == 201
    body = made.json()
    assert (body["email"], body["role"], body["invited_by"]) == ("bob@example.org", "editor", owner.email)
    bob = make_user("bob@example.org")
    signed_in(bob).post(body["link"].removeprefix("http://127.0.0.1:8000"))
    address = f"{base}/{bob.memberships.get().pk}"
    member = call.get(address).json()
    assert (member["email"], member["role"], member["you"]) == ("bob@example.org", "editor", False)
    refused = call.post(invitations, {"email": "bob@example.org"})
    assert (refused.status_code, "editor of this" in refused.json()["why"]) == (409, True)
    assert call("PUT", address, {"role": "viewer"}).json()["role"] == "viewer"
    assert call("PUT", address, {"role": "emperor"}).status_code == 422
    assert call("DELETE", address).status_code == 204
    assert call.get(address).status_code == 404
    assert ApiCaller(bob).get(base).status_code == 404


def test_open_invitations_are_listed_without_their_links_and_withdrawn(owner: Any, invitations: str) -> None:
    """And answer the same whether or not the address has an account."""
    make_user("bob@example.org")
    call = ApiCaller(owner)
    made = [call.post(invitations, {"email": f"{name}@example.org"}) for name in ("bob", "ghost")]
    assert [one.status_code for one in made] == [201, 201]
    first, second = (one.json() for one in made)
    assert {key for key in first if first[key] == second[key]} == {"role", "invited_by", "not_mailed"}
    listed = call.get(invitations).json()["results"]
    assert [one["email"] for one in listed] == ["bob@example.org", "ghost@example.org"]
    assert "link" not in listed[0]
    assert call("DELETE", f"{invitations}/{first['id']}").status_code == 204
    assert [one["email"] for one in call.get(invitations).json()["results"]] == ["ghost@example.org"]
    assert call("DELETE", f"{invitations}/{first['id']}").status_code == 404
    gone = signed_in(make_user()).get(first["link"].removeprefix("http://127.0.0.1:8000"))
    assert gone.status_code == 404


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


def test_pages_of_members_miss_no_one(owner: Any, base: str) -> None:
    project = Membership.objects.get().project
    people = [owner.email, *(add_member(project, make_user().email, "viewer").user.email for _ in range(4))]
    call, seen, after = ApiCaller(owner, scopes=()), [], 0
    while after is not None:
        page = call.get(f"{base}?limit=2&after={after}").json()
        assert len(page["results"]) <= 2
        seen += [one["email"] for one in page["results"]]
        after = page["next"]
    assert seen == people
