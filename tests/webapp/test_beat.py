"""Beat sends its ticks on time whatever is done to the system's clock."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from webapp.celery import SteadyScheduler, app


class Recorded(SteadyScheduler):  # type: ignore[misc]
    """Keeps the names of what it sends, without a broker."""

    producer = None

    def __init__(self) -> None:
        self.sent: list[str] = []
        every = {"often": 0.05, "seldom": 0.2}
        schedule = {name: {"task": name, "schedule": seconds} for name, seconds in every.items()}
        super().__init__(app, lazy=True)
        self.merge_inplace(schedule)

    def apply_async(self, entry: Any, *arguments: Any, **options: Any) -> None:
        self.sent.append(entry.task)

    def run(self, within_s: float, until: set[str]) -> list[str]:
        """Tick as beat does until all of `until` were sent, or for so long, and return what was sent."""
        self.sent.clear()
        end = time.monotonic() + within_s
        while time.monotonic() < end and not until <= set(self.sent):
            time.sleep(max(0.0, min(self.tick(), 0.02)))
        return self.sent


def test_a_clock_that_is_set_back_an_hour_delays_no_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = Recorded()
    assert {"often", "seldom"} == set(scheduler.run(60.0, until={"often", "seldom"}))
    back = timedelta(hours=1)
    monkeypatch.setattr(app, "now", lambda: datetime.now().astimezone() - back)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - back.total_seconds())
    assert {"often", "seldom"} == set(scheduler.run(60.0, until={"often", "seldom"}))


def test_a_task_is_sent_once_a_period() -> None:
    scheduler, begun = Recorded(), time.monotonic()
    scheduler.run(60.0, until={"seldom"})
    passed_s = time.monotonic() - begun
    assert passed_s >= 0.2
    assert scheduler.sent.count("often") <= passed_s / 0.05


def test_beat_runs_by_this_schedule() -> None:
    assert app.conf.beat_scheduler == "webapp.celery:SteadyScheduler"
