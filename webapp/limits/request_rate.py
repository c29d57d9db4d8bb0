"""A token bucket for each key, shared by all processes: a rate a minute, and the same number as a burst.

A process reserves a twentieth of a minute's requests from the shared row at a time, so most requests cost no write.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

from django.db import transaction

from webapp.limits.models import Counted

_SHARES_A_MINUTE = 20
_SHARE_HOLDS_S = 60.0
_KEYS_REMEMBERED = 10_000


class Share(NamedTuple):
    """Requests that this process has reserved and not used, and the number that it left for other processes."""

    mine: int
    left: float
    taken_unix_s: float


class Pace:
    """The rate limits of all keys, in one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shares: OrderedDict[str, Share] = OrderedDict()

    def take(self, key: str, a_minute: int, now_unix_s: float) -> tuple[int, float]:
        """The requests left after this one, and the seconds until one more. Below 0: refuse this one."""
        with self._lock:
            share = self._shares.get(key)
            if share is None or not share.mine or now_unix_s - share.taken_unix_s > _SHARE_HOLDS_S:
                share = _taken(key, a_minute, now_unix_s)
            allowed = share.mine >= 1
            self._shares[key] = share = share._replace(mine=share.mine - allowed)
            self._shares.move_to_end(key)
            while len(self._shares) > _KEYS_REMEMBERED:
                self._shares.popitem(last=False)
        left = share.mine + share.left
        return (int(left) if allowed else -1), max(0.0, (1 - left) * 60 / a_minute)


@transaction.atomic
def _taken(key: str, a_minute: int, now_unix_s: float) -> Share:
    """Reserve a share of the key's remaining requests. An empty share writes nothing."""
    whole = {"left": float(a_minute), "at_unix_s": now_unix_s}
    kept = {"value": whole, "expires_unix_s": now_unix_s + 2 * 60}
    row, _ = Counted.objects.select_for_update().get_or_create(key=f"pace:{key}", defaults=kept)
    passed_s = max(0.0, now_unix_s - row.value["at_unix_s"])
    left = min(float(a_minute), row.value["left"] + passed_s * a_minute / 60)
    mine = min(int(left), max(1, a_minute // _SHARES_A_MINUTE))
    if mine:
        row.value = {"left": left - mine, "at_unix_s": now_unix_s}
        row.expires_unix_s = now_unix_s + 2 * 60
        row.save()
    return Share(mine, left - mine, now_unix_s)
