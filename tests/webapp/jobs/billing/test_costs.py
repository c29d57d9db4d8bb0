"""The bill as a file: exact, complete, and harmless in a spreadsheet."""

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.urls import reverse

from tests.factories import make_running_job, make_spec, make_user
from training.engine.ports import Reservation, Settlement
from webapp.formatting import display_usd
from webapp.jobs.billing.cost_csv import by_call, by_round, csv_line
from webapp.jobs.models import Job
from webapp.jobs.queries import header
from webapp.jobs.services import raise_budget
from webapp.money.amounts import display_least_usd, exact_usd, picodollars
from webapp.money.ledger import DatabaseLedger


def _table(report: Any) -> list[dict[str, str]]:
    async def text() -> str:
        return "".join([line async for line in report])

    return list(csv.DictReader(io.StringIO(async_to_sync(text)())))


@pytest.fixture
def job(db: None) -> Any:
    job, epoch = make_running_job(spec=make_spec("hopper-simulated"))
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve(
        [
            Reservation("r1-s0-a1", "rollout", 1, 10**9),
            Reservation("r1-update-a1", "update", 1, 10**9),
            Reservation("rent-1", "rent", 1, 10**9),
            Reservation("r2-s0-a1", "rollout", 2, 10**9),
        ]
    )
    ledger.settle(
        [
            Settlement("r1-s0-a1", 123_456_789, "metered", (), {"env_steps": 256}),
            Settlement("r1-update-a1", 1, "metered", (), {}),
            Settlement("rent-1", 10**9, "assumed", (), {}),
        ]
    )
    return job


@pytest.mark.django_db(transaction=True)
def test_rounds_add_up_to_the_ledger(job: Any) -> None:
    rows = _table(by_round(job))
    assert [row["round"] for row in rows] == ["1", "total"]
    total = rows[-1]
    job.account.refresh_from_db()
    assert Decimal(total["cost [USD]"]) == Decimal(job.account.spent_picodollars) / 10**12
    assert total["cost [USD]"] == "0.00112345679"
    assert total["of it assumed [USD]"] == "0.001"
    assert (total["calls"], total["basis"], total["prices"]) == ("2", "assumed and metered", "simulated")


@pytest.mark.django_db(transaction=True)
def test_calls_add_up_to_the_ledger(job: Any) -> None:
    rows = _table(by_call(job))
    assert [row["call"] for row in rows] == ["r1-s0-a1", "r1-update-a1", "rent-1", "r2-s0-a1", ""]
    assert sum(Decimal(row["cost [USD]"] or 0) for row in rows[:-1]) == Decimal(rows[-1]["cost [USD]"])
    assert rows[-1]["reserved [USD]"] == "0.001"
    assert rows[3]["state"] == "open"
    assert rows[3]["cost [USD]"] == ""
    assert {row["prices"] for row in rows} == {"simulated"}


@pytest.mark.django_db(transaction=True)
def test_what_ran_over_is_on_the_bill_too_before_and_after_the_budget_is_raised(job: Any) -> None:
    """An overrun freezes the account; both files and the page still say what was really spent."""
    account = job.account
    DatabaseLedger(account.pk, job.lease_epoch).settle([Settlement("r2-s0-a1", 3 * 10**9, "metered", (), {})])
    for raised in (False, True):
        if raised:
            raise_budget(job=job, user=job.created_by, limit_usd=Decimal(2))
        account.refresh_from_db()
        whole = account.spent_picodollars + account.overrun_picodollars
        assert whole == 4_123_456_790
        for report in (by_round, by_call):
            assert _table(report(job))[-1]["cost [USD]"] == exact_usd(whole)
        assert header(Job.objects.get(pk=job.pk))["spent_usd"] == exact_usd(whole)
        assert (account.overrun_picodollars, account.frozen) == ((0, False) if raised else (2 * 10**9, True))


@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous:Warning")
def test_only_members_get_the_file(job: Any, client: Any) -> None:
    address = reverse("jobs:cost_csv", args=[job.project.slug, job.pk])
    client.force_login(job.created_by)
    answer = client.get(address, {"by": "call"})
    assert answer.status_code == 200
    assert "attachment" in answer["Content-Disposition"]
    assert b"".join(answer).startswith(b"round,epoch,call")
    client.force_login(make_user())
    assert client.get(address).status_code == 404


def test_what_looks_like_a_formula_stays_text() -> None:
    assert csv_line(["=1+1", "@x", "-2", "fine", 3, None]) == "'=1+1,'@x,'-2,fine,3,\r\n"


@pytest.mark.parametrize(
    ("amount", "exact", "shown"),
    [
        (0, "0", "$0.00"),
        (1, "0.000000000001", "$0.000000000001"),
        (10**12, "1", "$1.00"),
        (1_234_567_890_123, "1.234567890123", "$1.23"),
        (1_234_567 * 10**12, "1234567", "$1,234,567.00"),
        (12_345_000_000, "0.012345", "$0.0123"),
        (500_000_000_000, "0.5", "$0.500"),
        (999_999_999_999, "0.999999999999", "$1.00"),
    ],
)
def test_amounts(amount: int, exact: str, shown: str) -> None:
    assert exact_usd(amount) == exact
    assert display_usd(amount) == shown
    assert picodollars(Decimal(exact)) == amount
    assert picodollars(Decimal(display_least_usd(amount).strip("$").replace(",", ""))) >= amount


def test_what_must_be_given_at_least_is_shown_so_that_it_is_enough() -> None:
    assert display_least_usd(16_451_000_000) == "$0.0165"
    assert display_least_usd(16_500_000_001) == "$0.0166"
    assert display_least_usd(1) == "$0.000001", "a budget has no more decimals"
    assert display_least_usd(1_230_000_000_001) == "$1.24"
