"""The way in, projects and their members."""

import io
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied
from django.core.management import CommandError, call_command
from django.http import Http404
from django.test import Client

from tests.factories import FixedClock, make_project, make_user
from tests.members import add_member
from tests.signed_in import sign_in
from webapp.accounts import services
from webapp.accounts.access import membership_for
from webapp.accounts.models import Membership, Role, SignInLink, User
from webapp.accounts.services import invite

pytestmark = pytest.mark.django_db

PASSWORD = "correct horse battery"


def test_sign_up_gives_a_project_of_ones_own_and_lands_in_it(client: Client) -> None:
    answer = client.post(
        "/accounts/signup/",
        {"email": "Ada@Example.org", "password1": PASSWORD, "password2": PASSWORD},
        follow=True,
    )
    user = User.objects.get()
    assert user.email == "ada@example.org"
    project = user.projects.get()
    assert project.name == "ada's project"
    assert Membership.objects.get(user=user).role == Role.OWNER
    assert answer.redirect_chain[-1][0] == f"/p/{project.slug}/"
    assert answer.status_code == 200


def test_two_people_with_the_same_name_get_different_addresses() -> None:
    first = services.create_person("ada@example.org")
    second = services.create_person("ada@example.com")
    assert first.projects.get().slug != second.projects.get().slug


def test_sign_up_can_be_closed(client: Client, settings: object) -> None:
    settings.STARLING_SIGNUP = "closed"  # type: ignore[attr-defined]
    page = client.get("/accounts/signup/")
    assert "Sign-up is closed" in page.content.decode()
    client.post("/accounts/signup/", {"email": "a@example.org", "password1": PASSWORD, "password2": PASSWORD})
    assert not User.objects.exists()


def test_sign_in_and_out(client: Client) -> None:
    services.create_person("ada@example.org", PASSWORD)
    wrong = client.post("/accounts/login/", {"login": "ada@example.org", "password": "something else"})
    assert wrong.status_code == 200
    assert 'role="alert"' in wrong.content.decode()
    client.post("/accounts/login/", {"login": "ada@example.org", "password": PASSWORD})
    assert client.get("/account/").status_code == 200
    client.post("/accounts/logout/")
    assert client.get("/account/").status_code == 302


def test_password_reset_from_the_question_to_the_new_password(client: Client) -> None:
    make_user("ada@example.org", PASSWORD)
    response = client.post("/accounts/password/reset/", {"email": "ada@example.org"}, follow=True)
    assert "Check your mail" in response.content.decode()
    (letter,) = mail.outbox
    assert letter.subject.endswith("A new password")
    link = re.search(r"https?://[^/\s]+(/accounts/password/reset/key/\S+)", letter.body)
    assert link
    form = client.get(link.group(1), follow=True)
    address = form.redirect_chain[-1][0]
    new = "a better horse"
    done = client.post(address, {"password1": new, "password2": new}, follow=True)
    assert done.redirect_chain[-1][0] == "/accounts/password/reset/key/done/"
    assert client.login(email="ada@example.org", password=new)
    again = client.get(link.group(1), follow=True)
    assert "does not work" in again.content.decode()


def test_reset_does_not_tell_who_has_an_account(client: Client) -> None:
    answer = client.post("/accounts/password/reset/", {"email": "nobody@example.org"}, follow=True)
    assert "Check your mail" in answer.content.decode()
    assert mail.outbox == []
    make_user("ada@example.org", PASSWORD)
    same = client.post("/accounts/password/reset/", {"email": "ada@example.org"}, follow=True)
    assert same.content == answer.content


def test_an_address_gets_one_reset_mail_an_hour() -> None:
    make_user("ada@example.org", PASSWORD)
    pages = {
        Client().post("/accounts/password/reset/", {"email": email}, follow=True).content
        for email in ("ada@example.org", "Ada@example.org", "ada@example.org")
    }
    assert len(pages) == 1
    assert len(mail.outbox) == 1


@pytest.mark.parametrize("host", ["localhost:4444", "127.0.0.1", "[::1]:99"])
def test_letters_lead_to_the_sites_own_address_whatever_host_is_named(host: str, settings: Any) -> None:
    settings.STARLING_BASE_URL = "https://starling.example.org"
    make_user("ada@example.org", PASSWORD)
    stranger = Client(headers={"host": host})
    stranger.post("/accounts/password/reset/", {"email": "ada@example.org"})
    stranger.post(
        "/accounts/signup/", {"email": "eve@example.org", "password1": PASSWORD, "password2": PASSWORD}
    )
    stranger.post("/accounts/logout/")
    stranger.post(
        "/accounts/signup/", {"email": "ada@example.org", "password1": PASSWORD, "password2": PASSWORD}
    )
    assert len(mail.outbox) == 3
    for letter in mail.outbox:
        assert host not in letter.body
        links = re.findall(r"https?://[^/\s]+/", letter.body)
        assert links == ["https://starling.example.org/"] * len(links) != []
        assert "Starling at starling.example.org" in letter.body


@pytest.mark.parametrize(
    "path",
    ["login/", "signup/", "password/reset/", "password/reset/done/", "password/reset/key/done/", "inactive/"],
)
def test_gates_can_be_opened_without_an_account(client: Client, path: str) -> None:
    page = client.get(f"/accounts/{path}")
    assert page.status_code == 200
    assert 'class="gate"' in page.content.decode()


@pytest.mark.parametrize(
    "path", ["/accounts/email/", "/accounts/password/change/", "/accounts/logout/", "/account/"]
)
def test_account_pages_open_for_who_is_signed_in(client: Client, path: str) -> None:
    client.force_login(services.create_person("ada@example.org", PASSWORD))
    assert client.get(path).status_code == 200


# One-time links


def test_a_link_signs_in_once_and_only_at_a_click(client: Client) -> None:
    user = services.create_person("ada@example.org")
    path = services.one_time_sign_in_path(user)
    for _ in range(2):  # as programs do that look at links before people do
        looked = Client().get(path)
        assert (looked.status_code, "ada@example.org" in looked.content.decode()) == (200, True)
        assert Client().head(path).status_code == 200
    assert client.post(path).headers["Location"] == "/"
    assert client.session["_auth_user_id"] == str(user.pk)
    for second in (Client().get(path), Client().post(path)):
        assert second.status_code == 403
        assert "used already" in second.content.decode()


def test_a_link_is_clicked_on_its_own_page() -> None:
    """Another site cannot sign a visitor in as somebody."""
    path = services.one_time_sign_in_path(services.create_person("ada@example.org"))
    visitor = Client(enforce_csrf_checks=True)
    assert visitor.post(path).status_code == 403
    page = visitor.get(path).content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
    assert token
    assert visitor.post(path, {"csrfmiddlewaretoken": token.group(1)}).headers["Location"] == "/"


def test_the_operator_has_a_link_printed_for_a_person_who_cannot_sign_in() -> None:
    services.create_person("ada@example.org")
    printed = io.StringIO()
    call_command("sign-in-link", "Ada@example.org", stdout=printed)
    path = printed.getvalue().strip().removeprefix("http://127.0.0.1:8000")
    assert Client().post(path).headers["Location"] == "/"
    with pytest.raises(CommandError, match=r"nobody@example\.org"):
        call_command("sign-in-link", "nobody@example.org")
    User.objects.update(is_active=False)
    with pytest.raises(CommandError, match="switched off"):
        call_command("sign-in-link", "ada@example.org")


def test_a_link_lasts_an_hour() -> None:
    clock = FixedClock()
    token = services.one_time_sign_in_path(services.create_person("ada@example.org"), clock).split("/")[-2]
    clock.forward(3601)
    with pytest.raises(services.LinkError, match="than an hour"):
        services.redeem_sign_in_link(token, clock)
    clock.moment -= timedelta(seconds=2)
    assert services.redeem_sign_in_link(token, clock).email == "ada@example.org"


def test_a_link_is_signed_and_its_secret_is_not_stored() -> None:
    token = services.one_time_sign_in_path(services.create_person("ada@example.org")).split("/")[-2]
    secret = token.split(":")[0]
    assert secret not in SignInLink.objects.get().secret_sha256
    with pytest.raises(services.LinkError, match="not complete"):
        services.redeem_sign_in_link(token[:-1])


# Access and members


def test_a_foreign_project_does_not_exist() -> None:
    project = make_project()
    with pytest.raises(Http404):
        membership_for(make_user(), project.slug)


def test_each_role_may_what_it_may() -> None:
    project, viewer, editor = make_project(), make_user(), make_user()
    add_member(project, viewer.email, "viewer")
    add_member(project, editor.email, "editor")
    assert membership_for(viewer, project.slug).project == project
    assert membership_for(editor, project.slug, needs="editor").project == project
    with pytest.raises(PermissionDenied, match="the role editor"):
        membership_for(viewer, project.slug, needs="editor")
    with pytest.raises(PermissionDenied, match="the role owner"):
        membership_for(editor, project.slug, needs="owner")


def test_the_last_owner_stays() -> None:
    project, other = make_project(), make_user()
    owner = project.memberships.get()
    with pytest.raises(services.MembershipError, match="only owner"):
        services.remove_member(owner)
    with pytest.raises(services.MembershipError, match="only owner"):
        services.change_role(owner, "editor")
    add_member(project, other.email, "owner")
    services.remove_member(owner)
    assert project.memberships.get().user == other


def test_inviting_a_member_says_so() -> None:
    project, other = make_project(), make_user()
    add_member(project, other.email, "viewer")
    with pytest.raises(services.MembershipError, match="viewer of this"):
        invite(project, f" {other.email.upper()} ", "editor", project.people.first())


def test_members_page_changes_members_for_owners_only(client: Client) -> None:
    owner, other = make_user(), make_user()
    project = make_project(owner)
    sign_in(client, owner)
    address = f"/p/{project.slug}/members/"
    membership = add_member(project, other.email, "viewer")
    client.post(f"{address}{membership.pk}/role/", {"role": "editor"})
    membership.refresh_from_db()
    assert membership.role == "editor"
    refused = client.post(f"{address}invite/", {"email": other.email, "role": "viewer"})
    assert refused.status_code == 422
    assert "editor of this" in refused.content.decode()

    sign_in(client, other)
    assert "Invite a person" not in client.get(address).content.decode()
    assert client.post(f"{address}invite/", {"email": owner.email, "role": "viewer"}).status_code == 403
    first = project.memberships.get(user=owner)
    assert client.post(f"{address}{first.pk}/remove/").status_code == 403
    assert client.post(f"{address}{membership.pk}/remove/").status_code == 302  # everybody may leave
    assert client.get(address).status_code == 404


def test_members_of_another_project_cannot_be_reached_through_ones_own(client: Client) -> None:
    mine, other = make_user(), make_project()
    client.force_login(mine)
    foreign = other.memberships.get()
    project = make_project(mine)
    assert client.post(f"/p/{project.slug}/members/{foreign.pk}/remove/").status_code == 404
    assert client.get(f"/p/{other.slug}/members/").status_code == 404


def test_home_goes_to_the_project_last_looked_at(client: Client) -> None:
    user = services.create_person("ada@example.org")
    second = make_project(user, "Second")
    client.force_login(user)
    client.get(f"/p/{second.slug}/jobs/")
    assert client.get("/").headers["Location"] == f"/p/{second.slug}/"
