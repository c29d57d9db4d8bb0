"""Surfaces, films, schedulers, memory profiles and the papers by the API: the same as on the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_connection, make_job, make_project, make_user
from tests.members import add_member
from tests.webapp import scheduler_rows
from tests.webapp.api_callers import ApiCaller
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints
from webapp.api.models import Made
from webapp.jobs.models import Film
from webapp.jobs.policies import downloads as policies
from webapp.jobs.policies.film_files import film_path
from webapp.jobs.spec import JobSpec
from webapp.papers import figures
from webapp.papers.figures import FIGURES
from webapp.profiling.models import MemoryProfile
from webapp.schedulers.models import Episode, SchedulerTraining
from webapp.surfaces.models import Surface

pytestmark = pytest.mark.django_db

PLAN = {"environment": {"id": "CartPole-v1"}, "memory_mb": [1769, 1024], "steps": 64, "calls": 2}


class Asked:
    """Someone with a token for all of a project's things."""

    def __init__(self) -> None:
        self.user = make_user()
        self.project = make_project(self.user)
        self.call = ApiCaller(self.user)
        self.base = f"/projects/{self.project.slug}"


@pytest.fixture
def asked(settings: Any, tmp_path: Path) -> Asked:
    settings.STARLING_DATA = tmp_path
    return Asked()


class TestSurfaces:
    def test_one_is_asked_for_followed_and_read(self, asked: Asked) -> None:
        job = job_with_checkpoints(asked.project, 2, best=1)
        address = f"{asked.base}/jobs/{job.pk}/surfaces"
        made = asked.call.post(address, {"grid": 9, "span": 0.5, "episodes": 2})
        assert made.status_code == 202, made.content
        surface = Surface.objects.get()
        assert surface.checkpoint == policies.list_checkpoints(job)[0].name, "the best, where none is named"
        assert (surface.grid, surface.span, surface.episodes, surface.asked_by) == (9, 0.5, 2, asked.user)
        assert asked.call.post(address, {"grid": 21}).json()["id"] == surface.pk
        waiting = asked.call.get(made.headers["Location"])
        assert (waiting.json()["state"], waiting.json()["points"]) == ("queued", [])
        same = asked.call.get(made.headers["Location"], If_None_Match=waiting.headers["ETag"])
        assert (same.status_code, same.content) == (304, b"")
        points = [[None, 5.0, None], [None, 7.0, None], [None, None, None]]
        known = {"points": points, "offsets": [-1.0, 0.0, 1.0], "eigenvalues": [2.0, -1.0], "done": 2}
        Surface.objects.filter(pk=surface.pk).update(state="ready", grid=3, **known)
        told = asked.call.get(made.headers["Location"], If_None_Match=waiting.headers["ETag"]).json()
        assert (told["points"], told["points_done"], told["points_asked"]) == (points, 2, 9)
        assert told["sentence"].startswith("The policy itself, in the middle, comes to 7.0.")
        (listed,) = asked.call.get(address).json()["results"]
        assert "points" not in listed

    def test_what_cannot_be_measured_is_refused(self, asked: Asked) -> None:
        job = job_with_checkpoints(asked.project, 1)
        address = f"{asked.base}/jobs/{job.pk}/surfaces"
        for wrong in ({"grid": 10}, {"span": 0}, {"episodes": 21}, {"points": 3}):
            refused = asked.call.post(address, wrong)
            assert refused.status_code == 422, wrong
            assert refused.json()["errors"][0]["path"] == next(iter(wrong))
        assert asked.call.post(address, {"checkpoint": "../../etc/passwd"}).status_code == 404
        assert not Surface.objects.exists()


def test_a_film_is_asked_for_and_fetched_once_it_is_ready(asked: Asked) -> None:
    job = job_with_checkpoints(asked.project, 1)
    made = asked.call.post(f"{asked.base}/jobs/{job.pk}/films", {})
    assert made.status_code == 202, made.content
    film = Film.objects.get()
    file = f"{made.headers['Location']}/file"
    early = asked.call.get(file)
    assert (early.status_code, early.json()["why"]) == (409, "The film is queued.")
    facts = {"frames": 1, "width": 2, "height": 2, "seconds": 0.1, "steps": 5, "episode_return": 9.0}
    facts |= {"ended": True, "seed": 0, "byte_count": 4}
    Film.objects.update(state="ready", file=f"{job.pk}/f.webp", facts=facts)
    film.refresh_from_db()
    for path, content in ((film_path(film), b"FILM"), (film_path(film, still=True), b"STILL")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    told = asked.call.get(made.headers["Location"]).json()
    assert (told["file"], told["shows"]["episode_return"]) == (file, 9.0)
    answer = asked.call.get(file)
    assert (b"".join(answer.streaming_content), answer.headers["Content-Type"]) == (b"FILM", "image/webp")
    assert b"".join(asked.call.get(f"{file}?part=still").streaming_content) == b"STILL"
    film_path(film).unlink()
    assert asked.call.get(file).status_code == 404


class TestSchedulers:
    def test_a_training_is_asked_for_once_a_key_and_stopped(self, asked: Asked) -> None:
        wish = scheduler_rows.asked().model_dump(mode="json")
        address = f"{asked.base}/scheduler-trainings"
        made = [asked.call.post(address, wish, Idempotency_Key="k") for _ in range(2)]
        assert [one.status_code for one in made] == [202, 202], made[0].content
        training = SchedulerTraining.objects.get()
        assert (training.asked_by, training.spec["actors_max"]) == (asked.user, 2)
        other = asked.call.post(address, {**wish, "name": "Other"}, Idempotency_Key="k")
        assert (other.status_code, other.json()["type"]) == (409, "urn:starling:key-used")
        assert Made.objects.get().made_id == str(training.pk)
        progress = asked.call.get(made[0].headers["Location"]).json()
        assert (progress["state"], progress["facts"]["episodes"]) == ("queued", 0)
        assert progress["sentence"].startswith("Waiting for the worker")
        (listed,) = asked.call.get(address).json()["results"]
        assert "facts" not in listed, "what costs a query each is told of one alone"
        assert asked.call.post(f"{made[0].headers['Location']}/stop").json()["state"] == "stopped"

    def test_one_that_cannot_be_had_is_refused_in_words_and_its_key_stays_free(self, asked: Asked) -> None:
        address, wish = f"{asked.base}/scheduler-trainings", {"workload": "nothing"}
        refused = asked.call.post(address, wish, Idempotency_Key="k")
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["path"] == "workload"
        assert asked.call.post(address, {"workload": "cartpole"}, Idempotency_Key="k").status_code == 202

    def test_versions_are_told_kept_and_trained_on(self, asked: Asked) -> None:
        first = scheduler_rows.make_version(asked.project)
        second = scheduler_rows.make_version(asked.project)
        address = f"{asked.base}/schedulers/{first.scheduler_id}"
        (listed,) = asked.call.get(f"{asked.base}/schedulers").json()["results"]
        assert (listed["versions"], listed["newest"]) == (2, second.key)
        page = asked.call.get(f"{address}/versions?limit=1").json()
        assert [one["id"] for one in page["results"]] == [second.key]
        page = asked.call.get(f"{address}/versions?limit=1&cursor={page['next']}").json()
        assert ([one["id"] for one in page["results"]], page["next"]) == ([first.key], None)
        kept = asked.call.get(f"{address}/versions/1").json()
        assert kept["scaling"]["weights"] == first.weights
        tuned = asked.call.post(f"{address}/versions/2/fine-tunings", {"workload": "acrobot", "episodes": 3})
        assert tuned.status_code == 202, tuned.content
        training = SchedulerTraining.objects.get(pk=tuned.json()["id"])
        assert (training.begin_with, training.name) == (second, "Tiny, fine-tuned")
        spec = training.parsed_spec
        assert (spec.actors_max, spec.episodes, spec.rehearsals) == (2, 3, 0)
        assert spec.workload.environment.id == "Acrobot-v1"

    def test_episodes_are_read_in_order_page_by_page(self, asked: Asked) -> None:
        training = scheduler_rows.ask(asked.project)
        rows = [
            Episode.objects.create(
                training=training, kind="real", number=number, at=training.asked_at, rounds=2, platform_s=1.0,
                wall_s=1.0, cost_picodollars=10**9, reached=False, score=-1.0, actors=[1, 2],
            )
            for number in (1, 2, 3)
        ]  # fmt: skip
        address = f"{asked.base}/scheduler-trainings/{training.pk}/episodes?limit=2"
        page = asked.call.get(address).json()
        assert ([one["number"] for one in page["results"]], page["next"]) == ([1, 2], rows[1].pk)
        assert page["results"][0]["cost_usd"] == "0.001"
        rest = asked.call.get(f"{address}&after={page['next']}").json()
        assert ([one["actors"] for one in rest["results"]], rest["next"]) == ([[1, 2]], None)

    def test_a_cursor_of_other_rows_is_refused(self, asked: Asked) -> None:
        from webapp.api.paging import cursor_of

        strange = cursor_of(asked.project.created_at, "not a number")
        refused = asked.call.get(f"{asked.base}/scheduler-trainings?cursor={strange}")
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:starling:cursor")


class TestProfiles:
    def test_one_is_priced_asked_for_and_put_to_use(self, asked: Asked) -> None:
        address = f"{asked.base}/connections/simulated/profiles"
        cost = asked.call.post(f"{address}/cost", PLAN).json()
        assert cost["money"] == "simulated"
        assert 0 < float(cost["likely_usd"]) < float(cost["most_usd"])
        made = asked.call.post(address, PLAN, Idempotency_Key="k")
        assert made.status_code == 202, made.content
        assert asked.call.post(address, PLAN, Idempotency_Key="k").json()["id"] == made.json()["id"]
        again = asked.call.post(address, PLAN)
        assert (again.status_code, again.json()["why"]) == (409, "A profile is being measured already.")
        early = asked.call.get(f"{made.headers['Location']}/spec")
        assert (early.status_code, early.json()["type"]) == (409, "urn:starling:no-choice")
        run = {"memory_mb": 1024, "env_steps": 64, "billed_s": 1.0, "picodollars": 10**6}
        slow = {**run, "memory_mb": 1769, "billed_s": 2.0}
        MemoryProfile.objects.update(state="done", runs=[run, run, slow, slow])
        told = asked.call.get(made.headers["Location"]).json()
        assert (told["chosen_mb"], [one["memory_mb"] for one in told["sizes"]]) == (1024, [1024, 1769])
        spec = JobSpec.model_validate(asked.call.get(f"{made.headers['Location']}/spec").json())
        assert spec.training.rollout.memory_mb == 1024
        assert (spec.platform.kind, spec.training.environment.id) == ("simulated", "CartPole-v1")

    def test_in_an_account_it_is_for_owners_with_a_token_that_manages(self, asked: Asked) -> None:
        connection = make_connection(asked.project, asked.user)
        address = f"{asked.base}/connections/{connection.pk}/profiles"
        editor = make_user()
        add_member(asked.project, editor.email, "editor")
        low = ApiCaller(asked.user, ("jobs",)).post(address, PLAN)
        assert (low.status_code, "“manage”" in low.json()["fix"]) == (403, True)
        assert ApiCaller(editor).post(address, PLAN).json()["type"] == "urn:starling:role"
        # An account that was never tested lends nothing, and says why; nothing is left of the wish.
        refused = asked.call.post(address, PLAN, Idempotency_Key="k")
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:starling:profile")
        assert not MemoryProfile.objects.exists()
        assert not Made.objects.exists()


def test_the_papers_are_told_from_stored_results(asked: Asked) -> None:
    listed = {one["name"]: one for one in asked.call.get("/experiments").json()}
    assert set(listed) == {name for name in figures.result_names() if figures.find_result(name)}
    results = figures.find_result("nitro_overhead")
    assert results is not None
    told = asked.call.get("/experiments/nitro_overhead").json()
    assert [one["word"] for one in told["claims"]] == [one["verdict"] for one in results["verdicts"]]
    assert sum(told["verdicts"].values()) == len(told["claims"])
    assert [one["key"] for one in told["figures"]] == told["repeats"] == ["nitro-20"]
    assert told["tables"] == results.get("tables", [])
    shown = asked.call.get("/figures").json()
    assert [one["key"] for one in shown] == [one.key for one in FIGURES]
    of_claims = {word for one in listed.values() for word in one["verdicts"]}
    assert {one["verdict"] for one in shown} <= {"open", "shown", "not run", "on demand", *of_claims}
    assert asked.call.get("/experiments/none").status_code == 404


def test_another_jobs_surface_is_not_there(asked: Asked) -> None:
    job, other = make_job(asked.project, asked.user), make_job(asked.project, asked.user)
    surface = Surface.objects.create(
        job=other, checkpoint="c", sha256="0" * 64, round_no=1, grid=9, span=1, episodes=1,
        asked_by=asked.user, since=other.created_at,
    )  # fmt: skip
    address = f"{asked.base}/jobs/{{}}/surfaces/{surface.pk}"
    assert asked.call.get(address.format(other.pk)).status_code == 200
    assert asked.call.get(address.format(job.pk)).status_code == 404
