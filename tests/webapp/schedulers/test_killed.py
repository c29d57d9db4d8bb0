"""A training's process is killed with SIGKILL in the middle of an episode; the next one goes on from what is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from rig.servers import ROOT, wait_until
from tests.webapp import scheduler_rows
from webapp.schedulers.models import SchedulerTraining, TrainingState

pytestmark = [pytest.mark.stack, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_a_killed_process_loses_one_episode_at_most(service_environment: dict[str, str]) -> None:
    training = scheduler_rows.ask(rounds=30, scheduling__episodes=3)
    command = [sys.executable, "manage.py", "run-scheduler-training", str(training.pk), "--owner", "victim"]
    process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **service_environment})
    try:
        wait_until(
            lambda: training.episodes.filter(kind="real").exists(),
            within_s=120,
            what="a real episode is over",
        )
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    kept = list(training.episodes.values_list("pk", flat=True))
    training.refresh_from_db()
    assert training.state == TrainingState.RUNNING
    assert training.learned_number == training.episodes.filter(kind="real").latest("pk").number
    SchedulerTraining.objects.filter(pk=training.pk).update(lease_expires_at=None)  # as it does in 90 s
    scheduler_rows.run(training)
    assert (training.state, training.reason) == (TrainingState.DONE, "")
    assert list(training.episodes.values_list("pk", flat=True))[: len(kept)] == kept
    assert training.episodes.filter(kind="real").count() == 3
    assert training.episodes.filter(kind="grid").count() == 2
