"""Films on shared pages: at addresses of their link, as long as it works, and nothing else of the project's films."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from tests.factories import FixedClock
from tests.signed_in import signed_in
from tests.webapp.jobs.policies.test_evaluation_films import ready
from tests.webapp.jobs.policies.test_policy import PICTURE
from tests.webapp.sharing.shares import make_secret_job, secrets_in, share
from tests.webapp.sharing.test_allowlist import money_in
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies.policy_views import WAITS_FOR_EVALUATION
from webapp.sharing import allowlist
from webapp.sharing.models import SharedLink
from webapp.sharing.services import revoke_link

pytestmark = pytest.mark.django_db


@pytest.fixture
def job() -> Job:
    return make_secret_job()[0]


def films_at(path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Client().get(f"{path}films.json").json()["films"]
    return found


def test_a_shared_job_and_its_frame_play_its_films(job: Job) -> None:
    late, early = ready(job, 3), ready(job, 1)
    _, path = share(job, sites=["https://wiki.example.org"])
    films = films_at(path)
    assert [one["round"] for one in films] == [1, 3]
    assert all(set(one) == allowlist.FILM for one in films)
    assert films[0]["still"] == f"{path}films/{early.pk}-still.webp"
    for part in ("", "embed/"):
        page = Client().get(f"{path}{part}").content.decode()
        assert f'src="{path}films/{late.pk}-still.webp"' in page
        assert f'data-films="{path}films.json"' in page
        assert secrets_in(page) + money_in(page) == []
        assert job.pk not in page
    for part in ("film", "still"):
        answer = Client().get(films[1][part])
        assert b"".join(answer.streaming_content) == PICTURE  # type: ignore[attr-defined]
        assert answer.headers["Content-Type"] == "image/webp"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Robots-Tag"].startswith("noindex")
        assert dict(answer.cookies) == {}


def test_films_end_with_their_link(job: Job) -> None:
    film = ready(job, 1)
    gone = Client().get("/s/nonsense/").content
    for end in ("revoked", "expired", "deleted"):
        link, path = share(job)
        addresses = [f"{path}films.json", f"{path}films/{film.pk}-film.webp"]
        for address in addresses:
            answer = Client().get(address)
            assert answer.status_code == 200
            assert b"".join(answer)
        if end == "revoked":
            revoke_link(link)
        elif end == "expired":
            past = FixedClock().now() - timedelta(days=3650)
            SharedLink.objects.filter(pk=link.pk).update(expires_at=past)
        else:
            Job.objects.filter(pk=job.pk).update(archived_at=job.created_at, deleted_at=job.created_at)
        for address in addresses:
            answer = Client().get(address)
            assert (answer.status_code, answer.content) == (404, gone), end


def test_a_link_opens_no_film_of_another_job(job: Job) -> None:
    other = make_secret_job(project=job.project, user=job.created_by, name="Runner")[0]
    theirs, mine = ready(other, 1), ready(job, 1)
    _, path = share(job)
    _, compared = share(job, of=[job.pk, other.pk])
    queued = Film.objects.create(job=job, checkpoint="c", sha256="a" * 64, round_no=2, since=job.since)
    lost = Film.objects.create(
        job=job, checkpoint="d", sha256="b" * 64, round_no=3, since=job.since, state=FilmState.READY, file="x"
    )
    closed = [f"/s/{'A' * 43}/films/{mine.pk}-film.webp", f"{compared}films.json"]
    closed += [f"{compared}films/{mine.pk}-film.webp"]
    closed += [f"{path}films/{one}-film.webp" for one in (theirs.pk, queued.pk, lost.pk, 10**9)]
    gone = Client().get("/s/nonsense/").content
    for address in closed:
        answer = Client().get(address)
        assert (answer.status_code, answer.content) == (404, gone), address
        assert signed_in(job.created_by).get(address).status_code == 404
    assert Client().post(f"{path}films.json").status_code == 405
    inside = f"/p/{job.project.slug}/jobs/{job.pk}/films/{mine.pk}-film.webp"
    assert Client().get(inside).status_code == 302, (
        "without an account the project's own address opens nothing"
    )


def test_why_a_film_failed_stays_inside(job: Job) -> None:
    _, path = share(job)
    assert WAITS_FOR_EVALUATION in Client().get(path).content.decode()
    reason = "MuJoCo cannot draw on host 123456789012."
    Film.objects.create(
        job=job, checkpoint="c", sha256="0" * 64, round_no=1, since=job.since, state="failed", reason=reason
    )
    assert "data-films" not in Client().get(path).content.decode()
    assert Client().get(f"{path}films.json").json() == {"films": [], "sentence": ""}


def test_of_a_film_only_the_listed_is_let_through() -> None:
    assert allowlist.shared_film({"round": 1, "reason": "x", "requested_by": "ada@example.org"}) == {
        "round": 1
    }
