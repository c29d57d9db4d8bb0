"""The way in, projects and their members."""

import re
from datetime import timedelta

import pytest
from django.core import mail
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.test import Client

from tests.factories import FixedClock, make_project, make_user
from webapp.accounts import services
from webapp.accounts.access import project_for
from webapp.accounts.models import Membership, Role, SignInLink, User

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
    assert "Sign-up is closed here" in page.content.decode()
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
    services.create_person("ada@example.org", PASSWORD)
    asked = client.post("/accounts/password/reset/", {"email": "ada@example.org"}, follow=True)
    assert "Look into your mail" in asked.content.decode()
    (letter,) = mail.outbox
    assert letter.subject == "Starling: A new password"
    link = re.search(r"https?://[^/\s]+(/accounts/password/reset/key/\S+)", letter.body)
    assert link
    form = client.get(link.group(1), follow=True)
    address = form.redirect_chain[-1][0]
    new = "an even better horse"
    done = client.post(address, {"password1": new, "password2": new}, follow=True)
    assert "The password is set" in done.content.decode()
    assert client.login(email="ada@example.org", password=new)
    again = client.get(link.group(1), follow=True)
    assert "does not work any more" in again.content.decode()


def test_reset_does_not_tell_who_has_an_account(client: Client) -> None:
    answer = client.post("/accounts/password/reset/", {"email": "nobody@example.org"}, follow=True)
    assert "Look into your mail" in answer.content.decode()


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


def test_a_link_signs_in_once(client: Client) -> None:
    user = services.create_person("ada@example.org")
    path = services.one_time_sign_in_path(user)
    assert client.get(path).status_code == 302
    assert client.session["_auth_user_id"] == str(user.pk)
    second = Client().get(path)
    assert second.status_code == 403
    assert "used already" in second.content.decode()


def test_a_link_lasts_an_hour() -> None:
    clock = FixedClock()
    token = services.one_time_sign_in_path(services.create_person("ada@example.org"), clock).split("/")[-2]
    clock.forward(3601)
    with pytest.raises(services.LinkError, match="older than an hour"):
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
        project_for(make_user(), project.slug)


def test_each_role_may_what_it_may() -> None:
    project, viewer, editor = make_project(), make_user(), make_user()
    services.add_member(project, viewer.email, "viewer")
    services.add_member(project, editor.email, "editor")
    assert project_for(viewer, project.slug) == project
    assert project_for(editor, project.slug, needs="editor") == project
    with pytest.raises(PermissionDenied, match="needs the role editor"):
        project_for(viewer, project.slug, needs="editor")
    with pytest.raises(PermissionDenied, match="needs the role owner"):
        project_for(editor, project.slug, needs="owner")


def test_the_last_owner_stays() -> None:
    project, other = make_project(), make_user()
    owner = project.memberships.get()
    with pytest.raises(services.MembershipError, match="only owner"):
        services.remove_member(owner)
    with pytest.raises(services.MembershipError, match="only owner"):
        services.change_role(owner, "editor")
    services.add_member(project, other.email, "owner")
    services.remove_member(owner)
    assert project.memberships.get().user == other


def test_adding_somebody_twice_or_nobody_says_so() -> None:
    project, other = make_project(), make_user()
    services.add_member(project, f" {other.email.upper()} ", "viewer")
    with pytest.raises(services.MembershipError, match="viewer of this project already"):
        services.add_member(project, other.email, "editor")
    with pytest.raises(services.MembershipError, match="Nobody has signed up"):
        services.add_member(project, "nobody@example.org", "editor")


def test_members_page_changes_members_for_owners_only(client: Client) -> None:
    owner, other = make_user(), make_user()
    project = make_project(owner)
    client.force_login(owner)
    address = f"/p/{project.slug}/members/"
    client.post(f"{address}add/", {"email": other.email, "role": "viewer"})
    membership = project.memberships.get(user=other)
    client.post(f"{address}{membership.pk}/role/", {"role": "editor"})
    membership.refresh_from_db()
    assert membership.role == "editor"
    refused = client.post(f"{address}add/", {"email": "nobody@example.org", "role": "viewer"})
    assert refused.status_code == 422
    assert "Nobody has signed up" in refused.content.decode()

    client.force_login(other)
    assert "Add a member" not in client.get(address).content.decode()
    assert client.post(f"{address}add/", {"email": owner.email, "role": "viewer"}).status_code == 403
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
