"""A job's score: evaluated where it was evaluated, else in training with that word, the same everywhere."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tests.factories import (
    checkpoint_saved,
    evaluated,
    make_project,
    make_running_job,
    make_spec,
    round_finished,
)
from tests.figures import figures_in
from training.spec import RETURN
from webapp.comparing.curves import curves_of, drawn, getting_to, goal_of
from webapp.comparing.figures import compared
from webapp.comparing.goal_results import read_finished
from webapp.comparing.groups import picked
from webapp.comparing.models import GoalResult
from webapp.jobs.charts.history import histories
from webapp.jobs.charts.score_curves import arrival, evaluated_curve, own_curves_of
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.queries import header
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.recovery import resume_point
from webapp.jobs.scores import basis_of, mean_score, named_score, score_of

pytestmark = pytest.mark.django_db
USD = 10**12


def _ran(
    project: Any, training: list[float | None], judged: dict[int, float], over: bool = True, **options: Any
) -> Job:
    """A job with a round a second, each for a cent, and evaluations by round."""
    job, epoch = make_running_job(project=project, **options)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for round_no, mean in enumerate(training, start=1):
        recorder.record(round_finished(round_no, mean=mean, spent=round_no * USD // 100))
        if round_no in judged:
            recorder.record(evaluated(round_no, judged[round_no]))
    if over:
        Job.objects.filter(pk=job.pk).update(observed="succeeded")
    return Job.objects.get(pk=job.pk)


def test_the_evaluated_score_leads_and_that_of_training_has_its_word() -> None:
    project = make_project()
    judged, trained, waiting = (
        _ran(project, [20.0], {1: 475.0}),
        _ran(project, [20.0], {}),
        _ran(project, [], {}),
    )
    assert score_of(judged) == (475.0, "evaluation")
    assert score_of(trained) == (20.0, "training")
    assert score_of(waiting) == (None, "")
    assert named_score(judged) == "475.0"
    assert named_score(trained).endswith("</span> 20.0")
    assert ">training<" in named_score(trained)
    assert named_score(waiting) == "–"


def test_several_runs_are_judged_by_one_of_the_two() -> None:
    project = make_project()
    judged, trained, waiting = (
        _ran(project, [20.0], {1: 475.0}),
        _ran(project, [30.0], {}),
        _ran(project, [], {}),
    )
    assert basis_of([judged, waiting]) == "evaluation"
    assert mean_score([judged, waiting]) == (475.0, "evaluation")
    assert basis_of([judged, trained]) == "training"
    assert mean_score([judged, trained]) == (25.0, "training")


def test_the_job_page_the_board_and_a_comparison_agree_on_when_a_target_was_reached() -> None:
    """Training returns stay far below the target, as exploration costs; the second evaluation reaches it."""
    project = make_project()
    one = _ran(project, [20.0] * 8, {2: 300.0, 4: 490.0, 8: 500.0})
    other = _ran(project, [20.0] * 8, {4: 100.0, 6: 480.0, 8: 500.0})
    assert read_finished() == 2
    board = {row.job_id: row for row in GoalResult.objects.all()}
    chosen = picked(project, [one.pk, other.pk])
    curves = curves_of(chosen.jobs)
    goal = goal_of(chosen.sides, curves)
    assert goal is not None
    assert goal.value == 475.0
    for job, round_no in ((one, 4), (other, 6)):
        side = next(side for side in chosen.sides if side.key == job.pk)
        getting = getting_to(goal, side, curves)
        assert (getting.reached, getting.time_s, getting.usd) == (1, float(round_no), round_no / 100)
        assert (board[job.pk].evaluated, board[job.pk].reached) == (True, True)
        assert board[job.pk].time_s == float(round_no)
        assert board[job.pk].cost_picodollars == round_no * USD // 100
        said = header(job)["reached"]
        assert figures_in(said) == ["475", str(round_no), f"{round_no}.0", f"${round_no / 100:.4f}"]


def test_a_job_that_was_never_evaluated_is_judged_by_training_and_the_board_says_so(client: Client) -> None:
    project = make_project()
    _ran(project, [490.0] * 3, {})
    assert read_finished() == 1
    assert GoalResult.objects.filter(evaluated=False, reached=True, time_s=1.0).exists()
    client.force_login(project.people.first())
    page = client.get(f"/p/{project.slug}/goals/?subject=CartPole-v1").content.decode()
    assert "1 by training return" in page
    assert "evaluated return of 475" in page


def test_a_group_whose_runs_ended_early_keeps_their_last_scores() -> None:
    """Ten runs that evaluate at 500 do not end lower because one of them needed fewer rounds."""
    project = make_project()
    for seed in range(10):
        rounds = 4 + 2 * seed
        spec = make_spec(name=f"Ten {seed}", group="Ten", training__seed=seed)
        judged = {number: 100.0 if number < rounds else 500.0 for number in range(2, rounds + 1, 2)}
        _ran(project, [20.0] * rounds, judged, spec=spec)
    chosen = picked(project, [f"group_{JobGroup.objects.get(name='Ten').pk}"])
    (line,) = drawn(chosen.sides, curves_of(chosen.jobs))
    for axis in ("steps", "rounds", "time", "usd"):
        assert line["lines"][axis]["y"][-1] == 500.0
        assert line["lines"][axis]["y"][0] == 100.0
    assert line["lines"]["rounds"]["x"][-1] == 22.0, "as far as the longest run"
    whole = compared(chosen, curves_of(chosen.jobs))
    assert (whole.scored_by, whole.drawn_by) == ("evaluation", "evaluation")


def test_beyond_a_run_that_goes_on_nothing_is_drawn() -> None:
    project = make_project()
    for seed, (rounds, over) in enumerate([(8, True), (4, False), (12, True)]):
        spec = make_spec(name=f"Some {seed}", group="Some", training__seed=seed)
        _ran(project, [20.0] * rounds, {2: 100.0, rounds: 200.0}, over=over, spec=spec)
    chosen = picked(project, [f"group_{JobGroup.objects.get(name='Some').pk}"])
    (line,) = drawn(chosen.sides, curves_of(chosen.jobs))
    assert line["lines"]["rounds"]["x"][-1] == 4.0


def test_a_resumed_run_forgets_the_evaluations_that_it_repeats_wherever_its_curve_is_read() -> None:
    project = make_project()
    job = _ran(project, [20.0] * 4, {2: 100.0, 4: 490.0}, over=False)
    job.events.create(seq=job.last_seq + 1, at=job.since, kind="resumed", payload={"from_round": 2})
    Job.objects.filter(pk=job.pk).update(last_seq=job.last_seq + 1)
    job = Job.objects.get(pk=job.pk)
    lock, history = histories.of(job.pk, job.started_at, job.last_seq)
    with lock:
        live = evaluated_curve(history)
    stored = own_curves_of([job])[job.pk]
    assert live.scores.tolist() == stored.scores.tolist() == [100.0]
    assert arrival(stored, 475.0, RETURN) is None


def test_a_job_that_resumes_is_shown_with_the_scores_that_it_had_at_its_checkpoint() -> None:
    """Not with those of rounds that it repeats: its curve and its evaluations have lost them already."""
    project = make_project()
    for training, judged, kept, expected in (
        ([20.0, 30.0, 90.0, 10.0], {2: 100.0, 4: 490.0}, 2, (30.0, 30.0, 20.0, 100.0)),
        ([20.0, None, 90.0], {3: 490.0}, 2, (20.0, 20.0, 20.0, None)),
        ([20.0, 30.0], {2: 490.0}, 0, (None, None, None, None)),
    ):
        job = _ran(project, training, judged, over=False)
        if kept:
            Recorder(job.pk, job.lease_epoch, keep_checkpoints=3).record(checkpoint_saved(kept))
        resume_point(job_id=job.pk, epoch=job.lease_epoch, load=lambda row: b"state")
        job.refresh_from_db()
        found = (job.training_score, job.best_training_score, job.worst_training_score, job.evaluated_score)
        assert found == expected
        if expected[-1] is not None:
            assert own_curves_of([job])[job.pk].scores[-1] == expected[-1]


def test_a_long_run_keeps_each_new_best_so_that_no_arrival_is_missed() -> None:
    project = make_project()
    judged = {number: float(number % 7) for number in range(1, 701)} | {333: 475.0}
    job = _ran(project, [20.0] * 700, judged)
    curve = own_curves_of([job])[job.pk]
    found = arrival(curve, 475.0, RETURN)
    assert found is not None
    assert found.round_no == 333
    assert len(curve.scores) < 400
