"""Projects are made, renamed and archived; in an archived one members look and change nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from tests.factories import FixedClock, make_job, make_project, make_spec, make_user
from tests.members import add_member
from tests.signed_in import signed_in
from tests.webapp.api_callers import ApiCaller
from tests.webapp.scheduler_rows import make_rows
from webapp.accounts import services as accounts
from webapp.accounts.models import Project
from webapp.accounts.services import MembershipError
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.queries import SILENT_FOR
from webapp.job_states import Observed
from webapp.jobs import services as jobs
from webapp.overview.projects.services import ProjectBusy, archive_project, unarchive_project
from webapp.resources.profiling.models import MemoryProfile

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Any:
    return make_user("ada@example.org")


@pytest.fixture
def project(owner: Any) -> Any:
    return make_project(owner, "Walking robots")


def archived(project: Any, owner: Any) -> Any:
    archive_project(project=project, user=owner, end_running=True)
    return project


def test_a_person_makes_a_second_project(owner: Any, project: Any) -> None:
    client = signed_in(owner)
    answer = client.post("/projects/", {"name": "  Swimming   robots "})
    made = Project.objects.get(name="Swimming robots")
    assert answer.headers["Location"] == f"/p/{made.slug}/"
    assert made.memberships.get().is_owner
    page = client.get("/projects/").content.decode()
    assert "Walking robots" in page
    assert "Swimming robots" in page
    refused = client.post("/projects/", {"name": "   "})
    assert refused.status_code == 422


def test_a_person_owns_only_so_many_projects(
    owner: Any, project: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts, "MOST_PROJECTS", 1)
    refused = signed_in(owner).post("/projects/", {"name": "One more"})
    assert refused.status_code == 422
    assert "one person may" in refused.content.decode()
    assert Project.objects.count() == 1


def test_an_owner_renames_and_addresses_stay(owner: Any, project: Any) -> None:
    client, slug = signed_in(owner), project.slug
    assert client.post(f"/p/{slug}/settings/", {"name": "Running robots"}).status_code == 302
    project.refresh_from_db()
    assert (project.name, project.slug) == ("Running robots", slug)
    assert client.post(f"/p/{slug}/settings/", {"name": "x" * 81}).status_code == 422


def test_what_runs_is_ended_first_or_by_choice(owner: Any, project: Any) -> None:
    job, training = make_job(project, owner), make_rows(project)
    training.state = "queued"
    training.save()
    client, address = signed_in(owner), f"/p/{project.slug}/settings/archive/"
    assert "1 job and 1 training" in client.get(f"/p/{project.slug}/settings/").content.decode()
    client.post(address)
    project.refresh_from_db()
    job.refresh_from_db()
    assert (project.archived_at, job.observed) == (None, Observed.QUEUED)
    client.post(address, {"end_running": "1"})
    for row in (project, job, training):
        row.refresh_from_db()
    assert project.archived_at is not None
    assert (job.observed, training.state) == (Observed.CANCELLED, "stopped")


def test_a_memory_profile_is_never_cut_off(owner: Any, project: Any) -> None:
    job = make_job(project, owner)
    requester = {"requested_by": owner, "requested_at": job.created_at, "since": job.created_at}
    profile = MemoryProfile.objects.create(project=project, plan={}, limit_picodollars=0, **requester)
    with pytest.raises(ProjectBusy, match="memory profile"):
        archive_project(project=project, user=owner, end_running=True)
    job.refresh_from_db()
    assert job.observed == Observed.QUEUED
    profile.state = "done"
    profile.save()
    archive_project(project=project, user=owner, end_running=True)
    assert project.archived_at is not None


def test_a_memory_profile_whose_worker_is_gone_keeps_no_project_open(owner: Any, project: Any) -> None:
    requested_at = SYSTEM_CLOCK.now() - SILENT_FOR - timedelta(seconds=1)
    times = {"requested_at": requested_at, "since": requested_at}
    profile = MemoryProfile.objects.create(
        project=project, plan={}, limit_picodollars=0, state="running", requested_by=owner, **times
    )
    archive_project(project=project, user=owner)
    profile.refresh_from_db()
    assert project.archived_at is not None
    assert profile.state == "done", "or a worker might begin it in the archived project"
    assert profile.problem


def test_nothing_is_launched_or_resumed_in_an_archived_project(owner: Any, project: Any) -> None:
    """Neither through a page or the API, nor by a request that passed those before the project was archived."""
    paused = make_job(project, owner)
    jobs.pause_job(job=paused, user=owner)
    archived(project, owner)
    paused.refresh_from_db()
    assert paused.observed == Observed.PAUSED
    for act in (
        lambda: make_job(project, owner),
        lambda: jobs.go_on(job=paused, user=owner),
        lambda: jobs.raise_budget(job=paused, user=owner, limit_usd=paused.parsed_spec().budget_usd * 2),
    ):
        with pytest.raises(PermissionDenied, match="archived"):
            act()
    page = signed_in(owner).get(f"/p/{project.slug}/jobs/new/")
    assert (page.status_code, "is archived" in page.content.decode()) == (403, True)
    answer = ApiCaller(owner, ("jobs",)).post(
        f"/projects/{project.slug}/jobs", make_spec().model_dump(mode="json")
    )
    assert (answer.status_code, "archived" in answer.json()["why"]) == (403, True)
    assert project.jobs.count() == 1


def test_members_of_an_archived_project_look_and_change_nothing(owner: Any, project: Any) -> None:
    job, bob = make_job(project, owner), make_user("bob@example.org")
    membership = add_member(project, bob.email, "editor")
    archived(project, owner)
    client = signed_in(owner)
    page = client.get(f"/p/{project.slug}/jobs/{job.pk}/")
    assert page.status_code == 200
    assert "?clone=" not in page.content.decode()
    label = client.post(f"/p/{project.slug}/jobs/{job.pk}/labels/", {"tags": "kept"})
    assert label.status_code == 403
    invited = client.post(
        f"/p/{project.slug}/members/invite/", {"email": "eve@example.org", "role": "viewer"}
    )
    assert invited.status_code == 403
    assert client.post(f"/p/{project.slug}/settings/", {"name": "Other"}).status_code == 422
    # What takes access away stays possible.
    removed = client.post(f"/p/{project.slug}/members/{membership.pk}/remove/")
    assert removed.status_code == 302
    assert not project.memberships.filter(user=bob).exists()


def test_no_one_joins_an_archived_project(owner: Any, project: Any) -> None:
    invitation, _ = accounts.invite(project, "bob@example.org", "viewer", owner)
    archived(project, owner)
    with pytest.raises(MembershipError, match="archived"):
        accounts.accept(invitation, make_user("bob@example.org"))


def test_it_is_opened_again_and_no_longer_first(owner: Any, project: Any) -> None:
    client = signed_in(owner)
    other = make_project(owner, "Zebras")
    archived(project, owner)
    assert client.get("/").headers["Location"] == f"/p/{other.slug}/"
    switcher = client.get(f"/p/{other.slug}/jobs/").content.decode()
    assert f'href="/p/{project.slug}/jobs/"' not in switcher
    assert client.post(f"/p/{project.slug}/settings/unarchive/").status_code == 302
    project.refresh_from_db()
    assert project.archived_at is None
    assert make_job(project, owner).observed == Observed.QUEUED


def test_only_owners_archive(owner: Any, project: Any) -> None:
    bob = make_user("bob@example.org")
    add_member(project, bob.email, "editor")
    for name in ("projects:settings", "projects:archive", "projects:unarchive"):
        address = reverse(name, args=[project.slug])
        assert signed_in(bob).post(address).status_code == 403
        assert signed_in(make_user()).post(address).status_code == 404
    project.refresh_from_db()
    assert project.archived_at is None


def test_the_api_makes_renames_archives_and_opens(owner: Any, project: Any) -> None:
    call = ApiCaller(owner)
    made = call.post("/projects", {"name": "Swimming robots"})
    assert (made.status_code, made.json()["role"], made.json()["archived_at"]) == (201, "owner", None)
    address = f"/projects/{project.slug}"
    assert call("PUT", address, {"name": "Running robots"}).json()["name"] == "Running robots"
    make_job(project, owner)
    busy = call("PUT", address, {"archived": True})
    assert (busy.status_code, "1 job is queued" in busy.json()["why"]) == (409, True)
    ended = call("PUT", address, {"archived": True, "end_running": True})
    assert ended.json()["archived_at"] is not None
    assert call("PUT", address, {"name": "Again"}).status_code == 403
    assert call("PUT", address, {"archived": False, "name": "Again"}).json()["name"] == "Again"
    assert call.post("/projects", {"name": "  "}).status_code == 409
    narrow = ApiCaller(owner, ("jobs",), project=project)
    assert narrow.post("/projects", {"name": "Third"}).status_code == 403


def test_archiving_again_changes_nothing(owner: Any, project: Any) -> None:
    clock = FixedClock()
    archive_project(project=project, user=owner, clock=clock)
    first = project.archived_at
    clock.forward(60)
    archive_project(project=project, user=owner, clock=clock)
    assert project.archived_at == first
    unarchive_project(project=project)
    assert project.archived_at is None
