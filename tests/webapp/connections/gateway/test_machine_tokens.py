"""A machine's token ends with its maker's right to run the job, and can be listed and ended."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.factories import make_running_job, make_spec, make_user
from tests.members import add_member
from webapp.accounts.models import User
from webapp.connections.gateway import services
from webapp.connections.gateway.store import DatabaseStore
from webapp.jobs.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def job() -> Job:
    return make_running_job(spec=make_spec(platform={"kind": "hosts", "machines": 2}))[0]


@pytest.fixture
def editor(job: Job) -> User:
    person = make_user()
    add_member(job.project, person.email, "editor")
    return person


@pytest.fixture
def token(job: Job, editor: User) -> str:
    """A token that the editor made. It opens the job's mailbox."""
    made = services.new_token(job_id=job.pk, user=editor)
    assert DatabaseStore().admitted(made) == job.pk
    return made


class TestATokenEndsWithItsMaker:
    def test_who_is_removed_from_the_project_and_stays_ended_when_they_return(
        self, job: Job, editor: User, token: str
    ) -> None:
        job.project.memberships.get(user=editor).delete()
        assert DatabaseStore().admitted(token) is None
        add_member(job.project, editor.email, "editor")
        assert DatabaseStore().admitted(token) is None
        assert DatabaseStore().admitted(services.new_token(job_id=job.pk, user=editor)) == job.pk

    def test_who_may_only_view_the_project_now(self, job: Job, editor: User, token: str) -> None:
        job.project.memberships.filter(user=editor).update(role="viewer")
        assert DatabaseStore().admitted(token) is None

    def test_who_sets_a_new_password(self, job: Job, editor: User, token: str) -> None:
        editor.set_password("another long passphrase")
        editor.save()
        assert DatabaseStore().admitted(token) is None
        assert DatabaseStore().admitted(services.new_token(job_id=job.pk, user=editor)) == job.pk

    def test_who_signs_out_everywhere(self, editor: User, token: str) -> None:
        editor.end_access()
        assert DatabaseStore().admitted(token) is None

    def test_whose_account_is_switched_off(self, editor: User, token: str) -> None:
        editor.is_active = False
        editor.save()
        assert DatabaseStore().admitted(token) is None

    def test_whose_account_is_deleted(self, editor: User, token: str) -> None:
        editor.delete()
        assert DatabaseStore().admitted(token) is None


def test_a_token_of_starling_s_own_containers_has_no_maker_to_end_with(job: Job) -> None:
    assert DatabaseStore().admitted(services.new_token(job_id=job.pk)) == job.pk


class TestTheJobsPage:
    def test_lists_the_valid_tokens_and_an_editor_ends_one(
        self, client: Client, job: Job, editor: User, token: str
    ) -> None:
        kept = services.new_token(job_id=job.pk, user=job.created_by)
        own = services.new_token(job_id=job.pk)
        client.force_login(job.created_by)
        address = f"/p/{job.project.slug}/jobs/{job.pk}"
        number = token.partition(".")[0]
        page = client.get(f"{address}/").content.decode()
        assert f"Token {number}" in page
        assert editor.email in page
        assert f"Token {own.partition('.')[0]}<" not in page
        assert token.partition(".")[2] not in page
        answer = client.post(f"{address}/machines/tokens/{number}/end", follow=True)
        page = answer.content.decode()
        assert f"Token {number} ended." in page
        assert editor.email not in page
        assert DatabaseStore().admitted(token) is None
        assert DatabaseStore().admitted(kept) == job.pk
        assert client.post(f"{address}/machines/tokens/{number}/end").status_code == 404

    def test_lists_no_token_that_has_ended(self, client: Client, job: Job, editor: User, token: str) -> None:
        editor.end_access()
        client.force_login(job.created_by)
        assert editor.email not in client.get(f"/p/{job.project.slug}/jobs/{job.pk}/").content.decode()

    def test_shows_viewers_no_tokens(self, client: Client, job: Job, token: str) -> None:
        viewer = make_user()
        add_member(job.project, viewer.email, "viewer")
        client.force_login(viewer)
        address = f"/p/{job.project.slug}/jobs/{job.pk}"
        number = token.partition(".")[0]
        assert f"Token {number}" not in client.get(f"{address}/").content.decode()
        assert client.post(f"{address}/machines/tokens/{number}/end").status_code == 403

    def test_ends_only_tokens_of_the_job_in_its_address_that_people_made(
        self, client: Client, job: Job, token: str
    ) -> None:
        other = make_running_job(spec=make_spec(platform={"kind": "hosts", "machines": 2}))[0]
        own = services.new_token(job_id=other.pk)
        client.force_login(other.created_by)
        for one in (token, own):
            number = one.partition(".")[0]
            address = f"/p/{other.project.slug}/jobs/{other.pk}/machines/tokens/{number}/end"
            assert client.post(address).status_code == 404
        assert DatabaseStore().admitted(token) == job.pk
        assert DatabaseStore().admitted(own) == other.pk
