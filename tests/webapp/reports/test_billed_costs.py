"""Where a cloud's bill is there, it is the cost: on the page, in every file, in every grouping, and for each call."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from openpyxl import load_workbook
from pypdf import PdfReader

from tests.factories import make_running_job, make_spec
from tests.webapp.reports.focus_check import problems
from tests.webapp.reports.test_cloud_bills import Scene
from tests.webapp.settled import DAY, lambda_lines, settle
from training.engine.ports import PriceLine
from webapp.alerts.models import Alert, AlertKind
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd
from webapp.overview import month
from webapp.reports.calls import calls
from webapp.reports.files import focus_file
from webapp.reports.job_facts import OF_NO_JOB
from webapp.reports.report_query import BY
from webapp.reports.table import Costs

pytestmark = pytest.mark.django_db
UNTAGGED = {"resourceTags/user:app": "", "resourceTags/user:starling:run": ""}
SHARED = {"resourceTags/user:starling:run": ""}
"""A function that several jobs call wears no job's name."""


@pytest.fixture
def scene() -> Scene:
    return Scene()


def _another_job(scene: Scene) -> tuple[Job, int]:
    job, epoch = make_running_job(project=scene.project, user=scene.owner, spec=make_spec(budget_usd="5"))
    platform = {"kind": "aws_lambda", "connection": "", "region": "us-east-1"}
    Job.objects.filter(pk=job.pk).update(spec={**job.spec, "platform": platform})
    return job, epoch


def _file(scene: Scene, client: Any, kind: str, **query: str) -> bytes:
    client.force_login(scene.owner)
    query = {"from": "2026-11-01", "to": "2026-11-30", "by": "job", "format": kind, **query}
    answer = client.get(reverse("reports:file", args=[scene.project.slug]), query)
    assert answer.status_code == 200
    return b"".join(answer) if answer.streaming else answer.content


@pytest.mark.django_db(transaction=True)
@pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume asynchronous:Warning")
def test_a_bill_that_is_far_from_ours_is_the_cost_in_the_page_and_in_every_file(
    scene: Scene, client: Any, tmp_path: Path
) -> None:
    """We metered 61 % more than AWS charged."""
    bill = (scene.metered * 100) // 161
    exact, ours = exact_usd(bill), exact_usd(scene.metered)
    scene.read(scene.cur(exact))

    client.force_login(scene.owner)
    query = {"from": "2026-11-01", "to": "2026-11-30", "by": "job"}
    page = client.get(reverse("reports:page", args=[scene.project.slug]), query).content.decode()
    assert re.findall(r'value="([\d.]+)" data-total', page) == [exact]
    assert set(re.findall(r'<data value="([\d.]+)" title', page)) == {exact}
    assert "+61.0 %" in page, "ours stands beside it"

    for by in BY:
        rows = list(csv.DictReader(io.StringIO(_file(scene, client, "csv", by=by).decode())))
        assert rows[-1]["cost [USD]"] == exact, by
        assert sum(Decimal(row["cost [USD]"]) for row in rows[:-1]) == Decimal(exact), by
        assert {row["basis"] for row in rows[:-1]} == {"billed"}, by
        document = json.loads(_file(scene, client, "json", by=by))
        assert document["total"]["cost_usd"] == exact, by
        assert sum(Decimal(row["cost_usd"]) for row in document["rows"]) == Decimal(exact), by
        if by != "call":
            assert (rows[-1]["billed [USD]"], rows[-1]["metered [USD]"]) == (exact, "0"), by
            assert rows[-1]["metered where billed [USD]"] == ours, by
            assert document["total"]["metered_where_billed_usd"] == ours, by

    focus = _file(scene, client, "focus").decode()
    assert problems(io.StringIO(focus)) == []
    parts = list(csv.DictReader(io.StringIO(focus)))
    for column, amount in (("BilledCost", exact), ("EffectiveCost", exact), ("ListCost", ours)):
        assert sum(Decimal(row[column]) for row in parts) == Decimal(amount), column
    assert {row["x_CostBasis"] for row in parts} == {"billed"}

    (tmp_path / "report.xlsx").write_bytes(_file(scene, client, "xlsx", by="call"))
    book = load_workbook(tmp_path / "report.xlsx")
    for name in ("By job", "Calls"):
        head = [cell.value for cell in book[name][1]]
        *_, last = book[name].iter_rows()
        assert round(Decimal(repr(last[head.index("cost [USD]")].value)) * 10**12) == bill, name
    about = {row[0].value: row[1].value for row in book["About"].iter_rows()}
    assert about["Total, exact [USD]"] == exact

    pages = PdfReader(io.BytesIO(_file(scene, client, "pdf"))).pages
    text = "".join(one.extract_text() for one in pages)
    assert f"exactly {exact} USD" in text
    assert set(re.findall(r"Total\s*100\.0 %\s*[a-z, ]+?\s*[\d.]+\s+([\d.]+)", text)) == {exact}


def test_a_bill_over_a_tenth_from_ours_makes_one_alert(scene: Scene, client: Any) -> None:
    bill = (scene.metered * 100) // 161
    scene.read(scene.cur(exact_usd(bill)))
    alert = Alert.objects.get(kind=AlertKind.BILL)
    assert (alert.project, alert.severity) == (scene.project, "warning")
    assert "AWS Lambda" in alert.sentence
    assert "+61.0 %" in alert.sentence
    client.force_login(scene.owner)
    for name in ("page", "bills"):
        shown = client.get(
            reverse(f"reports:{name}", args=[scene.project.slug]), {"from": "2026-11-01", "to": "2026-11-30"}
        )
        assert "by more than 10 %" in shown.content.decode(), name


def test_a_bill_near_ours_warns_no_one(scene: Scene, client: Any) -> None:
    scene.read(scene.cur("1.01"))
    assert not Alert.objects.filter(kind=AlertKind.BILL).exists()
    client.force_login(scene.owner)
    shown = client.get(
        reverse("reports:page", args=[scene.project.slug]), {"from": "2026-11-01", "to": "2026-11-30"}
    )
    assert "by more than 10 %" not in shown.content.decode()


def test_errors_of_two_services_do_not_hide_each_other(scene: Scene) -> None:
    """Too much of one and too little of the other add up to nothing, and both are wrong."""
    rent = (PriceLine("c5.4xlarge", "1", "h", 10**12),)
    settle(scene.job, scene.job.lease_epoch, "rent-1", rent, kind="rent")
    server = scene.cur("1.5", **{"identity/LineItemId": "2", "lineItem/ProductCode": "AmazonEC2"})
    scene.read(scene.cur("0.5000022"), server)
    alert = Alert.objects.get(kind=AlertKind.BILL)
    assert "AWS Lambda" in alert.sentence
    assert "Amazon EC2" in alert.sentence


def test_a_service_that_is_on_no_bill_stays_metered(scene: Scene) -> None:
    """A bill of Lambda says nothing of the machine that was rented that day."""
    rent = (PriceLine("c5.4xlarge", "1", "h", 7 * 10**11),)
    settle(scene.job, scene.job.lease_epoch, "rent-1", rent, kind="rent")
    scene.read(scene.cur("0.5"))
    table = Costs(scene.question.model_copy(update={"by": "job"})).table()
    assert table.total.amounts.billed == 5 * 10**11
    assert table.total.amounts.metered == 7 * 10**11
    assert table.total.amounts.basis == "metered, billed"
    assert table.total.calls == 1, "calls are counted beside a bill as well"


def test_what_was_booked_in_full_is_on_the_bill_too(scene: Scene) -> None:
    """No one could meter that call; AWS did, and its amount is in the bill."""
    settle(scene.job, scene.job.lease_epoch, "unknown", assumed=10**12)
    scene.read(scene.cur("1.25"))
    costs = Costs(scene.question)
    (row,) = costs.table().rows
    assert (row.label, row.cost, row.amounts.basis) == ("AWS Lambda", 1_250_000_000_000, "billed")
    assert sum(call.picodollars for call in calls(costs)) == costs.total == 1_250_000_000_000


def test_lines_without_a_jobs_name_are_shared_out_by_what_was_metered(scene: Scene) -> None:
    other, epoch = _another_job(scene)
    settle(other, epoch, "r1-s0-a1", lambda_lines(20_000_000))
    scene.read(scene.cur("2", **SHARED))
    by_job = scene.question.model_copy(update={"by": "job"})
    costs = {row.key: row.cost for row in Costs(by_job).table().rows}
    assert sum(costs.values()) == 2 * 10**12
    assert costs[scene.job.pk] == pytest.approx(1.5 * 10**12, rel=1e-5)
    alone = Costs(by_job.model_copy(update={"job": other.pk}))
    assert alone.total == costs[other.pk], "a filter takes nothing from others"


def test_a_line_that_nothing_of_ours_stands_against_counts_as_it_is(scene: Scene) -> None:
    """The usage of midnight is on the next day's bill."""
    late = {"lineItem/UsageStartDate": "2026-11-09T00:00:00Z", "identity/LineItemId": "late"}
    scene.read(scene.cur("1"), scene.cur("0.25", **late), scene.cur("0.125", **late | SHARED | {
        "identity/LineItemId": "nobody"}))  # fmt: skip
    for by in BY:
        costs = Costs(scene.question.model_copy(update={"by": by}))
        assert costs.total == 1_375_000_000_000, by
        assert costs.table().total.cost == costs.total, by
        assert sum(call.picodollars for call in calls(costs)) == costs.total, by
        focus = "".join(focus_file.pieces(costs))
        assert problems(io.StringIO(focus)) == []
        billed = sum(Decimal(row["BilledCost"]) for row in csv.DictReader(io.StringIO(focus)))
        assert billed == Decimal("1.375")
    by_job = {row.label: row.cost for row in Costs(scene.question).table("job").rows}
    assert by_job == {scene.job.name: 1_250_000_000_000, OF_NO_JOB: 125_000_000_000}


def test_the_accounts_other_work_is_no_cost_of_ours(scene: Scene) -> None:
    """Untagged lines of a service that we did not use that day belong to someone else."""
    servers = {"lineItem/ProductCode": "AmazonEC2", "lineItem/ResourceId": "i-0abc"}
    scene.read(scene.cur("40", **UNTAGGED, **servers))
    costs = Costs(scene.question)
    assert costs.total == scene.metered
    assert costs.table().total.amounts.basis == "metered"
    assert not Alert.objects.filter(kind=AlertKind.BILL).exists()


def test_the_overviews_month_is_that_of_reports(scene: Scene) -> None:
    scene.read(scene.cur("0.5"))
    (only,) = month.months(scene.project, datetime(2026, 11, 20, tzinfo=UTC))
    assert (only.spent, only.by_day[2]) == (5 * 10**11, 5 * 10**11)


def test_filters_of_services_agree_beside_a_bill(scene: Scene) -> None:
    rent = (PriceLine("c5.4xlarge", "1", "h", 7 * 10**11),)
    settle(scene.job, scene.job.lease_epoch, "rent-1", rent, kind="rent", at=DAY.replace(hour=23))
    scene.read(scene.cur("0.5"))
    for service, amount in (("AWS Lambda", 5 * 10**11), ("Amazon EC2", 7 * 10**11), ("Amazon S3", 0)):
        costs = Costs(scene.question.model_copy(update={"service": service}))
        assert costs.total == amount, service
        assert sum(call.picodollars for call in calls(costs)) == amount, service
