"""What the worker does beside jobs: every kind of row is worked off, and one kind in trouble holds up no other."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError

from tests.factories import make_project
from tests.webapp.data_tables import upload
from webapp import tasks
from webapp.background import BackgroundWork
from webapp.clock import SYSTEM_CLOCK
from webapp.datasets.models import DataSet
from webapp.jobs.policies.films import Filming


def test_each_table_of_background_work_has_its_life_cycle() -> None:
    assert {one.model for one in tasks.LIFE_CYCLES.values()} == set(BackgroundWork.__subclasses__())


@pytest.mark.django_db
def test_a_kind_in_trouble_delays_no_other(
    monkeypatch: pytest.MonkeyPatch, hints: dict[str, list[int]]
) -> None:
    class InTrouble(Filming):
        def tidy(self, now: datetime) -> None:
            raise DatabaseError("disk I/O error")

    monkeypatch.setitem(tasks.LIFE_CYCLES, "jobs.film", InTrouble())
    waiting = upload(make_project())
    DataSet.objects.update(since=SYSTEM_CLOCK.now() - timedelta(minutes=1))
    tasks.recover_background()
    assert hints["datasets.dataset"] == [waiting.pk]


@pytest.mark.django_db
@pytest.mark.parametrize("kind", tasks.LIFE_CYCLES)
def test_a_message_for_a_row_that_is_gone_does_nothing(kind: str) -> None:
    tasks.run_background(kind, 0)
