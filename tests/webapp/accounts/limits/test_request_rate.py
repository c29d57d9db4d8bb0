"""What a token may ask holds for all processes together, and costs few writes."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from webapp.accounts.limits.counters import RateLimits
from webapp.accounts.limits.models import Counted

pytestmark = pytest.mark.django_db
BEGAN = 1_000_000.0


def test_two_processes_share_what_a_token_may_ask() -> None:
    one, other = RateLimits(), RateLimits()
    answers = [process.take("token", 10, BEGAN)[0] for _ in range(6) for process in (one, other)]
    assert sum(left >= 0 for left in answers) == 10
    assert one.take("another token", 10, BEGAN)[0] == 9


def test_a_process_that_is_started_again_goes_on_where_it_was() -> None:
    allowed = sum(RateLimits().take("token", 40, BEGAN)[0] >= 0 for _ in range(100))
    assert allowed <= 40
    assert RateLimits().take("token", 40, BEGAN)[0] == -1
    assert RateLimits().take("token", 40, BEGAN + 60)[0] >= 0


def test_most_requests_write_nothing() -> None:
    pace = RateLimits()
    with CaptureQueriesContext(connection) as queries:
        answers = [pace.take("token", 600, BEGAN) for _ in range(600)]
    assert [left for left, _ in answers] == list(range(599, -1, -1))
    assert sum(one["sql"].startswith(("UPDATE", "INSERT")) for one in queries) <= 25
    left, wait_s = pace.take("token", 600, BEGAN)
    assert (left, round(wait_s, 3)) == (-1, 0.1)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    a_minute=st.integers(1, 60),
    steps=st.lists(st.tuples(st.integers(0, 2), st.floats(0, 40)), max_size=60),
)
def test_no_more_pass_than_the_time_gives(a_minute: int, steps: list[tuple[int, float]]) -> None:
    """However the requests fall on processes and moments: at most a minute's at once, and a minute's each minute."""
    Counted.objects.all().delete()
    processes, now, passed = [RateLimits() for _ in range(3)], BEGAN, 0
    for number, wait_s in steps:
        now += wait_s
        passed += processes[number].take("token", a_minute, now)[0] >= 0
    assert passed <= a_minute * (1 + (now - BEGAN) / 60) + 1e-6
