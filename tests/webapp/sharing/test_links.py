"""Links are made, used and end; whoever has one opens that one object and nothing else."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from tests.factories import FixedClock, make_job, make_project, make_spec, make_user
from tests.members import add_member
from tests.signed_in import signed_in
from tests.webapp.api_callers import ApiCaller
from tests.webapp.sharing.shares import make_secret_job, share
from webapp.accounts.models import Membership, User
from webapp.http.responses import AddressRedaction
from webapp.jobs.models import Job
from webapp.overview.projects.services import archive_project
from webapp.sharing import access, services
from webapp.sharing.models import SharedLink
from webapp.sharing.services import (
    ENDED_WITH_ITS_JOB,
    ENDED_WITH_ITS_MAKER,
    LinkRefused,
    find_link,
    make_link,
    revoke_link,
    working_among,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def job() -> Job:
    return make_secret_job()[0]


def status(path: str) -> int:
    return Client().get(path).status_code


# How they end


def test_a_person_who_has_the_link_opens_it_without_an_account(job: Job) -> None:
    link, path = share(job)
    page = Client().get(path)
    assert page.status_code == 200
    assert "Walker" in page.content.decode()
    link.refresh_from_db()
    assert link.last_used_at is not None


def test_only_the_hash_of_its_secret_is_stored(job: Job) -> None:
    link, path = share(job)
    secret = path.split("/")[2]
    assert len(secret) == 43  # 256 bits
    row = str(SharedLink.objects.values().get())
    assert secret not in row
    assert link.hint == secret[-4:]
    assert path != share(job)[1]


def test_guesses_find_nothing_and_few_are_answered(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    _, path = share(job)
    secret = path.split("/")[2]
    near = [
        secret[:-1] + ("A" if secret[-1] != "A" else "B"),
        secret[:-1],
        f"{secret}A",
        "nonsense",
        secret.swapcase(),
    ]
    answers = [Client().get(f"/s/{one}/") for one in near]
    assert {answer.status_code for answer in answers} == {404}
    revoke_link(share(job)[0])
    assert len({answer.content for answer in answers}) == 1, "no guess says more than another"
    monkeypatch.setattr(access, "MISSES_A_MINUTE", 3)
    monkeypatch.setattr(access, "pace", type(access.pace)())
    statuses = [Client(REMOTE_ADDR="192.0.2.7").get(f"/s/guess{at}/").status_code for at in range(5)]
    assert statuses == [404, 404, 404, 429, 429]
    assert Client(REMOTE_ADDR="192.0.2.8").get("/s/guess/").status_code == 404


def test_one_address_opens_only_so_many_pages_a_minute(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    _, path = share(job)
    monkeypatch.setattr(access, "REQUESTS_A_MINUTE", 2)
    monkeypatch.setattr(access, "pace", type(access.pace)())
    client = Client(REMOTE_ADDR="192.0.2.9")
    answers = [client.get(f"{path}stream") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert answers[2].headers["Retry-After"] == "60"


@pytest.mark.parametrize("days", [7, 30, 90])
def test_it_expires_on_its_day(days: int, job: Job) -> None:
    clock = FixedClock()
    link, path = share(job, days=days, clock=clock)
    secret = path.split("/")[2]
    clock.forward(timedelta(days=days).total_seconds() - 1)
    assert find_link(secret, clock) == link
    clock.forward(1)
    assert find_link(secret, clock) is None
    assert working_among([link.pk], clock) == set()


def test_without_a_day_it_works_until_it_is_revoked(job: Job) -> None:
    clock = FixedClock()
    link, path = share(job, days=None, clock=clock)
    clock.forward(timedelta(days=3650).total_seconds())
    assert find_link(path.split("/")[2], clock) == link
    revoke_link(link, clock=clock)
    assert find_link(path.split("/")[2], clock) is None


def _is_removed(member: Membership) -> None:
    member.delete()


def _becomes_viewer(member: Membership) -> None:
    Membership.objects.filter(pk=member.pk).update(role="viewer")


def _is_switched_off(member: Membership) -> None:
    User.objects.filter(pk=member.user_id).update(is_active=False)


@pytest.mark.parametrize("what", [_is_removed, _becomes_viewer, _is_switched_off])
def test_links_end_with_their_makers_right_to_share(what: Callable[[Membership], None], job: Job) -> None:
    bob = make_user("bob@example.org")
    member = add_member(job.project, bob.email, "editor")
    link, path = share(job, user=bob)
    assert status(path) == 200
    what(member)
    assert status(path) == 404
    assert services.why_ended([link], link.created_at)[link.pk] == ENDED_WITH_ITS_MAKER


def test_the_link_of_an_archived_job_works_and_that_of_a_deleted_one_does_not(job: Job) -> None:
    link, path = share(job)
    Job.objects.filter(pk=job.pk).update(archived_at=job.created_at)
    assert status(path) == 200
    Job.objects.filter(pk=job.pk).update(deleted_at=job.created_at)
    assert {status(f"{path}{part}") for part in ("", "embed/", "stream", "series", "films.json")} == {404}
    link.refresh_from_db()
    assert services.why_ended([link], link.created_at)[link.pk] == ENDED_WITH_ITS_JOB


def test_a_comparison_leaves_out_what_was_deleted(job: Job) -> None:
    other, _ = make_secret_job(mean=50.0, project=job.project, user=job.created_by, name="Runner")
    _, path = share(job, of=[job.pk, other.pk])
    assert "Runner" in Client().get(path).content.decode()
    Job.objects.filter(pk=other.pk).update(deleted_at=job.created_at, archived_at=job.created_at)
    page = Client().get(path).content.decode()
    assert 'title="Walker"' in page
    assert 'title="Runner"' not in page
    Job.objects.filter(pk=job.pk).update(deleted_at=job.created_at, archived_at=job.created_at)
    assert "were deleted" in Client().get(path).content.decode()


def test_in_an_archived_project_links_work_and_are_revoked_but_not_made(job: Job) -> None:
    owner, project = job.created_by, job.project
    link, path = share(job)
    archive_project(project=project, user=owner, end_running=True)
    assert status(path) == 200
    client = signed_in(owner)
    assert client.post(f"/p/{project.slug}/links/make/", {"of": job.pk, "days": "7"}).status_code == 403
    assert client.post(f"/p/{project.slug}/links/{link.pk}/revoke/").status_code == 302
    assert status(path) == 404


# What they open


def test_a_link_opens_its_object_and_nothing_else(job: Job) -> None:
    """Whatever is added to its address; and no other address of the site knows it."""
    other = make_job(job.project, job.created_by)
    _, path = share(job)
    client = Client()
    for query in (f"?of={other.pk}", f"?job={other.pk}", f"?job_id={other.pk}"):
        page = client.get(f"{path}{query}").content.decode()
        assert ("Walker" in page, other.pk in page) == (True, False)
    for part in (f"jobs/{job.pk}/", f"{other.pk}/", "cost.csv", "spec.json", "logs/", "checkpoints/"):
        assert client.get(f"{path}{part}").status_code == 404, part
    inside = reverse("jobs:detail", args=[job.project.slug, job.pk])
    secret = path.split("/")[2]
    for address in (inside, f"{inside}stream", f"{inside}spec.json", f"{inside}cost.csv", "/projects/"):
        assert client.get(address).status_code == 302, address
        assert client.get(f"{address}?secret={secret}").status_code == 302, address
    answer = client.get(
        f"/api/v1/projects/{job.project.slug}/jobs", headers={"Authorization": f"Bearer {secret}"}
    )
    assert answer.status_code == 401
    assert client.get(f"/join/{secret}/").status_code == 404
    assert client.get(f"/sign-in/{secret}/").status_code == 403


def test_links_of_comparisons_and_reports_open_no_job(job: Job) -> None:
    _, compared = share(job, of=[job.pk, make_job(job.project, job.created_by).pk])
    _, costs = share(job, of=(), report={"range": "this-month", "by": "job"}, money=True)
    for path in (compared, costs):
        assert status(f"{path}series") == 404
        assert set(Client().get(f"{path}stream").json()) == {"version"}
    stranger = make_project()
    with pytest.raises(LinkRefused, match="not in this"):
        make_link(project=stranger, user=stranger.people.get(), of=[job.pk])


def test_shared_pages_take_no_posts_and_hold_no_forms(job: Job) -> None:
    _, path = share(job)
    for part in ("", "embed/", "stream", "series", "films.json"):
        assert Client().post(f"{path}{part}").status_code == 405
    page = Client().get(path).content.decode()
    assert "method=" not in page
    assert "csrf" not in page


def test_they_set_no_cookie_and_know_no_one(job: Job) -> None:
    """Also for a person who is signed in, whom they do not name."""
    _, path = share(job, sites=["*"])
    before = Session.objects.count()
    for client in (Client(), signed_in(job.created_by)):
        known = Session.objects.count()
        for part in ("", "embed/", "stream"):
            answer = client.get(f"{path}{part}")
            assert (answer.status_code, dict(answer.cookies)) == (200, {})
            assert "Cookie" not in answer.headers.get("Vary", "")
            assert job.created_by.email not in answer.content.decode()
        assert Session.objects.count() == known
    assert before == 0


def test_they_are_kept_by_no_cache_and_no_search_engine(job: Job) -> None:
    _, path = share(job)
    for address in (path, f"{path}stream", "/s/nonsense/"):
        headers = Client().get(address).headers
        assert headers["X-Robots-Tag"].startswith("noindex")
        assert headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
    assert '<meta name="robots" content="noindex' in Client().get(path).content.decode()


# Frames of other sites


def _frames(answer: Any) -> str:
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";"))
    return policy["frame-ancestors"]


def test_it_is_embedded_on_the_named_sites_alone(job: Job) -> None:
    _, path = share(job, sites=["https://wiki.example.org/", "HTTPS://Notes.example.org:8443"])
    framed, whole = Client().get(f"{path}embed/"), Client().get(path)
    assert _frames(framed) == "https://wiki.example.org https://notes.example.org:8443"
    assert "X-Frame-Options" not in framed.headers
    assert (_frames(whole), whole.headers["X-Frame-Options"]) == ("'none'", "DENY")
    # All else is as for every page.
    policies = [one.headers["Content-Security-Policy"].split("frame-ancestors")[0] for one in (framed, whole)]
    assert policies[0] == policies[1]


def test_without_sites_it_is_embedded_nowhere(job: Job) -> None:
    _, path = share(job)
    answer = Client().get(f"{path}embed/")
    assert (answer.status_code, _frames(answer)) == (404, "'none'")
    _, anywhere = share(job, sites=["*"])
    assert _frames(Client().get(f"{anywhere}embed/")) == "*"


@pytest.mark.parametrize("path", ["/", "/accounts/login/", "/s/nonsense/", "/s/nonsense/embed/", "/nowhere/"])
def test_no_other_page_can_be_framed(path: str) -> None:
    answer = Client().get(path)
    assert _frames(answer) == "'none'"


@pytest.mark.parametrize(
    "site",
    [
        "wiki.example.org", "https://", "https://wiki.example.org/page", "javascript:alert(1)", "https://a b",
        "https://wiki.example.org; script-src *", "https://x@wiki.example.org", "'self'", "https://*",
    ],
)  # fmt: skip
def test_what_is_no_site_is_refused(site: str, job: Job) -> None:
    with pytest.raises(LinkRefused, match="is no site"):
        share(job, sites=[site])


# The page inside


def test_an_editor_makes_a_link_sees_it_once_and_revokes_it(job: Job) -> None:
    client, base = signed_in(job.created_by), f"/p/{job.project.slug}/links/"
    assert (
        f"{base}?of={job.pk}"
        in client.get(reverse("jobs:detail", args=[job.project.slug, job.pk])).content.decode()
    )
    form = client.get(f"{base}?of={job.pk}").content.decode()
    assert "Share Walker" in form
    given = {"of": job.pk, "days": "7", "sites": "https://wiki.example.org"}
    made = client.post(f"{base}make/", given)
    link = SharedLink.objects.get()
    text = made.content.decode()
    assert "no-store" in made.headers["Cache-Control"]
    path = text.split("http://127.0.0.1:8000")[1].split("<")[0]
    assert status(path) == 200
    assert f"{path}embed/" in text
    later = client.get(base).content.decode()
    assert ("Walker" in later, path in later) == (True, False)
    assert (link.with_money, link.sites) == (False, ["https://wiki.example.org"])
    client.post(f"{base}{link.pk}/revoke/")
    assert status(path) == 404
    assert "Nothing is shared" in client.get(base).content.decode()


def test_a_jobs_page_of_links_lists_its_own_and_leads_to_all(job: Job) -> None:
    other = make_job(job.project, spec=make_spec(name="Hopper"))
    client, base = signed_in(job.created_by), f"/p/{job.project.slug}/links/"
    own, of_other, of_both = share(job)[0], share(other)[0], share(job, of=[job.pk, other.pk])[0]

    def listed(query: str) -> list[int]:
        page = client.get(f"{base}{query}").content.decode()
        assert ("All 3 links" in page) == bool(query)
        return sorted(map(int, re.findall(r"/links/(\d+)/revoke/", page)))

    assert listed(f"?of={job.pk}") == [own.pk]
    assert listed(f"?of={other.pk}") == [of_other.pk]
    assert listed(f"?of={job.pk}&of={other.pk}") == [of_both.pk]
    assert listed("") == sorted([own.pk, of_other.pk, of_both.pk])
    answer = client.post(f"{base}{own.pk}/revoke/", {"of": job.pk})
    assert answer.headers["Location"] == f"{base}?of={job.pk}"
    assert "No one has" in client.get(answer.headers["Location"]).content.decode()
    assert client.post(f"{base}{of_both.pk}/revoke/").headers["Location"] == base


def test_making_one_wants_a_fresh_sign_in(job: Job) -> None:
    client = signed_in(job.created_by, fresh=False)
    answer = client.post(f"/p/{job.project.slug}/links/make/", {"of": job.pk, "days": "7"})
    assert answer.status_code == 302
    assert not SharedLink.objects.exists()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"days": "7", "of": "job_nothing"}, "not in this"),
        ({"days": "7", "report": "1", "by": "user", "money": "on"}, "Costs by user"),
        ({"days": "7", "report": "1", "by": "day", "user": "a@b.org", "money": "on"}, "names the person"),
        ({"days": "7", "report": "1", "by": "day"}, "about money"),
        ({"days": "7", "of": "", "sites": "nonsense"}, "Name a job"),
    ],
)
def test_what_cannot_be_shared_is_refused_in_words(given: dict[str, str], why: str, job: Job) -> None:
    answer = signed_in(job.created_by).post(f"/p/{job.project.slug}/links/make/", given)
    assert (answer.status_code, why in answer.content.decode()) == (422, True)
    assert not SharedLink.objects.exists()


def test_a_project_has_so_many_working_links_and_no_more(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_LINKS", 2)
    first, _ = share(job)
    share(job)
    with pytest.raises(LinkRefused, match="Revoke one first"):
        share(job)
    revoke_link(first)
    share(job)


# Programs


def test_the_api_makes_lists_and_revokes_them(job: Job) -> None:
    call, base = ApiCaller(job.created_by), f"/projects/{job.project.slug}/links"
    made = call.post(base, {"of": [job.pk], "days": None, "embed_on": ["https://wiki.example.org"]})
    assert made.status_code == 201
    body = made.json()
    assert (body["kind"], body["title"], body["money"], body["ends_at"]) == ("job", "Walker", False, None)
    path = body["link"].removeprefix("http://127.0.0.1:8000")
    assert body["embed"] == f"{body['link']}embed/"
    assert status(path) == 200
    (listed,) = call.get(base).json()["results"]
    assert (listed["hint"], listed["ended"], listed["last_used_at"] is None) == (path[-5:-1], "", False)
    assert "link" not in listed
    editor = make_user()
    add_member(job.project, editor.email, "editor")
    assert ApiCaller(editor)("DELETE", f"{base}/{body['id']}").status_code == 204
    assert status(path) == 404
    assert call("DELETE", f"{base}/{body['id']}").status_code == 404
    refused = call.post(base, {"range": "this-month"})
    assert (refused.status_code, "about money" in refused.json()["why"]) == (409, True)
    assert call.post(base, {"of": [job.pk], "days": 8}).status_code == 422


@pytest.mark.parametrize(("role", "may"), [("viewer", False), ("editor", True), ("owner", True)])
def test_the_same_people_make_links_on_the_page_and_by_the_api(role: str, may: bool, job: Job) -> None:
    person = make_user(password="correct horse battery")
    add_member(job.project, person.email, role)
    page = signed_in(person).post(f"/p/{job.project.slug}/links/make/", {"of": job.pk, "days": "7"})
    call = ApiCaller(person, ("manage",)).post(f"/projects/{job.project.slug}/links", {"of": [job.pk]})
    assert (page.status_code, call.status_code) == ((200, 201) if may else (403, 403))
    # As a link outlasts its token, no other scope makes one.
    for scopes in ((), ("jobs",), ("jobs", "budget")):
        answer = ApiCaller(person, scopes).post(f"/projects/{job.project.slug}/links", {"of": [job.pk]})
        assert answer.status_code == 403
    assert SharedLink.objects.count() == (2 if may else 0)


def test_no_log_holds_the_secret_of_a_link(job: Job) -> None:
    _, path = share(job)
    for text in (path, f"{path}stream", path.replace("/s/", "/ws/v1/shared/"), path.replace("/s/", "/join/")):
        record = logging.LogRecord("x", logging.ERROR, "x", 1, "Reference %s: %s failed.", ("AB", text), None)
        assert AddressRedaction().filter(record)
        assert path.split("/")[2] not in record.getMessage()
    plain = logging.LogRecord("x", logging.INFO, "x", 1, "%s is up", ("/p/robots/jobs/",), None)
    AddressRedaction().filter(plain)
    assert plain.getMessage() == "/p/robots/jobs/ is up"
