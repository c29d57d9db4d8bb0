"""Counts recent create requests to a subscription over all jobs, each of which is a process of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.db import connection, transaction

from cloud.register import wait_s
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections.models import Connection
from webapp.resources.models import CreateTimes


class SubscriptionCreates:
    """Implements `cloud.register.CreateCounter` for the subscription and region of a connection. For any thread.

    Projects that connect the same subscription share its count. Requests of other programs are unknown here.
    """

    def __init__(self, connection_id: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self._connection_id = connection_id
        self._clock = clock

    def take(self, windows: Sequence[tuple[int, float]]) -> float:
        with no_connection_left(), transaction.atomic():
            account = Connection.objects.only("subscription_id", "region").get(pk=self._connection_id)
            place = f"azure/{account.subscription_id}/{account.region}"
            CreateTimes.objects.get_or_create(place=place)
            row = CreateTimes.objects.select_for_update().get(place=place)
            now_s = self._clock.now().timestamp()
            longest_s = max(window_s for _, window_s in windows)
            lately = [at for at in row.moments if now_s - longest_s < at <= now_s]
            left_s = wait_s(lately, windows, now_s)
            if not left_s:
                row.moments = [*lately, now_s]
                row.save(update_fields=["moments"])
            return left_s


@contextmanager
def no_connection_left() -> Iterator[None]:
    """Close the database connection of a platform's own thread when the block ends; nothing else would close it."""
    try:
        yield
    finally:
        if threading.current_thread() is not threading.main_thread():
            connection.close()
