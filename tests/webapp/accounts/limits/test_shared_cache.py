"""Limits are kept where every process sees them: a new process, or one started again, goes on with the same counts."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.cache import cache, caches
from django.core.cache.backends import locmem
from django.core.cache.backends.base import BaseCache
from django.db import connection
from django.test import Client

from tests.factories import make_user
from webapp.accounts.limits import counters
from webapp.accounts.limits.counters import SharedCache
from webapp.accounts.limits.models import Counted


def _another_process() -> BaseCache:
    """The cache as another process has it, which shares no memory with this one."""
    return SharedCache("", {})


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The time that the cache sees: `clock.now_s` may be moved."""
    clock = SimpleNamespace(now_s=1_000_000.0)
    moved = SimpleNamespace(time=lambda: clock.now_s, monotonic=lambda: clock.now_s)
    monkeypatch.setattr(counters, "time", moved)
    monkeypatch.setattr("django.core.cache.backends.base.time", moved)
    return clock


@pytest.mark.django_db
def test_what_one_process_counts_another_sees() -> None:
    cache.set("attempts", [3.5, 1.25], 60)
    assert _another_process().get("attempts") == [3.5, 1.25]
    assert _another_process().add("attempts", [], 60) is False
    assert _another_process().delete("attempts") is True
    assert cache.get("attempts", "none") == "none"
    assert cache.delete("attempts") is False


@pytest.mark.django_db
def test_a_value_is_gone_once_its_time_is_over(clock: Any) -> None:
    cache.set("short", 1, 10)
    cache.set("long", 2, None)
    assert cache.touch("short", 20)
    clock.now_s += 15
    assert cache.get("short") == 1
    clock.now_s += 5
    assert cache.get("short") is None
    assert not cache.touch("short", 20)
    assert cache.add("short", 3, 10) is True
    assert (cache.get("short"), cache.get("long")) == (3, 2)


@pytest.mark.django_db
def test_rows_that_are_over_do_not_pile_up(clock: Any) -> None:
    for number in range(50):
        cache.set(f"one of many {number}", True, 10)
    clock.now_s += counters._TIDY_EVERY_S
    cache.set("another", True, 10)
    assert list(Counted.objects.values_list("value", flat=True)) == [True]
    cache.clear()
    assert not Counted.objects.exists()


@pytest.mark.django_db
def test_a_long_key_is_kept_as_well() -> None:
    for end in ("a", "b"):
        cache.set("x" * 400 + end, end)
    assert [cache.get("x" * 400 + end) for end in ("a", "b")] == ["a", "b"]


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_adds() -> None:
    """On this, allauth builds the lock around its counts."""
    added: list[bool] = []
    ready = threading.Barrier(8)

    def add() -> None:
        ready.wait()
        added.append(_another_process().add("lock", True, 10))
        connection.close()

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(added) == [False] * 7 + [True]


@pytest.mark.django_db
def test_attempts_to_sign_in_are_counted_over_processes_and_restarts() -> None:
    make_user("ada@example.org", "correct horse battery")

    def attempt() -> str:
        # What a process has in memory is gone when it is started again.
        del caches["default"]
        locmem._caches.clear()
        wrong = {"login": "ada@example.org", "password": "wrong"}
        return Client().post("/accounts/login/", wrong).content.decode()

    answers = [attempt() for _ in range(12)]
    assert "Too many failed" in answers[-1]
    assert "Too many failed" not in answers[0]
