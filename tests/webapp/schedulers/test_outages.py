"""A database that cannot be written while a scheduler is trained: the training waits, goes on and counts no crash."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from tests.webapp import scheduler_rows
from tests.webapp.spoiled_database import SPOILERS, Spoiler
from webapp.schedulers.models import TrainingState

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


class _Outages(threading.Event):
    """Spoils the database after every step, and mends it once the training has waited."""

    def __init__(self, spoil: Spoiler) -> None:
        super().__init__()
        self._spoil = spoil
        self._mend: Callable[[], object] | None = None
        self.waits = 0

    def after_step(self, _step: object) -> None:
        if self._mend is None:
            self._mend = self._spoil()

    def wait(self, timeout: float | None = None) -> bool:
        assert self._mend is not None
        self.waits += 1
        self._mend()
        self._mend = None
        return False


def test_a_training_waits_for_its_database_and_stores_each_episode_once() -> None:
    training = scheduler_rows.ask()
    outages = _Outages(SPOILERS[-1])
    assert scheduler_rows.run(training, hand_over=outages, on_step=outages.after_step) == 0
    assert outages.waits >= 4
    assert (training.state, training.reason, training.crashes) == (TrainingState.DONE, "", 0)
    episodes = training.episodes
    assert episodes.filter(kind="real").count() == 2
    best = max(episodes.filter(kind="real"), key=lambda one: (one.score, -one.number))
    assert (training.best_number, training.best_score) == (best.number, best.score)
    assert training.best_learner is not None
    assert training.version.number == 1
