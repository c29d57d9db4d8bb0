"""What a loop must pass, run in a copy of the code that knows the one with a backup actor."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from cloud.money.billing.bill_context import bill_context
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from cloud.money.billing.round_times import round_times
from tests.cloud.recorded import CHANCE, record
from tests.examples import assert_that_its_forecast_comes_true, form_once_its_job_is_shown
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import tiny

BACKUP: dict[str, Any] = {"loop": {"kind": "backup"}}


def test_the_engine_runs_it_and_goes_on_from_a_checkpoint() -> None:
    store = Forgetful()
    short = tiny(**BACKUP, stop={"rounds": 2}, checkpoints={"every_rounds": 1})
    reports = [
        event.report
        for event in events_of(short, InlinePlatform(), checkpoints=store)
        if event.kind == "round"
    ]
    assert [(report.actors, report.progress) for report in reports] == [(3, 32)] * 2
    assert reports[1].dropped_contributions == 1
    assert events_of(tiny(**BACKUP), InlinePlatform(), resume=store.saved[2])[-1].rounds == 4


@pytest.mark.parametrize("chance", [{}, CHANCE], ids=["without chance", "with chance"])
def test_it_is_billed_and_timed_again(chance: dict[str, float]) -> None:
    run = record(tiny(**BACKUP, rollout={"attempts": 6}), **chance)
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert again.time_s == run.end_s
    assert again.bill.picodollars == run.spent_picodollars
    parts = full_bill([run.segment], bill_context(run.place.profile, run.place.stack, 1))
    assert parts.total == run.spent_picodollars
    assert len(round_times(run.segment)) == len(again.rounds) == 4
    assert "data is dropped" in " ".join(ReplaySchedule.of(run.segment).notes)


def test_its_forecast_is_what_comes() -> None:
    assert_that_its_forecast_comes_true(BACKUP)


@pytest.mark.django_db
def test_the_form_offers_it_and_the_pages_of_a_job_show_it(client: Client) -> None:
    form = form_once_its_job_is_shown(client, BACKUP)
    assert "Backup actor" in form
