"""An address counts once it is confirmed, and nobody learns from a form who has an account."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.core.cache import cache
from django.test import Client

from tests.factories import make_project, make_user
from tests.signed_in import signed_in
from webapp.accounts.models import Membership, User
from webapp.accounts.queries import is_confirmed

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"


def sign_up(email: str, password: str = PASSWORD) -> tuple[Client, Any]:
    client = Client()
    given = {"email": email, "password1": password, "password2": password}
    return client, client.post("/accounts/signup/", given)


def confirm_by_letter(client: Client, letter: Any) -> Any:
    link = re.search(r"(/accounts/confirm-email/[^/\s]+/)", letter.body)
    assert link
    return client.post(link.group(1), follow=True)


def seen(answer: Any) -> tuple[int, str, str]:
    """What an answer shows, without what differs from one visit to the next."""
    page = re.sub(r'((csrfmiddlewaretoken|drawn_from)" value|nonce)="[^"]*"', "", answer.content.decode())
    return answer.status_code, answer.headers.get("Location", ""), page


def test_a_stranger_who_signed_up_as_an_invited_address_sees_nothing_of_the_project() -> None:
    owner = make_user()
    project = make_project(owner, "Walking robots")
    stranger, _ = sign_up("ada@example.org")
    signed_in(owner).post(
        f"/p/{project.slug}/members/invite/", {"email": "ada@example.org", "role": "viewer"}
    )
    assert stranger.get(f"/p/{project.slug}/").status_code == 404
    assert "Walking robots" not in stranger.get("/account/").content.decode()
    invitation = project.invitations.get()
    assert stranger.post(f"/account/invitations/{invitation.pk}/accept/").status_code == 404
    assert project.memberships.get().user == owner


def test_sign_up_answers_the_same_whether_or_not_the_address_has_an_account() -> None:
    make_user("ada@example.org", PASSWORD)
    _, known = sign_up("ada@example.org")
    _, new = sign_up("eve@example.org")
    assert seen(known) == seen(new)
    assert (known.status_code, known.headers["Location"]) == (302, "/")


def test_the_page_after_sign_up_is_the_same_for_a_known_address() -> None:
    """Also the sign-in that follows: a stranger gets an account of no consequence, never the other one."""
    ada = make_user("ada@example.org", PASSWORD)
    make_project(ada, "Walking robots")
    stranger, _ = sign_up("ada@example.org", "another long pass phrase")
    assert "Walking robots" not in stranger.get("/", follow=True).content.decode()
    again = Client()
    again.post("/accounts/login/", {"login": "ada@example.org", "password": "another long pass phrase"})
    assert "Walking robots" not in again.get("/", follow=True).content.decode()
    assert again.get("/account/").status_code == 200
    hers = Client()
    hers.post("/accounts/login/", {"login": "Ada@example.org", "password": PASSWORD})
    assert "Walking robots" in hers.get("/", follow=True).content.decode()


def test_inviting_answers_the_same_whether_or_not_the_address_has_an_account() -> None:
    owner, known = make_user(), make_user("known@example.org")
    project = make_project(owner)
    pages = []
    for email in (known.email, "ghost@example.org"):
        answer = signed_in(owner).post(
            f"/p/{project.slug}/members/invite/", {"email": email, "role": "viewer"}
        )
        page = re.sub(r"/join/[\w:-]+/|invitations/\d+|-\d+\"", "", seen(answer)[2])
        pages.append((answer.status_code, page.replace(email, "somebody")))
        project.invitations.all().delete()
    assert pages[0] == pages[1]
    assert Membership.objects.filter(project=project).count() == 1


def test_adding_an_address_to_ones_account_does_not_tell_whose_it_is() -> None:
    make_user("ada@example.org")
    answers = []
    for email in ("ada@example.org", "ghost@example.org"):
        client = signed_in(make_user(password=PASSWORD))
        answers.append(seen(client.post("/accounts/email/", {"action_add": "", "email": email}))[:2])
    assert answers[0] == answers[1]


def test_the_letter_to_a_known_address_says_that_it_has_an_account() -> None:
    make_user("ada@example.org", PASSWORD)
    sign_up("ada@example.org")
    sign_up("eve@example.org")
    known, new = sorted(mail.outbox, key=lambda letter: letter.to[0])
    assert (known.to[0], new.to[0]) == ("ada@example.org", "eve@example.org")
    assert known.subject.endswith("an account already")
    assert new.subject.endswith("Confirm your address")


def test_a_person_who_confirms_an_address_has_it_and_squatters_have_not() -> None:
    squatter, _ = sign_up("ada@example.org", "the stranger's pass phrase")
    cache.clear()  # one letter goes to an address in three minutes
    ada, _ = sign_up("ada@example.org")
    first, second = User.objects.filter(email="ada@example.org").order_by("pk")
    confirm_by_letter(ada, mail.outbox[1])
    assert (is_confirmed(first), is_confirmed(second)) == (False, True)
    confirm_by_letter(squatter, mail.outbox[0])
    assert (is_confirmed(first), is_confirmed(second)) == (False, True)


def test_a_letter_that_a_stranger_set_off_confirms_nothing_when_its_reader_clicks() -> None:
    stranger, _ = sign_up("ada@example.org")
    letter, *_ = mail.outbox
    response = confirm_by_letter(Client(), letter)
    assert response.redirect_chain[0][0].startswith("/accounts/login/?next=/accounts/confirm-email/")
    ada = signed_in(make_user("ada@example.com"))
    refused = confirm_by_letter(ada, letter)
    assert (refused.status_code, "do nothing" in refused.content.decode()) == (403, True)
    assert ada.get("/account/").status_code == 200
    hers = User.objects.get(email="ada@example.org")
    assert not is_confirmed(hers)
    confirm_by_letter(stranger, letter)  # who reads the letter and has the account
    assert is_confirmed(hers)


def test_a_reset_needs_a_confirmed_address() -> None:
    client, _ = sign_up("ada@example.org")
    confirmation, *_ = mail.outbox
    mail.outbox.clear()
    response = Client().post("/accounts/password/reset/", {"email": "ada@example.org"}, follow=True)
    assert "Check your mail" in response.content.decode()
    assert mail.outbox == []
    confirm_by_letter(client, confirmation)
    mail.outbox.clear()
    cache.clear()  # an hour later
    Client().post("/accounts/password/reset/", {"email": "ada@example.org"})
    (letter,) = mail.outbox
    assert letter.subject.endswith("A new password")


def test_an_unconfirmed_address_does_not_become_the_first_one() -> None:
    user = make_user(password=PASSWORD)
    client = signed_in(user)
    client.post("/accounts/email/", {"action_add": "", "email": "ceo@example.org"})
    client.post("/accounts/email/", {"action_primary": "", "email": "ceo@example.org"})
    sign_up("eve@example.org")
    eve = User.objects.get(email="eve@example.org")
    EmailAddress.objects.create(user=eve, email="ceo@example.org")
    signed_in(eve).post("/accounts/email/", {"action_primary": "", "email": "ceo@example.org"})
    assert not User.objects.filter(email="ceo@example.org").exists()
