"""Members come by invitation: for one person, valid 7 days, once."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from tests.factories import FixedClock, make_project, make_user
from tests.signed_in import signed_in
from webapp.accounts import services
from webapp.accounts.invitation_mail import MAILS_A_DAY_TO_ONE, send_invitation_mail
from webapp.accounts.models import Invitation, Membership, User
from webapp.accounts.services import MembershipError, create_person

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"


@pytest.fixture
def owner() -> Any:
    return make_user("ada@example.org")


@pytest.fixture
def project(owner: Any) -> Any:
    return make_project(owner, "Walking robots")


def invite(project: Any, owner: Any, email: str = "bob@example.org", role: str = "editor") -> str:
    """As an owner does it on the page; the link that the answer shows, without the site."""
    page = signed_in(owner).post(f"/p/{project.slug}/members/invite/", {"email": email, "role": role})
    assert page.status_code == 200
    assert "no-store" in page.headers["Cache-Control"]
    (link,) = re.findall(r"http://127\.0\.0\.1:8000(/join/[\w:-]+/)", page.content.decode())
    return str(link)


def test_the_link_makes_one_person_a_member_once(project: Any, owner: Any) -> None:
    link = invite(project, owner)
    bob, eve = create_person("bob@example.org"), create_person("eve@example.org")
    hers, his = signed_in(eve), signed_in(bob)
    page = his.get(link).content.decode()
    assert re.search(r"ada@example\.org .*editor", page)
    assert not project.memberships.filter(user=bob).exists()
    assert his.post(link).headers["Location"] == f"/p/{project.slug}/"
    assert project.memberships.get(user=bob).role == "editor"
    again = hers.post(link)
    assert (again.status_code, "accepted or withdrawn" in again.content.decode()) == (404, True)
    assert not project.memberships.filter(user=eve).exists()


def test_the_link_is_shown_once_and_its_secret_is_not_stored(project: Any, owner: Any) -> None:
    link = invite(project, owner)
    secret = link.split("/")[2].split(":")[0]
    assert secret not in str(Invitation.objects.values().get())
    later = signed_in(owner).get(f"/p/{project.slug}/members/").content.decode()
    assert "/join/" not in later
    assert "bob@example.org" in later


def test_the_link_works_for_seven_days(project: Any, owner: Any) -> None:
    clock = FixedClock()
    made, path = services.invite(project, "bob@example.org", "viewer", owner, clock)
    token = path.split("/")[2]
    clock.forward(timedelta(days=7).total_seconds() - 1)
    assert services.invitation_of_token(token, clock) == made
    clock.forward(1)
    with pytest.raises(services.InvitationOver, match="older than 7 days"):
        services.invitation_of_token(token, clock)
    assert not services.open_invitations(project, clock).exists()
    with pytest.raises(services.InvitationOver, match="not complete"):
        services.invitation_of_token(token[:-1], clock)


def test_an_owner_withdraws_an_invitation(project: Any, owner: Any) -> None:
    link = invite(project, owner)
    invitation = project.invitations.get()
    elsewhere = make_project(owner)
    wrong = f"/p/{elsewhere.slug}/members/invitations/{invitation.pk}/withdraw/"
    assert signed_in(owner).post(wrong).status_code == 404
    signed_in(owner).post(f"/p/{project.slug}/members/invitations/{invitation.pk}/withdraw/")
    assert signed_in(create_person("bob@example.org")).post(link).status_code == 404


def test_inviting_somebody_again_ends_the_first_link(project: Any, owner: Any) -> None:
    first, second = invite(project, owner), invite(project, owner, role="viewer")
    bob = signed_in(create_person("bob@example.org"))
    assert bob.get(first).status_code == 404
    assert "to be viewer" in bob.get(second).content.decode()


def test_a_person_who_has_confirmed_the_address_finds_the_invitation_under_account(
    project: Any, owner: Any
) -> None:
    invite(project, owner)
    bob, eve = signed_in(make_user("bob@example.org")), signed_in(make_user("eve@example.org"))
    invitation = project.invitations.get()
    assert "Walking robots" in bob.get("/account/").content.decode()
    assert "Walking robots" not in eve.get("/account/").content.decode()
    assert eve.post(f"/account/invitations/{invitation.pk}/accept/").status_code == 404
    assert eve.post(f"/account/invitations/{invitation.pk}/decline/").status_code == 404
    bob.post(f"/account/invitations/{invitation.pk}/accept/")
    assert project.memberships.get(user__email="bob@example.org").role == "editor"


def test_a_person_who_is_invited_may_decline(project: Any, owner: Any) -> None:
    invite(project, owner)
    bob = signed_in(make_user("bob@example.org"))
    bob.post(f"/account/invitations/{project.invitations.get().pk}/decline/")
    assert not project.invitations.exists()
    assert project.memberships.count() == 1


def test_where_mail_leaves_the_link_wants_a_confirmed_address(
    project: Any, owner: Any, settings: Any
) -> None:
    link = invite(project, owner)
    bob = signed_in(create_person("bob@example.org"))
    settings.STARLING_SMTP_URL = "smtp+plain://localhost"
    assert "Confirm bob@example.org first" in bob.get(link).content.decode()
    bob.post(link)
    assert project.memberships.count() == 1
    eve = make_user("eve@example.org")
    signed_in(eve).post(link)
    assert project.memberships.filter(user=eve).exists()


def test_without_a_session_the_link_offers_both_ways_in(project: Any, owner: Any, settings: Any) -> None:
    """And says the same whoever has an account."""
    link = invite(project, owner)
    page = Client().get(link).content.decode()
    assert ("/accounts/login/?next=/join/" in page, "/accounts/signup/?next=/join/" in page) == (True, True)
    make_user("bob@example.org")
    assert Client().get(link).content.decode() == page
    assert Client().post(link).status_code == 200
    assert project.memberships.count() == 1
    settings.STARLING_SIGNUP = "closed"
    assert "is for bob@example.org" in Client().get(link).content.decode()


def test_signing_up_goes_on_to_the_invitation(project: Any, owner: Any) -> None:
    link = invite(project, owner)
    client = Client()
    given = {"email": "bob@example.org", "password1": PASSWORD, "password2": PASSWORD}
    assert client.post(f"/accounts/signup/?next={link}", given).headers["Location"] == link
    client.post(link)
    assert project.memberships.filter(user=User.objects.get(email="bob@example.org")).exists()


def test_no_one_joins_with_the_address_of_a_member(project: Any, owner: Any) -> None:
    """Two members of one address could not be told apart."""
    made, _ = services.invite(project, "bob@example.org", "viewer", owner)
    twin = create_person("ada@example.org")
    with pytest.raises(MembershipError, match="owner of this"):
        services.accept(made, twin)
    assert Membership.objects.filter(project=project).count() == 1
    assert Invitation.objects.filter(pk=made.pk).exists()


def test_a_project_has_so_many_open_invitations_and_no_more(
    project: Any, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.accounts.services.OPEN_AT_ONCE", 1)
    invite(project, owner)
    full = signed_in(owner).post(
        f"/p/{project.slug}/members/invite/", {"email": "eve@example.org", "role": "viewer"}
    )
    assert full.status_code == 422
    assert "Withdraw one first" in full.content.decode()
    invite(project, owner)  # the same person


def test_members_whose_address_is_not_confirmed_are_marked(project: Any, owner: Any) -> None:
    project.memberships.create(user=create_person("bob@example.org"), role="viewer")
    page = signed_in(owner).get(f"/p/{project.slug}/members/").content.decode()
    assert page.count("address not confirmed") == 1


# Where sign-up is closed, and by mail


GIVEN = {"email": "bob@example.org", "password1": PASSWORD, "password2": PASSWORD}


def test_where_sign_up_is_closed_an_invitation_opens_it_once(project: Any, owner: Any, settings: Any) -> None:
    settings.STARLING_SIGNUP = "closed"
    link = invite(project, owner)
    page = Client().get(link).content.decode()
    assert "/accounts/signup/?next=/join/" in page
    assert "email=bob%40example.org" in page
    client = Client()
    made = client.post(f"/accounts/signup/?next={link}", {**GIVEN, "next": link})
    assert made.headers["Location"] == link
    # The link created its account: a second one is refused, before the first has joined.
    again = Client().post(f"/accounts/signup/?next={link}", {**GIVEN, "next": link})
    assert "Sign-up is closed" in again.content.decode()
    assert "signup" not in Client().get(link).content.decode()
    assert User.objects.filter(email="bob@example.org").count() == 1
    client.post(link)
    assert project.memberships.get(user__email="bob@example.org").role == "editor"


def test_where_sign_up_is_closed_only_the_invited_address_gets_an_account(
    project: Any, owner: Any, settings: Any
) -> None:
    settings.STARLING_SIGNUP = "closed"
    link = invite(project, owner)
    other = Client().post(
        f"/accounts/signup/?next={link}", {**GIVEN, "email": "eve@example.org", "next": link}
    )
    assert "is for bob@example.org" in other.content.decode()
    for without in ("", "/", "/join/nonsense/", f"https://evil.example{link}", link[:-3]):
        answer = Client().post("/accounts/signup/", {**GIVEN, "next": without})
        assert "Sign-up is closed" in answer.content.decode(), without
    services.withdraw(project.invitations.get())
    gone = Client().post(f"/accounts/signup/?next={link}", {**GIVEN, "next": link})
    assert "Sign-up is closed" in gone.content.decode()
    assert User.objects.count() == 1


def test_the_link_goes_out_by_mail_without_words_of_the_project(
    project: Any, owner: Any, settings: Any, mailoutbox: Any
) -> None:
    settings.STARLING_SMTP_URL = "smtp+plain://localhost"
    link = invite(project, owner)
    (mail,) = mailoutbox
    assert mail.to == ["bob@example.org"]
    assert f"http://127.0.0.1:8000{link}" in mail.body
    assert re.search(r"ada@example\.org .*editor", mail.body)
    assert project.name not in mail.body + mail.subject


def test_few_mails_go_to_one_address_and_none_from_an_unconfirmed_one(
    project: Any, owner: Any, settings: Any, mailoutbox: Any
) -> None:
    settings.STARLING_SMTP_URL = "smtp+plain://localhost"
    for _ in range(MAILS_A_DAY_TO_ONE + 1):
        page = signed_in(owner).post(
            f"/p/{project.slug}/members/invite/", {"email": "bob@example.org", "role": "viewer"}
        )
    assert len(mailoutbox) == MAILS_A_DAY_TO_ONE
    assert "limit is reached" in page.content.decode()
    eve = create_person("eve@example.org")
    invitation, path = services.invite(make_project(eve), "carol@example.org", "viewer", eve)
    assert "not confirmed" in send_invitation_mail(invitation, path, eve)
    assert len(mailoutbox) == MAILS_A_DAY_TO_ONE


def test_without_a_mail_server_the_page_says_that_no_mail_went(project: Any, owner: Any) -> None:
    page = signed_in(owner).post(
        f"/p/{project.slug}/members/invite/", {"email": "bob@example.org", "role": "viewer"}
    )
    assert "No mail server" in page.content.decode()
