"""Counts in the database that every process must see and that outlive a restart: a cache, and rates of requests."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from typing import Any, NamedTuple

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db import DatabaseError, transaction
from django.db.models import Q, QuerySet

from webapp.accounts.limits.models import Counted

_TIDY_EVERY_S = 60.0


class SharedCache(BaseCache):
    """Stores JSON values. Writes delete expired rows.

    Django's own database cache stores pickles, which can run code when they are read. Redis is no alternative: the
    embedded Valkey keeps nothing on disk.
    """

    def __init__(self, location: str, options: dict[str, Any]) -> None:
        super().__init__(options)
        self._tidied_s = -_TIDY_EVERY_S
        self._lock = threading.Lock()

    def get(self, key: Any, default: Any = None, version: int | None = None) -> Any:
        value = self._living().filter(key=self._name(key, version)).values_list("value", flat=True).first()
        return default if value is None else value

    def set(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> None:
        self._tidy()
        kept = {"value": value, "expires_unix_s": self.get_backend_timeout(timeout)}
        Counted.objects.update_or_create(key=self._name(key, version), defaults=kept)

    def add(self, key: Any, value: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        """Set the key unless it exists. Returns whether it was set; of concurrent calls, one sets it."""
        self._tidy()
        name = self._name(key, version)
        self._expired().filter(key=name).delete()
        kept = {"value": value, "expires_unix_s": self.get_backend_timeout(timeout)}
        _, made = Counted.objects.get_or_create(key=name, defaults=kept)
        return made

    def touch(self, key: Any, timeout: Any = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        here = self._living().filter(key=self._name(key, version))
        return bool(here.update(expires_unix_s=self.get_backend_timeout(timeout)))

    def delete(self, key: Any, version: int | None = None) -> bool:
        deleted, _ = Counted.objects.filter(key=self._name(key, version)).delete()
        return bool(deleted)

    def clear(self) -> None:
        Counted.objects.all().delete()

    def _name(self, key: Any, version: int | None) -> str:
        """The key, or its digest if it is too long for the column."""
        name: str = self.make_key(key, version=version)
        return name if len(name) <= 250 else hashlib.sha256(name.encode()).hexdigest()

    def _living(self) -> QuerySet[Counted]:
        return Counted.objects.filter(Q(expires_unix_s=None) | Q(expires_unix_s__gt=time.time()))

    def _expired(self) -> QuerySet[Counted]:
        return Counted.objects.filter(expires_unix_s__lte=time.time())

    def _tidy(self) -> None:
        with self._lock:
            if time.monotonic() - self._tidied_s < _TIDY_EVERY_S:
                return
            self._tidied_s = time.monotonic()
        self._expired().delete()


_SHARES_A_MINUTE = 20
_SHARE_HOLDS_S = 60.0
_KEYS_REMEMBERED = 10_000


class Share(NamedTuple):
    """Requests that this process has reserved and not used, and the number that it left for other processes."""

    mine: int
    left: float
    taken_unix_s: float


class RateLimits:
    """The rate limits of all keys, in one process: a rate a minute, and the same number as a burst.

    A process reserves a twentieth of a minute's requests from the shared row at a time, so most requests cost no write.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shares: OrderedDict[str, Share] = OrderedDict()

    def take(self, key: str, a_minute: int, now_unix_s: float) -> tuple[int, float]:
        """The requests left after this one, and the seconds until one more. Below 0: refuse this one."""
        with self._lock:
            share = self._shares.get(key)
            if share is None or not share.mine or now_unix_s - share.taken_unix_s > _SHARE_HOLDS_S:
                try:
                    share = _taken(key, a_minute, now_unix_s)
                except DatabaseError:  # a full disk: reads need no write, so this process counts by itself
                    share = Share(max(1, a_minute // _SHARES_A_MINUTE), 0.0, now_unix_s)
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
