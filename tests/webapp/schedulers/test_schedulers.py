"""Schedulers are trained on the simulated cloud, kept in versions, gone on with after a kill, never guessed about."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.test import Client
from pydantic import ValidationError

from tests.factories import FixedClock, make_project
from tests.webapp import scheduler_rows
from training.scheduling.judging import better
from webapp.database.leases import LEASE_TTL
from webapp.schedulers import leases, persist, queries, services
from webapp.schedulers.models import Episode, Scheduler, SchedulerTraining, TrainingState, Version
from webapp.schedulers.services import TrainingRefused

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_training_makes_a_version_and_tells_all_that_it_cost() -> None:
    training = scheduler_rows.ask()
    steps: list[Any] = []
    assert scheduler_rows.run(training, on_step=steps.append) == 0
    assert (training.state, training.reason) == (TrainingState.DONE, "")
    kinds = list(training.episodes.values_list("kind", flat=True))
    assert (
        kinds
        == ["grid"] * 2 + ["rehearsal"] * 4 + ["real"] * 2 + ["judged"] * 2
        == [one.kind for one in steps]
    )
    version = Version.objects.get()
    assert (str(version), version.facts["episodes"], version.facts["rehearsals"]) == ("Tiny, version 1", 2, 4)
    ran = training.episodes.exclude(kind="rehearsal")
    assert version.facts["cost_picodollars"] == sum(one.cost_picodollars for one in ran) > 0
    for one in ran:  # standing machines too: never less than the rounds themselves
        assert one.cost_picodollars >= sum(report["cost_picodollars"] for report in one.reports) > 0
        assert len(one.reports) == one.rounds == 4
    assert version.facts["wall_s"] > 0
    assert version.facts["rehearsed"]["score"] != version.facts["real"]["score"]


@pytest.mark.slow
def test_the_better_of_the_last_and_the_best_agent_is_used_and_that_is_reported() -> None:
    training = scheduler_rows.ask()
    scheduler_rows.run(training)
    real = list(training.episodes.filter(kind="real").order_by("number"))
    best = max(real, key=lambda one: (one.score, -one.number))
    assert (training.best_number, training.best_score) == (best.number, best.score)
    judged = {one.number: one for one in training.episodes.filter(kind="judged")}
    scores = {"best": judged[1].score, "last": judged[2].score}
    chosen = training.version.facts["chosen"]
    assert chosen == {"agent": better(scores), "episode": best.number - 4, "scores": scores}
    agents = {"best": training.best_learner, "last": training.learner}
    assert agents["best"] != agents["last"]
    assert bytes(training.version.learner) == bytes(agents[chosen["agent"]])
    page = Client()
    page.force_login(training.requested_by)
    base = f"/p/{training.project.slug}/schedulers/"
    assert "without exploring" in page.get(f"{base}{training.version.scheduler_id}/").content.decode()
    assert "Judged, best agent" in page.get(f"{base}trainings/{training.pk}/").content.decode()


@pytest.mark.parametrize(
    ("best", "last", "used"), [(-1.0, -2.0, "best"), (-2.0, -1.0, "last"), (-1.0, -1.0, "last")]
)
def test_what_was_judged_decides(best: float, last: float, used: str) -> None:
    from training.scheduling.trainer import initial_state

    training = scheduler_rows.ask()
    spec = training.parsed_spec
    agents = {
        "last": initial_state(spec).encode(),
        "best": initial_state(spec.model_copy(update={"seed": 9})).encode(),
    }
    epoch = leases.take(training.pk, "one")
    assert epoch is not None
    SchedulerTraining.objects.filter(pk=training.pk).update(
        learner=agents["last"], best_learner=agents["best"], best_number=7
    )
    for number, score in ((1, best), (2, last)):
        Episode.objects.create(
            training=training, kind="judged", number=number, at=training.requested_at, rounds=1, platform_s=1.0,
            wall_s=1.0, cost_picodollars=1, reached=False, score=score, actors=[1],
        )  # fmt: skip
    training.refresh_from_db()
    version = persist.store_version(training, epoch)
    assert bytes(version.learner) == agents[used]
    assert version.facts["chosen"]["agent"] == used


def test_a_single_real_episode_leaves_nothing_to_choose() -> None:
    training = scheduler_rows.ask(scheduling__episodes=1)
    scheduler_rows.run(training)
    assert not training.episodes.filter(kind="judged").exists()
    assert "chosen" not in training.version.facts


@pytest.mark.slow
def test_what_is_recorded_already_is_not_recorded_again() -> None:
    project = make_project()
    scheduler_rows.run(scheduler_rows.ask(project))
    second = scheduler_rows.ask(project, scheduling__episodes=1)
    scheduler_rows.run(second)
    assert list(second.episodes.values_list("kind", flat=True)) == ["rehearsal"] * 4 + ["real"]
    assert [one.number for one in Scheduler.objects.get().versions.all()] == [2, 1]
    assert len(queries.recorded(second)) == 4  # two of the grid and the first training's real ones
    elsewhere = scheduler_rows.ask(project, platform__profile="aci-paper", scheduling__episodes=0)
    scheduler_rows.run(elsewhere)
    assert elsewhere.episodes.filter(kind="grid").count() == 2


class _DiesAfter:
    """Ends the sitting as a kill would: nothing is written after the step of that number."""

    class Killed(BaseException):
        pass

    def __init__(self, steps: int) -> None:
        self._left = steps

    def __call__(self, step: Any) -> None:
        self._left -= 1
        if not self._left:
            raise self.Killed


@pytest.mark.parametrize(
    "after", [1, *(pytest.param(episodes, marks=pytest.mark.slow) for episodes in (7, 9))]
)
def test_a_sitting_that_dies_loses_one_episode_at_most_and_ends_as_if_nothing_had_been(after: int) -> None:
    whole = scheduler_rows.ask()
    scheduler_rows.run(whole)
    broken = scheduler_rows.ask()
    with pytest.raises(_DiesAfter.Killed):
        scheduler_rows.run(broken, on_step=_DiesAfter(after))
    kept = broken.episodes.count()
    assert kept == after
    type(broken).objects.filter(pk=broken.pk).update(lease_expires_at=None)
    scheduler_rows.run(broken)
    assert broken.state == TrainingState.DONE
    assert broken.version.weights == whole.version.weights
    assert broken.episodes.count() == 10


def test_only_one_process_runs_a_training_and_one_that_lost_its_lease_writes_nothing() -> None:
    clock = FixedClock()
    training = scheduler_rows.ask()
    epoch = leases.take(training.pk, "one", clock=clock)
    assert leases.take(training.pk, "two", clock=clock) is None
    clock.forward(LEASE_TTL.total_seconds())
    assert leases.take(training.pk, "two", clock=clock) == (epoch or 0) + 1
    assert not leases.held(training.pk, epoch or 0).exists()


def test_to_stop_ends_it_between_episodes_and_what_was_recorded_stays() -> None:
    training = scheduler_rows.ask()

    def stop(step: Any) -> None:
        if step.kind == "real":
            services.stop_training(training=training)

    scheduler_rows.run(training, on_step=stop)
    assert (training.state, training.reason) == (TrainingState.STOPPED, "Stopped on request.")
    assert not Version.objects.exists()
    assert Episode.objects.filter(kind="grid").count() == 2


def test_one_that_no_one_runs_is_stopped_at_once_and_one_that_is_handed_over_waits() -> None:
    waiting = services.stop_training(training=scheduler_rows.ask())
    assert waiting.state == TrainingState.STOPPED
    over = threading.Event()
    over.set()
    training = scheduler_rows.ask()
    scheduler_rows.run(training, hand_over=over)
    assert (training.state, training.lease_owner) == (TrainingState.QUEUED, "")


def test_a_budget_that_holds_no_round_is_reported() -> None:
    training = scheduler_rows.ask(budget_usd="0.000001", scheduling__rehearsals=0)
    scheduler_rows.run(training)
    assert training.state == TrainingState.FAILED
    assert "round may cost" in training.reason


def test_fine_tuning_goes_on_with_the_other_ones_weights() -> None:
    project = make_project()
    before = scheduler_rows.make_version(project)
    tuned = scheduler_rows.ask(
        project, name="Tuned", begin_with=before.key, scheduling__rehearsals=0, scheduling__episodes=1
    )
    scheduler_rows.run(tuned)
    assert tuned.state == TrainingState.DONE
    assert list(tuned.episodes.values_list("kind", "number")) == [("grid", 1), ("real", 1)]
    assert tuned.version.weights != before.weights


def test_another_range_of_actors_is_refused_in_words() -> None:
    project = make_project()
    before = scheduler_rows.make_version(project)
    with pytest.raises(TrainingRefused, match=r"Tiny, version 1 .* 1 to 2 actors.* 2\b"):
        scheduler_rows.ask(project, begin_with=before.key, scheduling__actors_max=3)
    with pytest.raises(TrainingRefused, match="no such scheduler"):
        scheduler_rows.ask(make_project(), begin_with=before.key)
    assert Version.objects.count() == 1


def test_what_is_missing_is_named() -> None:
    with pytest.raises(TrainingRefused, match=r"\(workload\): .*'chess'"):
        scheduler_rows.ask(workload="chess")
    with pytest.raises(ValidationError, match="episodes or rehearsals"):
        scheduler_rows.ask(scheduling__episodes=0, scheduling__rehearsals=0)


def test_the_grid_spans_the_range() -> None:
    spec = scheduler_rows.ask(scheduling__actors_max=32).parsed_spec
    assert spec.fixed_plans == [(actors, None) for actors in (4, 8, 16, 32)]
    assert spec.model_copy(update={"rehearsals": 0}).fixed_plans == [(16, None)]
