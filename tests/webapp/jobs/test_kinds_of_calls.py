"""A kind of call that only tests know: its charges are booked, listed, drawn and told of like any other's."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import IntegrityError, transaction

from cloud.platforms.simulated_options import SimulatedOptions
from tests.factories import call_failed, make_running_job, make_spec
from tests.training.adding import Add, add
from training.calls import KINDS
from training.engine.ports import Reservation, Settlement
from training.functions.bodies import BODIES
from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.billing.bill_panel import cost_by_kind
from webapp.jobs.billing.bill_text import summarize_bill
from webapp.jobs.billing.cost_csv import by_round
from webapp.jobs.events.event_text import describe_event
from webapp.jobs.models import Job
from webapp.jobs.round_calls import round_calls
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import BillSheet, Charge


@pytest.fixture
def adding(monkeypatch: pytest.MonkeyPatch) -> Add:
    kind = Add()
    monkeypatch.setitem(KINDS, kind.name, kind)
    monkeypatch.setitem(BODIES, kind.name, add)
    return kind


@pytest.fixture
def job(db: None) -> Any:
    job, epoch = make_running_job(spec=make_spec("hopper-simulated"))
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.reserve(
        [
            Reservation("r1-s0-a1", "rollout", 1, 10**9),
            Reservation("r1-add0-a1", "add", 1, 10**9),
            Reservation("rent-1", "rent", 1, 10**9),
        ]
    ) == [True, True, True]
    ledger.settle([Settlement("r1-add0-a1", 5 * 10**8, "metered", (), {"run_s": 2.0, "samples": 4})])
    return job


def test_a_rounds_calls_say_who_computes(job: Any, adding: Add) -> None:
    found = round_calls(Job.objects.get(pk=job.pk), None, SYSTEM_CLOCK.now())
    assert found is not None
    assert [(row.who, row.state, row.took_s) for row in found.rows] == [
        ("Actor", "open", None),
        ("Adder", "done", 2.0),
    ]


def test_costs_by_kind_have_a_row_of_it(job: Any, adding: Add) -> None:
    rows = {row["word"]: row["picodollars"] for row in cost_by_kind(job.account)}
    assert rows == {"Rollout": 0, "Addition": 5 * 10**8, "Rent": 0}


@pytest.mark.django_db(transaction=True)
def test_the_bill_as_a_file_has_a_column_of_it(job: Any, adding: Add) -> None:
    async def text() -> str:
        return "".join([line async for line in by_round(job)])

    total = list(csv.DictReader(io.StringIO(async_to_sync(text)())))[-1]
    assert total["add [USD]"] == total["cost [USD]"] == "0.0005"


def test_the_bill_names_its_part(adding: Add) -> None:
    document = {
        "total": 100,
        "parts": {"sums": 60, "actors": 40},
        "counts": {},
        "time_s": 1.0,
        "papers": {},
        "free_tier": {"covered": 0, "total": 0},
        "compared": [],
    }
    rows = summarize_bill(BillSheet(document=document), SimulatedOptions()).rows
    assert [row.part.title for row in rows] == ["Sums", "Actors"]


def test_a_failure_is_reported_in_its_own_words(adding: Add) -> None:
    payload = call_failed().model_copy(update={"call_kind": "add"}).model_dump(mode="json")
    assert describe_event("call_failed", payload).text.startswith("An addition of ")


def test_a_charge_without_a_kind_cannot_be_stored(job: Any) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        Charge.objects.filter(account=job.account).update(kind="")
