"""Writes many rows without making others wait.

SQLite has one writer at a time, and a run that cannot renew its lease ends itself. So rows go in batches that hold
the lock for a twentieth of a second each, and in between it is free for as long: those who wait look for it only
every tenth of a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import QuerySet

HELD_S = 0.05
_FIRST, _LEAST, _MOST = 100, 10, 1000
_KEYS_AT_ONCE = 1000

Row = TypeVar("Row")


def write_in_batches(rows: Iterable[Row], write: Callable[[list[Row]], object]) -> None:
    """Call `write` with all `rows`, a batch at a time, each in a transaction of its own."""
    waiting, size = iter(rows), _FIRST
    while batch := list(islice(waiting, size)):
        with transaction.atomic():
            began_s = time.monotonic()  # the lock is ours from here on: SQLite's transactions begin with it
            write(batch)
        held_s = time.monotonic() - began_s
        time.sleep(held_s)
        fits = int(len(batch) * HELD_S / max(held_s, 1e-6))
        size = min(max(min(fits, 2 * size), _LEAST), _MOST)


def keys_of(rows: QuerySet[Any]) -> Iterator[int]:
    """The primary keys of `rows`; rows may change or vanish after their key was returned."""
    last = None
    while True:
        following = rows.order_by("pk") if last is None else rows.order_by("pk").filter(pk__gt=last)
        keys = list(following.values_list("pk", flat=True)[:_KEYS_AT_ONCE])
        yield from keys
        if len(keys) < _KEYS_AT_ONCE:
            return
        last = keys[-1]
