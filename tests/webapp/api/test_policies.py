"""Surfaces, films, schedulers, memory profiles and the papers by the API: the same as on the pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_connection, make_job, make_project, make_user
from tests.figures import figures_in
from tests.members import add_member
from tests.webapp import scheduler_rows
from tests.webapp.api_callers import ApiCaller
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints
from webapp.api.models import Made
from webapp.comparing.papers import figures
from webapp.comparing.papers.figures import FIGURES
from webapp.jobs.models import Film
from webapp.jobs.policies import downloads as policies
from webapp.jobs.policies.film_process import film_path
from webapp.jobs.spec import JobSpec
from webapp.jobs.surfaces.models import Surface
from webapp.resources.profiling.models import MemoryProfile
from webapp.schedulers.models import Episode, SchedulerTraining

pytestmark = pytest.mark.django_db

PLAN = {"environment": {"id": "CartPole-v1"}, "memory_mb": [1769, 1024], "steps": 64, "calls": 2}


class Scene:
    """Someone with a token for all of a project's things."""

    def __init__(self) -> None:
        self.user = make_user()
        self.project = make_project(self.user)
        self.call = ApiCaller(self.user)
        self.base = f"/projects/{self.project.slug}"


@pytest.fixture
def scene(settings: Any, tmp_path: Path) -> Scene:
    settings.STARLING_DATA = tmp_path
    return Scene()


class TestSurfaces:
    def test_one_is_requested_followed_and_read(self, scene: Scene) -> None:
        job = job_with_checkpoints(scene.project, 2, best=1)
        address = f"{scene.base}/jobs/{job.pk}/surfaces"
        made = scene.call.post(address, {"grid": 9, "span": 0.5, "episodes": 2})
        assert made.status_code == 202, made.content
        surface = Surface.objects.get()
        assert surface.checkpoint == policies.list_checkpoints(job)[0].name, "the best, where none is named"
        assert (surface.grid, surface.span, surface.episodes, surface.requested_by) == (9, 0.5, 2, scene.user)
        assert scene.call.post(address, {"grid": 21}).json()["id"] == surface.pk
        waiting = scene.call.get(made.headers["Location"])
        assert (waiting.json()["state"], waiting.json()["points"]) == ("queued", [])
        same = scene.call.get(made.headers["Location"], If_None_Match=waiting.headers["ETag"])
        assert (same.status_code, same.content) == (304, b"")
        points = [[None, 5.0, None], [None, 7.0, None], [None, None, None]]
        known = {"points": points, "offsets": [-1.0, 0.0, 1.0], "eigenvalues": [2.0, -1.0], "done": 2}
        Surface.objects.filter(pk=surface.pk).update(state="ready", grid=3, **known)
        body = scene.call.get(made.headers["Location"], If_None_Match=waiting.headers["ETag"]).json()
        assert (body["points"], body["points_done"], body["points_asked"]) == (points, 2, 9)
        assert body["sentence"].startswith("The policy itself")
        assert figures_in(body["sentence"])[0] == "7.0"
        (listed,) = scene.call.get(address).json()["results"]
        assert "points" not in listed

    def test_what_cannot_be_measured_is_refused(self, scene: Scene) -> None:
        job = job_with_checkpoints(scene.project, 1)
        address = f"{scene.base}/jobs/{job.pk}/surfaces"
        for wrong in ({"grid": 10}, {"span": 0}, {"episodes": 21}, {"points": 3}):
            refused = scene.call.post(address, wrong)
            assert refused.status_code == 422, wrong
            assert refused.json()["errors"][0]["path"] == next(iter(wrong))
        assert scene.call.post(address, {"checkpoint": "../../etc/passwd"}).status_code == 404
        assert not Surface.objects.exists()


def test_a_film_is_requested_and_fetched_once_it_is_ready(scene: Scene) -> None:
    job = job_with_checkpoints(scene.project, 1)
    made = scene.call.post(f"{scene.base}/jobs/{job.pk}/films", {})
    assert made.status_code == 202, made.content
    film = Film.objects.get()
    file = f"{made.headers['Location']}/file"
    early = scene.call.get(file)
    assert (early.status_code, "queued" in early.json()["why"]) == (409, True)
    facts = {"frames": 1, "width": 2, "height": 2, "seconds": 0.1, "steps": 5, "episode_return": 9.0}
    facts |= {"ended": True, "seed": 0, "byte_count": 4}
    Film.objects.update(state="ready", file=f"{job.pk}/f.webp", facts=facts)
    film.refresh_from_db()
    for path, content in ((film_path(film), b"FILM"), (film_path(film, still=True), b"STILL")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    body = scene.call.get(made.headers["Location"]).json()
    assert (body["file"], body["shows"]["episode_return"]) == (file, 9.0)
    answer = scene.call.get(file)
    assert (b"".join(answer.streaming_content), answer.headers["Content-Type"]) == (b"FILM", "image/webp")
    assert b"".join(scene.call.get(f"{file}?part=still").streaming_content) == b"STILL"
    film_path(film).unlink()
    assert scene.call.get(file).status_code == 404


class TestSchedulers:
    def test_a_training_is_requested_once_a_key_and_stopped(self, scene: Scene) -> None:
        wish = scheduler_rows.training_request().model_dump(mode="json")
        address = f"{scene.base}/scheduler-trainings"
        made = [scene.call.post(address, wish, Idempotency_Key="k") for _ in range(2)]
        assert [one.status_code for one in made] == [202, 202], made[0].content
        training = SchedulerTraining.objects.get()
        assert (training.requested_by, training.spec["actors_max"]) == (scene.user, 2)
        other = scene.call.post(address, {**wish, "name": "Other"}, Idempotency_Key="k")
        assert (other.status_code, other.json()["type"]) == (409, "urn:starling:key-used")
        assert Made.objects.get().made_id == str(training.pk)
        progress = scene.call.get(made[0].headers["Location"]).json()
        assert (progress["state"], progress["facts"]["episodes"]) == ("queued", 0)
        assert progress["sentence"].startswith("Waiting")
        (listed,) = scene.call.get(address).json()["results"]
        assert "facts" not in listed, "what costs a query each is told of one alone"
        assert scene.call.post(f"{made[0].headers['Location']}/stop").json()["state"] == "stopped"

    def test_one_that_cannot_be_had_is_refused_in_words_and_its_key_stays_free(self, scene: Scene) -> None:
        address, wish = f"{scene.base}/scheduler-trainings", {"workload": "nothing"}
        refused = scene.call.post(address, wish, Idempotency_Key="k")
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["path"] == "workload"
        assert scene.call.post(address, {"workload": "cartpole"}, Idempotency_Key="k").status_code == 202

    def test_versions_are_reported_kept_and_trained_on(self, scene: Scene) -> None:
        first = scheduler_rows.make_version(scene.project)
        second = scheduler_rows.make_version(scene.project)
        address = f"{scene.base}/schedulers/{first.scheduler_id}"
        (listed,) = scene.call.get(f"{scene.base}/schedulers").json()["results"]
        assert (listed["versions"], listed["newest"]) == (2, second.key)
        page = scene.call.get(f"{address}/versions?limit=1").json()
        assert [one["id"] for one in page["results"]] == [second.key]
        page = scene.call.get(f"{address}/versions?limit=1&cursor={page['next']}").json()
        assert ([one["id"] for one in page["results"]], page["next"]) == ([first.key], None)
        kept = scene.call.get(f"{address}/versions/1").json()
        assert kept["scaling"]["weights"] == first.weights
        tuned = scene.call.post(f"{address}/versions/2/fine-tunings", {"workload": "acrobot", "episodes": 3})
        assert tuned.status_code == 202, tuned.content
        training = SchedulerTraining.objects.get(pk=tuned.json()["id"])
        assert (training.begin_with, training.name) == (second, "Tiny, fine-tuned")
        spec = training.parsed_spec
        assert (spec.actors_max, spec.episodes, spec.rehearsals) == (2, 3, 0)
        assert spec.workload.environment.id == "Acrobot-v1"

    def test_episodes_are_read_in_order_page_by_page(self, scene: Scene) -> None:
        training = scheduler_rows.ask(scene.project)
        rows = [
            Episode.objects.create(
                training=training, kind="real", number=number, at=training.requested_at, rounds=2, platform_s=1.0,
                wall_s=1.0, cost_picodollars=10**9, reached=False, score=-1.0, actors=[1, 2],
            )
            for number in (1, 2, 3)
        ]  # fmt: skip
        address = f"{scene.base}/scheduler-trainings/{training.pk}/episodes?limit=2"
        page = scene.call.get(address).json()
        assert ([one["number"] for one in page["results"]], page["next"]) == ([1, 2], rows[1].pk)
        assert page["results"][0]["cost_usd"] == "0.001"
        rest = scene.call.get(f"{address}&after={page['next']}").json()
        assert ([one["actors"] for one in rest["results"]], rest["next"]) == ([[1, 2]], None)

    def test_a_cursor_of_other_rows_is_refused(self, scene: Scene) -> None:
        from webapp.api.paging import cursor_of

        strange = cursor_of(scene.project.created_at, "not a number")
        refused = scene.call.get(f"{scene.base}/scheduler-trainings?cursor={strange}")
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:starling:cursor")


class TestProfiles:
    def test_one_is_priced_requested_and_put_to_use(self, scene: Scene) -> None:
        address = f"{scene.base}/connections/simulated/profiles"
        cost = scene.call.post(f"{address}/cost", PLAN).json()
        assert cost["money"] == "simulated"
        assert 0 < float(cost["likely_usd"]) < float(cost["most_usd"])
        made = scene.call.post(address, PLAN, Idempotency_Key="k")
        assert made.status_code == 202, made.content
        assert scene.call.post(address, PLAN, Idempotency_Key="k").json()["id"] == made.json()["id"]
        again = scene.call.post(address, PLAN)
        assert again.status_code == 409
        assert MemoryProfile.objects.count() == 1
        early = scene.call.get(f"{made.headers['Location']}/spec")
        assert (early.status_code, early.json()["type"]) == (409, "urn:starling:no-choice")
        run = {"memory_mb": 1024, "env_steps": 64, "billed_s": 1.0, "picodollars": 10**6}
        slow = {**run, "memory_mb": 1769, "billed_s": 2.0}
        MemoryProfile.objects.update(state="done", runs=[run, run, slow, slow])
        body = scene.call.get(made.headers["Location"]).json()
        assert (body["chosen_mb"], [one["memory_mb"] for one in body["sizes"]]) == (1024, [1024, 1769])
        spec = JobSpec.model_validate(scene.call.get(f"{made.headers['Location']}/spec").json())
        assert spec.training.rollout.memory_mb == 1024
        assert (spec.platform.kind, spec.training.environment.id) == ("simulated", "CartPole-v1")

    def test_in_an_account_it_is_for_owners_with_a_token_that_manages(self, scene: Scene) -> None:
        connection = make_connection(scene.project, scene.user)
        address = f"{scene.base}/connections/{connection.pk}/profiles"
        editor = make_user()
        add_member(scene.project, editor.email, "editor")
        low = ApiCaller(scene.user, ("jobs",)).post(address, PLAN)
        assert (low.status_code, "“manage”" in low.json()["fix"]) == (403, True)
        assert ApiCaller(editor).post(address, PLAN).json()["type"] == "urn:starling:role"
        # An account that was never tested lends nothing, and says why; nothing is left of the wish.
        refused = scene.call.post(address, PLAN, Idempotency_Key="k")
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:starling:profile")
        assert not MemoryProfile.objects.exists()
        assert not Made.objects.exists()


def test_the_papers_come_from_stored_results(scene: Scene) -> None:
    listed = {one["name"]: one for one in scene.call.get("/experiments").json()}
    assert set(listed) == {name for name in figures.result_names() if figures.find_result(name)}
    results = figures.find_result("nitro_overhead")
    assert results is not None
    body = scene.call.get("/experiments/nitro_overhead").json()
    assert [one["word"] for one in body["claims"]] == [one["verdict"] for one in results["verdicts"]]
    assert sum(body["verdicts"].values()) == len(body["claims"])
    assert [one["key"] for one in body["figures"]] == body["repeats"] == ["nitro-20"]
    assert body["tables"] == results.get("tables", [])
    shown = scene.call.get("/figures").json()
    assert [one["key"] for one in shown] == [one.key for one in FIGURES]
    of_claims = {word for one in listed.values() for word in one["verdicts"]}
    assert {one["verdict"] for one in shown} <= {"open", "shown", "not run", "on demand", *of_claims}
    assert scene.call.get("/experiments/none").status_code == 404


def test_another_jobs_surface_is_not_there(scene: Scene) -> None:
    job, other = make_job(scene.project, scene.user), make_job(scene.project, scene.user)
    surface = Surface.objects.create(
        job=other, checkpoint="c", sha256="0" * 64, round_no=1, grid=9, span=1, episodes=1,
        requested_by=scene.user, since=other.created_at,
    )  # fmt: skip
    address = f"{scene.base}/jobs/{{}}/surfaces/{surface.pk}"
    assert scene.call.get(address.format(other.pk)).status_code == 200
    assert scene.call.get(address.format(job.pk)).status_code == 404
