"""Hints that something new is in the database: to pages through Redis, to the worker as tasks.

A lost hint costs seconds, never truth: the row says the same, and everyone looks at the database now and then.

Nothing here raises for a Redis that is away, and nothing waits long for one: after a failure hints are left out
for a moment, as listeners read the database by themselves.
"""

import logging
import threading
import time

import redis
from django.conf import settings
from django.db import transaction

from webapp.celery import send_hint

log = logging.getLogger(__name__)

CHANNEL_PREFIX = "starling:job:"
_ALERT_HINT_LIVES_S = 10.0
_TIMEOUT_S = 1.0
_SILENT_AFTER_FAILURE_S = 2.0


class Bell:
    """One connection to Redis a process, opened on first use. After a failure it pauses for a moment."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: redis.Redis | None = None
        self._quiet_until = 0.0

    def ring(self, channel: str, message: int) -> None:
        with self._lock:
            if time.monotonic() < self._quiet_until:
                return
            try:
                self._connected().publish(channel, message)
            except redis.RedisError as error:
                self._quiet_until = time.monotonic() + _SILENT_AFTER_FAILURE_S
                log.debug("no doorbell on %s: %s", channel, error)

    def _connected(self) -> redis.Redis:
        if self._client is None:
            self._client = redis.Redis.from_url(
                settings.REDIS_URL,
                socket_connect_timeout=_TIMEOUT_S,
                socket_timeout=_TIMEOUT_S,
                retry=None,
            )
        return self._client


bell = Bell()


def ring_on_commit(job_id: str, seq: int) -> None:
    """Once the present transaction is committed, tell pages that the job has events up to `seq`."""
    transaction.on_commit(lambda: bell.ring(f"{CHANNEL_PREFIX}{job_id}", seq), robust=True)


def launch_on_commit(job_id: str) -> None:
    """Once the present transaction is committed, ask the worker to start the job now rather than at its next tick."""
    transaction.on_commit(lambda: ask_to_launch(job_id), robust=True)


def ask_to_launch(job_id: str) -> bool:
    """Send the launch message; False if that failed. The row says the same, and a tick reads it every few seconds."""
    return send_hint("webapp.jobs.tasks.launch_job", job_id)


def alerts_on_commit() -> None:
    """Once the present transaction is committed, have alerts that are due sent now rather than at the next tick."""
    task = "webapp.alerts.tasks.send_due"
    transaction.on_commit(lambda: send_hint(task, expires=_ALERT_HINT_LIVES_S), robust=True)
