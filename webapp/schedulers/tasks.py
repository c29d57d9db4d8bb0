"""The worker's tasks for schedulers. Messages carry only an id; each may come twice, late, or never."""

import os
import signal
import threading

from celery import shared_task

from webapp.database.leases import CRASHED_EXIT, LEASE_LOST_EXIT, new_owner
from webapp.jobs.running.recovery import describe_exit
from webapp.jobs.tasks import watched
from webapp.schedulers import leases, persist, services
from webapp.schedulers.models import SchedulerTraining

# A training keeps every core busy for minutes, and jobs need them more.
_one_at_a_time = threading.Lock()


@shared_task(name="webapp.schedulers.tasks.train_scheduler", expires=60)
def train_scheduler(training_id: int) -> None:
    """Run the training's process to its end. Does nothing if another task watches it; a tick sends it again."""
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        with watched.claim(f"scheduler-{training_id}") as ours:
            if ours:
                _watch(training_id)
    finally:
        _one_at_a_time.release()


def _watch(training_id: int) -> None:
    owner = new_owner()
    command = ["run-scheduler-training", str(training_id), "--owner", owner, "--parent", str(os.getpid())]
    process = watched.start(f"scheduler-{training_id}", command)
    if process is None:
        return
    code = process.wait()
    if watched.stopping or code in (LEASE_LOST_EXIT, -signal.SIGTERM):  # stopped, or its lease lost: no crash
        leases.hand_back(training_id, owner)
        return
    training = SchedulerTraining.objects.filter(pk=training_id, lease_owner=owner).first()
    if training is not None and code not in (0, CRASHED_EXIT):
        reason = f"Its process ended unexpectedly ({describe_exit(code)})."
        persist.crashed(training_id, training.lease_epoch, reason)


@shared_task(name="webapp.schedulers.tasks.tick")
def tick() -> None:
    """Every few seconds: continue what lost messages and dead processes left behind."""
    services.look_after_trainings()
