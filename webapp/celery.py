"""The Celery application of the worker, of beat and of processes that send tasks.

Messages are hints that carry ids; the database holds what is to be done. Losing one costs a few seconds.
"""

import logging
import logging.config
import os
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

from celery import Celery
from celery.beat import ScheduleEntry, Scheduler
from celery.platforms import SecurityWarning
from celery.schedules import schedstate
from celery.signals import beat_init, setup_logging, worker_ready
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("starling")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

logger = logging.getLogger(__name__)

# It warns of a root worker that takes pickles. Ours takes JSON only, and in a container everybody is root.
warnings.filterwarnings("ignore", category=SecurityWarning)


@setup_logging.connect
def _log_as_the_settings_say(**details: Any) -> None:
    """Do nothing: a connected handler makes Celery keep Django's logging."""
    logging.config.dictConfig(settings.LOGGING)


@worker_ready.connect
def _say_worker_ready(**details: Any) -> None:
    """Log the line by which `manage.py up` sees that the worker takes tasks."""
    logger.info("worker is ready")


@beat_init.connect
def _say_beat_ready(**details: Any) -> None:
    """Log the line by which `manage.py up` sees that beat sends ticks."""
    logger.info("beat is ready")


@beat_init.connect
def _let_beat_leave_at_once(**details: Any) -> None:
    """On SIGTERM beat keeps its schedule and exits: tearing the interpreter down takes seconds on a busy machine."""
    keep_schedule = signal.getsignal(signal.SIGTERM)

    def leave(number: int, frame: FrameType | None) -> None:
        try:
            if callable(keep_schedule):
                keep_schedule(number, frame)
        except SystemExit:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)

    signal.signal(signal.SIGTERM, leave)


class SteadyEntry(ScheduleEntry):  # type: ignore[misc]
    """A task that is sent every so many seconds by a clock that no one sets: by Celery's own, the system's, nothing is
    sent for an hour if that is set back by one.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._since_s = time.monotonic()

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """Yield what the entry's successor is made of."""
        return ((name, value) for name, value in vars(self).items() if name != "_since_s")

    def is_due(self) -> schedstate:
        every_s = self.schedule.run_every.total_seconds()
        left_s = self._since_s + every_s - time.monotonic()
        return schedstate(left_s <= 0, every_s if left_s <= 0 else left_s)


class SteadyScheduler(Scheduler):  # type: ignore[misc]
    """Keeps the schedule in memory, ordered by the same clock."""

    Entry = SteadyEntry

    def _when(self, entry: SteadyEntry, next_time_to_run: float, mktime: object = None) -> float:
        return time.monotonic() + float(self.adjust(next_time_to_run) or 0.0)


def send_hint(task: str, *arguments: Any, **options: Any) -> bool:
    """Ask the worker to do a task now; False if no message could be sent.

    The row says the same, and a tick reads it every few seconds. So no request fails for a hint.
    """
    try:
        app.send_task(task, args=list(arguments), **options)
    except Exception as error:  # whatever the broker's client raises
        logger.warning("%s%s waits for the next look, no message could be sent: %s", task, arguments, error)
        return False
    return True
