"""Short films after evaluations: when they are made, what they may take, which are kept, who sees them."""

from __future__ import annotations

import os
import signal
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.factories import (
    FixedClock,
    checkpoint_saved,
    make_job,
    make_project,
    make_running_job,
    make_spec,
    make_user,
    round_finished,
)
from tests.webapp.jobs.policies.drawing import answers, draw_by
from tests.webapp.jobs.policies.test_policy import PICTURE, written
from training.rl.policies.film import SHORT
from training.rl.policies.film import film as filmed
from training.rl.policies.trained import TrainedPolicy
from training.spec import TrainingSpec
from webapp.celery import app as celery_app
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies import evaluation_films, films
from webapp.jobs.policies.downloads import checkpoint_path, list_checkpoints
from webapp.jobs.policies.evaluation_films import SHARE, allowed_cpu_s, queue_film, thin_out
from webapp.jobs.policies.film_process import FilmFailed, ShortFilms, film_path
from webapp.jobs.policies.policy_views import BEING_MADE, WAITS_FOR_EVALUATION, WAITS_FOR_TIME, film_card
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.runner import run_job

pytestmark = pytest.mark.django_db

PLENTY_CPU_S = 600.0
"""More than a whole film takes on a slow machine, with the start of its process."""


def ready(job: Job, round_no: int, *, cpu_s: float = 0.3, used_cpu_s: float = 0.3, size: int = 10) -> Film:
    """A short film, with its files."""
    facts = {
        "width": 320,
        "height": 213,
        "steps": 50,
        "episode_return": 50.0,
        "ended": True,
        "byte_count": size,
        "cpu_s": cpu_s,
        "used_cpu_s": used_cpu_s,
    }
    film = Film.objects.create(
        job=job,
        checkpoint=f"round-{round_no:08d}.checkpoint",
        sha256=f"{round_no:064}",
        round_no=round_no,
        state=FilmState.READY,
        since=job.since,
        file=f"{job.pk}/{round_no}.webp",
        facts=facts,
    )
    for still in (False, True):
        path = film_path(film, still=still)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PICTURE)
    return film


def waiting(job: Job, round_no: int = 99) -> Film:
    queue_film(job.pk, checkpoint_saved(round_no, f"{round_no:064}"))
    return Film.objects.get(job=job, round_no=round_no)


def learned(*, films_wanted: bool) -> tuple[Job, bytes]:
    """A job that has run, and its last learner's state."""
    spec = make_spec(
        "hopper-simulated",
        films=films_wanted,
        training__scaling__actors=2,
        training__rollout__steps_per_call=16,
        training__stop={"rounds": 2, "env_steps": None},
        training__evaluation={"every_rounds": 1, "episodes": 1},
        training__checkpoints={"every_rounds": 1},
        platform__workers=1,
    )
    job = make_job(spec=spec)
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    newest = next(row for row in list_checkpoints(job) if row.round_no == 2)
    return job, TrainedPolicy.read(checkpoint_path(job.pk, newest.name)).progress.learner


@pytest.mark.django_db(transaction=True)
def test_films_change_no_weights_and_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    hints: list[tuple[int, str]] = []

    def hint(task: str, args: list[Any], **_: Any) -> None:
        if args[0] == "jobs.film":
            hints.append((args[1], Job.objects.get(films=args[1]).observed))

    monkeypatch.setattr(celery_app, "send_task", hint)
    (filmed, weights), (plain, same_weights) = learned(films_wanted=True), learned(films_wanted=False)
    assert weights == same_weights
    (film,) = filmed.films.all()
    assert (film.automatic, film.state, film.round_no) == (True, FilmState.QUEUED, 2)
    assert not plain.films.exists()
    assert hints[-1] == (film.pk, "succeeded"), "the worker hears of the last film once the job has ended"


def test_a_film_that_waits_gives_way_to_a_newer_one() -> None:
    job, _ = make_running_job()
    waiting(job, 20)
    waiting(job, 40)
    assert [film.round_no for film in job.films.all()] == [40]
    ready(job, 60)
    queue_film(job.pk, checkpoint_saved(60, f"{60:064}"))
    assert [(film.round_no, film.state) for film in job.films.all()] == [(60, FilmState.READY)]


def test_after_a_failed_film_no_other_is_tried() -> None:
    job, _ = make_running_job()
    waiting(job, 20)
    job.films.update(state=FilmState.FAILED, reason="This environment draws nothing.")
    queue_film(job.pk, checkpoint_saved(40, "4" * 64))
    assert job.films.count() == 1


def started(clock: FixedClock, *, rounds: int, startup_s: float = 10.0) -> Job:
    """A job of ten rounds that has completed some, of a second each, after its start-up."""
    spec = make_spec(training__stop={"env_steps": 2560})
    job, epoch = make_running_job(clock=clock, spec=spec)
    Job.objects.filter(pk=job.pk).update(started_at=clock.now())
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, clock=clock)
    clock.forward(startup_s)
    for round_no in range(1, rounds + 1):
        clock.forward(1)
        recorder.record(round_finished(round_no))
    job.refresh_from_db()
    return job


def allowed_s(job: Job, clock: FixedClock, round_no: int = 99) -> float:
    film = waiting(job, round_no)
    return allowed_cpu_s(Film.objects.select_related("job").get(pk=film.pk), clock)


@pytest.mark.parametrize(
    ("rounds", "startup_s", "allowed"),
    [
        (2, 10.0, 0.0),  # of 20 s a twentieth is less than a film takes
        (2, 30.0, SHARE * 40),  # eight more rounds of a second: the start-up is no pace
        (1, 30.0, SHARE * 31),  # one round has no pace: only what has passed counts
        (0, 2.0, 0.0),
        (2, 300.0, evaluation_films.MOST_CPU_S),
    ],
)
def test_the_first_film_counts_on_the_pace_of_completed_rounds(
    rounds: int, startup_s: float, allowed: float
) -> None:
    clock = FixedClock()
    assert allowed_s(started(clock, rounds=rounds, startup_s=startup_s), clock) == pytest.approx(allowed)


def test_the_first_rounds_which_are_slower_are_no_pace() -> None:
    clock = FixedClock()
    job, epoch = make_running_job(clock=clock, spec=make_spec(training__stop={"env_steps": 2560}))
    Job.objects.filter(pk=job.pk).update(started_at=clock.now())
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3, clock=clock)
    for round_no, took_s in enumerate((3, 3, 1, 1), start=1):
        clock.forward(took_s)
        recorder.record(round_finished(round_no))
    job.refresh_from_db()
    assert evaluation_films._expected_s(job) == pytest.approx(6)


def test_rounds_before_a_resume_are_no_pace() -> None:
    clock = FixedClock()
    job = started(clock, rounds=2, startup_s=30.0)
    clock.forward(3600)
    job.rounds.filter(round_no=2).update(epoch=9, at=clock.now())
    assert allowed_s(job, clock) == evaluation_films.MOST_CPU_S, "an hour has passed"
    assert evaluation_films._expected_s(job) == 0


def test_films_take_a_twentieth_of_their_jobs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FixedClock()
    job = started(clock, rounds=2, startup_s=30.0)
    ready(job, 1, cpu_s=1.0, used_cpu_s=1.0)
    monkeypatch.setattr(ShortFilms, "is_warm", True)
    # Later films wait until the job has run long enough for all of them together.
    assert allowed_s(job, clock) == 0
    clock.forward(7)
    assert allowed_s(job, clock) == 0
    clock.forward(2)
    assert 1.0 <= allowed_s(job, clock) <= SHARE * 41 - 1.0
    # What earlier films took counts when they are deleted.
    Film.objects.filter(round_no=1).update(facts={"cpu_s": 1.0, "used_cpu_s": 9.0})
    assert allowed_s(job, clock) == 0


def test_a_film_waits_for_time_and_is_drawn_at_its_jobs_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FixedClock()
    job = started(clock, rounds=2)
    film = waiting(job)
    draw_by(answers({"cpu_s": 1.4, "byte_count": 1}), tmp_path, monkeypatch)
    films.FILMING.run(film.pk, clock=clock)
    film.refresh_from_db()
    assert film.state == FilmState.QUEUED
    ready(job, 1, cpu_s=0.3, used_cpu_s=0.3)
    Job.objects.filter(pk=job.pk).update(observed="succeeded", finished_at=clock.now())
    films.FILMING.run(film.pk, clock=clock)
    film.refresh_from_db()
    # It took none of the job's time, so that what films took while it ran stays as it was.
    assert (film.state, film.facts["cpu_s"], film.facts["used_cpu_s"]) == (FilmState.READY, 1.4, 0.3)


def test_the_page_says_what_the_first_film_waits_for() -> None:
    clock = FixedClock()
    job = started(clock, rounds=2)
    sentences = [film_card(job).sentence]  # type: ignore[union-attr]
    film = waiting(job)
    sentences.append(film_card(job).sentence)  # type: ignore[union-attr]
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    job.refresh_from_db()
    sentences.append(film_card(job).sentence)  # type: ignore[union-attr]
    assert sentences == [WAITS_FOR_EVALUATION, WAITS_FOR_TIME, BEING_MADE]
    film.delete()
    assert film_card(job) is None


def test_a_film_whose_checkpoint_is_gone_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FixedClock()
    job, _ = make_running_job(clock=clock)
    film = waiting(job)
    draw_by(answers({"error": "Checkpoint cannot be read."}), tmp_path, monkeypatch)
    clock.moment += timedelta(hours=1)
    films.FILMING.run(film.pk, clock=clock)
    assert not job.films.exists()


def test_a_deleted_jobs_film_leaves_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FixedClock()
    job, _ = make_running_job(clock=clock)
    film = waiting(job)

    def deleted_meanwhile(checkpoint: Path, file: Path, **_: Any) -> Any:
        file.parent.mkdir(parents=True)
        file.write_bytes(PICTURE)
        job.films.all().delete()
        return {"cpu_s": 0.1, "byte_count": len(PICTURE)}

    monkeypatch.setattr(films.short_films, "shoot", deleted_meanwhile)
    clock.moment += timedelta(hours=1)
    films.FILMING.run(film.pk, clock=clock)
    assert not film_path(film).parent.joinpath(job.pk).exists()


def test_too_many_films_are_thinned_out_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_films, "KEPT_FILMS", 5)
    job, _ = make_running_job()
    made = {round_no: ready(job, round_no) for round_no in (20, 40, 60, 80, 100, 120, 400, 420)}
    thin_out(job.pk)
    assert [film.round_no for film in job.films.order_by("round_no")] == [20, 60, 120, 400, 420]
    assert not film_path(made[40]).exists()
    assert film_path(made[60], still=True).exists()
    Film.objects.filter(round_no=60).update(
        facts={**made[60].facts, "byte_count": evaluation_films.KEPT_BYTES}
    )
    thin_out(job.pk)
    assert 60 not in [film.round_no for film in job.films.all()]


def test_a_user_may_have_a_short_film_made_in_full() -> None:
    job, _ = make_running_job()
    ready(job, 20)
    chosen = [row for row in list_checkpoints(job) if row.round_no == 20]
    assert not chosen  # its checkpoint is gone, its film stays
    recorded = written(checkpoint_path(job.pk, ""), make_spec().training, 40)
    film = ready(job, 40)
    Film.objects.filter(pk=film.pk).update(sha256=recorded.sha256)
    job.checkpoints.create(
        round_no=40,
        epoch=1,
        name=recorded.name,
        sha256=recorded.sha256,
        byte_count=recorded.byte_count,
        at=job.since,
    )
    requested = films.ask_for_film(job=job, chosen=list_checkpoints(job)[0], user=job.created_by)
    assert (requested.pk, requested.state, requested.automatic) == (film.pk, FilmState.QUEUED, False)


def test_the_page_shows_films_by_round_or_says_why_there_is_none(client: Client) -> None:
    project = make_project(make_user())
    job, _ = make_running_job(project=project)
    client.force_login(job.created_by)
    address = f"/p/{project.slug}/jobs/{job.pk}/"
    assert WAITS_FOR_EVALUATION in client.get(address).content.decode()
    Film.objects.create(
        job=job,
        checkpoint="c",
        sha256="0" * 64,
        round_no=20,
        since=job.since,
        state=FilmState.FAILED,
        reason="This machine cannot draw.",
    )
    assert client.get(f"{address}films.json").json() == {"films": [], "sentence": "This machine cannot draw."}
    late, early = ready(job, 60), ready(job, 40)
    listed = client.get(f"{address}films.json").json()["films"]
    assert [film["round"] for film in listed] == [40, 60]
    assert listed[1]["film"] == f"{address}films/{late.pk}-film.webp"
    assert f'src="{address}films/{late.pk}-still.webp"' in client.get(address).content.decode()
    for part in ("film", "still"):
        answer = client.get(f"{address}films/{early.pk}-{part}.webp")
        assert b"".join(answer.streaming_content) == PICTURE  # type: ignore[attr-defined]
    client.force_login(make_user())
    assert client.get(f"{address}films.json").status_code == 404


def test_a_job_that_makes_no_films_has_no_place_for_them() -> None:
    without, _ = make_running_job(spec=make_spec(films=False))
    assert film_card(without) is None
    over, _ = make_running_job()
    Job.objects.filter(pk=over.pk).update(observed="succeeded")
    over.refresh_from_db()
    assert film_card(over) is None
    before, _ = make_running_job()
    del before.spec["films"]  # launched before there were any
    assert film_card(before) is not None


def test_a_film_holds_only_the_pictures_that_it_has_time_to_write(tmp_path: Path) -> None:
    spec = TrainingSpec.model_validate({"environment": {"id": "CartPole-v1"}})
    trained = TrainedPolicy.read(tmp_path / written(tmp_path, spec, 1).name)
    long, short = (
        filmed(trained, tmp_path / "a.webp", seed=0, style=SHORT, cpu_s=cpu_s)
        for cpu_s in (PLENTY_CPU_S, 0.0)
    )
    assert long.frames > short.frames
    assert short.frames <= 2
    assert long.ended
    assert not short.ended


def test_one_process_makes_short_films_until_it_is_idle_or_ends(tmp_path: Path) -> None:
    from PIL import Image

    spec = TrainingSpec.model_validate({"environment": {"id": "CartPole-v1"}})
    checkpoint = tmp_path / written(tmp_path, spec, 1).name
    makes = ShortFilms()
    first, second = (makes.shoot(checkpoint, tmp_path / f"{no}.webp", cpu_s=PLENTY_CPU_S) for no in (1, 2))
    assert first["cpu_s"] > second["cpu_s"] > 0, "the first one started the process"
    with Image.open(tmp_path / "2.webp") as film:
        assert film.n_frames == second["frames"] > 1  # type: ignore[attr-defined]
        assert film.size == (second["width"], second["height"]) == (320, 213)
    with pytest.raises(FilmFailed, match="cannot be read"):
        makes.shoot(tmp_path / "gone.checkpoint", tmp_path / "3.webp", cpu_s=PLENTY_CPU_S)
    makes.end_if_idle()
    assert makes.is_warm
    process = makes._process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(FilmFailed, match=r"\b0 s\b"):
        makes.shoot(checkpoint, tmp_path / "4.webp", cpu_s=PLENTY_CPU_S, within_s=0.2)
    assert not makes.is_warm
    assert makes.shoot(checkpoint, tmp_path / "5.webp", cpu_s=PLENTY_CPU_S)["frames"] == second["frames"]
    makes.end_if_idle(0.0)
    assert not makes.is_warm
