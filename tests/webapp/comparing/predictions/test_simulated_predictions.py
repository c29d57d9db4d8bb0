"""Forty predictions of jobs that really train on the simulated cloud, each held against its job's end."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from tests.factories import make_job, make_project, make_spec
from training.spec import TrainingSpec
from webapp.comparing.predictions import services, text
from webapp.comparing.predictions.models import Prediction, PredictionState
from webapp.jobs.models import Job
from webapp.jobs.running.runner import run_job

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.endurance]
PREDICTIONS = 40
_ACTORS = (None, 4, 12, 16, 24)


class _AppliesAfter(threading.Event):
    """Never asks the run to end, but applies the prediction once it has made so many rounds."""

    def __init__(self, job: Job, rounds: int, actors: int | None) -> None:
        super().__init__()
        self._job, self._rounds, self._actors = job, rounds, actors
        self.row: Prediction | None = None

    def is_set(self) -> bool:
        if self.row is None and Job.objects.filter(pk=self._job.pk, round_no__gte=self._rounds).exists():
            job = Job.objects.select_related("account").get(pk=self._job.pk)
            self.row = services.apply(job=job, user=job.created_by, actors=self._actors)
        return False


def test_of_forty_predictions_the_bands_of_80_percent_hold_in_32(valkey: str) -> None:
    project = make_project()
    held: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    for number in range(PREDICTIONS):
        spec = make_spec(
            "cartpole",
            training__seed=number,
            training__scaling__actors=8,
            training__rollout__steps_per_call=64,
            training__stop={"env_steps": 12_288},
            training__evaluation={"every_rounds": 12, "episodes": 2},
            training__checkpoints={"every_rounds": 4},
            platform={"kind": "simulated", "seed": number},
            budget_usd="0.10",
        )
        job = make_job(project, spec=spec)
        actors = _ACTORS[number % len(_ACTORS)]
        applies = _AppliesAfter(job, 8 + number % 7, actors)
        assert run_job(job.pk, owner=f"test-{job.pk}", hand_over=applies) == 0
        row = applies.row
        assert row is not None
        services.judge_ended()
        row.refresh_from_db()
        assert row.state == PredictionState.JUDGED, row.reason
        for what, shown, inside in text.outcomes(row, "return", 1):
            predicted[what] += 1
            held[what] += inside
            print(number, actors, what, shown, inside, text.kept(row, TrainingSpec.declare()))
    print(dict(held), "of", dict(predicted))
    assert predicted["time"] == predicted["cost"] == PREDICTIONS
    for what, count in predicted.items():
        assert held[what] >= 0.8 * count, f"{what}: {held[what]} of {count}"
