"""Clouds' own bills: read in their layouts, each line once, put beside what we metered, and safe against odd files."""

from __future__ import annotations

import csv
import gzip
import io
import json
from datetime import date
from typing import Any

import pytest
from django.urls import reverse

from tests.factories import make_project, make_running_job, make_spec, make_user
from tests.members import add_member
from tests.webapp.settled import DAY, lambda_lines, settle
from webapp.jobs.models import Job
from webapp.money.amounts import exact_usd
from webapp.reports import page as reports_page
from webapp.reports.bills import bill_file, bill_reading
from webapp.reports.bills.difference import compare_bills
from webapp.reports.calls import calls
from webapp.reports.models import BilledLine, CloudBill, FileState, MatchedBy
from webapp.reports.report_query import Question
from webapp.reports.table import Costs

pytestmark = pytest.mark.django_db(transaction=True)
ARN = "arn:aws:lambda:us-east-1:123456789012:function:starling-actor-1024mb"


class Scene:
    """A job on AWS Lambda, one day, metered at a little less than the bill will say."""

    replace_anyway = False

    def __init__(self) -> None:
        self.owner = make_user()
        self.project = make_project(self.owner)
        self.job, epoch = make_running_job(
            project=self.project, user=self.owner, spec=make_spec(budget_usd="5")
        )
        self.job.spec["platform"] = {"kind": "aws_lambda", "connection": "", "region": "us-east-1"}
        Job.objects.filter(pk=self.job.pk).update(spec=self.job.spec)
        self.metered = settle(self.job, epoch, "r1-s0-a1", lambda_lines(60_000_000))
        self.question = Question(
            project=self.project.pk, first_day=date(2026, 11, 1), last_day=date(2026, 11, 30), by="service"
        )

    def cur(self, usd: str = "1.01", **changes: str) -> dict[str, str]:
        """A line as the Cost and Usage Report has it; only some of its hundred columns matter."""
        line = {
            "identity/LineItemId": "abc123",
            "identity/TimeInterval": "2026-11-03T10:00:00Z/2026-11-03T11:00:00Z",
            "bill/PayerAccountId": "123456789012",
            "lineItem/LineItemType": "Usage",
            "lineItem/UsageStartDate": "2026-11-03T10:00:00Z",
            "lineItem/ProductCode": "AWSLambda",
            "lineItem/UsageType": "Lambda-GB-Second",
            "lineItem/ResourceId": ARN,
            "lineItem/UsageAmount": "60000.0000000000",
            "lineItem/CurrencyCode": "USD",
            "lineItem/UnblendedCost": usd,
            "resourceTags/user:app": "starling",
            "resourceTags/user:starling:run": f"{self.job.pk}/e1",
        }
        return {**line, **changes}

    def file(self, *lines: dict[str, str]) -> io.BytesIO:
        out = io.StringIO()
        writer = csv.DictWriter(out, lines[0].keys())
        writer.writeheader()
        writer.writerows(lines)
        return io.BytesIO(out.getvalue().encode())

    def read(self, *lines: dict[str, str], packed: bool = False, name: str = "bill.csv") -> CloudBill:
        return self.read_text(self.file(*lines).getvalue(), packed=packed, name=name)

    def read_text(self, text: str | bytes, *, packed: bool = False, name: str = "bill.csv") -> CloudBill:
        data = text if isinstance(text, bytes) else text.encode()
        data = gzip.compress(data, mtime=0) if packed else data
        bill = bill_reading.accept_bill(
            project=self.project,
            user=self.owner,
            name=name,
            file=io.BytesIO(data),
            size=len(data),
            replace_anyway=self.replace_anyway,
        )
        bill_reading.BILL_READING.run(bill.pk)
        bill.refresh_from_db()
        return bill


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_cost_and_usage_report_stands_beside_ours_with_the_error(scene: Scene, client: Any) -> None:
    fee = scene.cur("0.0000002", **{"identity/LineItemId": "fee", "lineItem/UsageType": "Request"})
    tax = scene.cur("9", **{"identity/LineItemId": "tax", "lineItem/LineItemType": "Tax"})
    foreign = {"resourceTags/user:app": "", "resourceTags/user:starling:run": "", "lineItem/ResourceId": ""}
    other = scene.cur("7", **{"identity/LineItemId": "db", "lineItem/ProductCode": "AmazonRDS"}, **foreign)
    theirs = scene.cur("0.5", **{"identity/LineItemId": "theirs"}, **foreign)
    bill = scene.read(scene.cur(), fee, tax, other, theirs, packed=True)
    assert (bill.state, bill.layout, bill.row_count, bill.kept_count) == (FileState.READY, "aws-cur", 5, 3)
    (row,), total = compare_bills(scene.question)
    assert (row.day, row.service) == (date(2026, 11, 3), "AWS Lambda")
    assert row.ours == total.ours == scene.metered == 1_000_002_200_000
    assert row.theirs == 1_010_000_200_000
    assert row.error == -9_998_000_000
    assert f"{row.error_percent:.3f}" == "-0.990"
    assert (row.unmatched, row.unmatched_count) == (500_000_000_000, 1), "another function of that account"
    client.force_login(scene.owner)
    page = client.get(
        reverse("reports:bills", args=[scene.project.slug]), {"from": "2026-11-01", "to": "2026-11-30"}
    )
    assert "−$0.01000, −1.0 %" in page.content.decode()


def test_figures_of_a_day_that_is_on_a_bill_are_called_billed(scene: Scene) -> None:
    before = Costs(scene.question).table()
    assert (before.total.amounts.basis, before.has_bill) == ("metered", False)
    scene.read(scene.cur())
    for by, key in (("service", "AWS Lambda"), ("day", "2026-11-03"), ("job", scene.job.pk)):
        (row,) = Costs(scene.question.model_copy(update={"by": by})).table().rows
        assert (row.key, row.amounts.basis, row.cost, row.metered) == (
            key,
            "billed",
            1_010_000_000_000,
            scene.metered,
        )
    assert {call.basis for call in calls(Costs(scene.question))} == {"billed"}


def test_only_what_is_on_a_bill_is_compared_with_it(scene: Scene) -> None:
    """Spending of a day that no bill covers yet is not an error of ours."""
    settle(scene.job, scene.job.lease_epoch, "later", lambda_lines(60_000_000), at=DAY.replace(day=20))
    scene.read(scene.cur())
    table = Costs(scene.question.model_copy(update={"by": "day"})).table()
    assert table.total.cost == scene.metered + 1_010_000_000_000
    assert reports_page.total(table).difference == "−$0.01000, −1.0 %"
    assert [row.difference for row in reports_page.rows(table)] == ["−$0.01000, −1.0 %", ""]


def test_the_same_file_and_its_correction_count_once(scene: Scene) -> None:
    scene.read(scene.cur())
    with pytest.raises(bill_reading.NotTaken, match=r"as bill\.csv"):
        scene.read(scene.cur())
    scene.read(scene.cur("1.02"), name="final.csv")
    (line,) = BilledLine.objects.all()
    assert (line.picodollars, line.period.bill.name) == (1_020_000_000_000, "final.csv")
    other = make_project(make_user())
    assert not BilledLine.objects.filter(project=other).exists()


def test_lines_that_are_alike_all_count(scene: Scene) -> None:
    alike = scene.cur("0.5", **{"identity/LineItemId": "", "identity/TimeInterval": ""})
    scene.read(alike, alike)
    scene.read(alike, alike, name="again.csv", packed=True)
    assert BilledLine.objects.count() == 2


def test_cur_2_has_its_tags_in_one_column(scene: Scene) -> None:
    bill = scene.read(
        {
            "identity_line_item_id": "x",
            "identity_time_interval": "y",
            "line_item_usage_start_date": "2026-11-03 10:00:00.000",
            "line_item_line_item_type": "Usage",
            "line_item_product_code": "AWSLambda",
            "line_item_usage_type": "Lambda-GB-Second",
            "line_item_resource_id": "",
            "line_item_currency_code": "USD",
            "line_item_unblended_cost": "1.0000022",
            "resource_tags": json.dumps({"user_starling_run": f"{scene.job.pk}/e1"}),
        }
    )
    assert bill.layout == "aws-cur-2"
    line = BilledLine.objects.get()
    assert (line.job, line.matched_by, line.picodollars) == (scene.job, MatchedBy.TAG, scene.metered)


def test_focus_of_any_provider(scene: Scene) -> None:
    shared = {"BillingCurrency": "USD", "ChargeCategory": "Usage", "ResourceId": "", "SkuId": "s"}
    rows = [
        {"ServiceName": "AWS Lambda", "ProviderName": "AWS", "BilledCost": "1", "Tags": "{}"},
        {"ServiceName": "Container Instances", "ProviderName": "Microsoft", "BilledCost": "2", "Tags": ""},
    ]
    bill = scene.read(*({"ChargePeriodStart": "2026-11-03T00:00:00Z", **shared, **row} for row in rows))
    assert bill.layout == "focus"
    found = BilledLine.objects.order_by("picodollars").values_list("provider", "service", "matched_by")
    assert list(found) == [
        ("AWS", "AWS Lambda", MatchedBy.DAY),
        ("Microsoft", "Azure Container Instances", MatchedBy.DAY),
    ]


def test_azure_writes_days_and_tags_in_its_own_way(scene: Scene) -> None:
    bill = scene.read(
        {
            "Date": "11/03/2026",
            "MeterCategory": "Container Instances",
            "MeterName": "Standard vCPU Duration",
            "consumedService": "Microsoft.ContainerInstance",
            "ResourceId": "/subscriptions/s/resourceGroups/g/providers/Microsoft.ContainerInstance/groups/x",
            "chargeType": "Usage",
            "costInBillingCurrency": "0.92",
            "costInUsd": "1.25",
            "billingCurrency": "EUR",
            "Tags": f'"app": "starling","starling:run": "{scene.job.pk}/e3"',
        }
    )
    assert (bill.layout, bill.state) == ("azure", FileState.READY)
    line = BilledLine.objects.get()
    assert (line.day, line.provider, line.service) == (
        date(2026, 11, 3),
        "Microsoft",
        "Azure Container Instances",
    )
    assert (line.job, line.picodollars) == (scene.job, 1_250_000_000_000)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"lineItem/CurrencyCode": "EUR"}, "Line 3 is in EUR"),
        ({"lineItem/UnblendedCost": "a lot"}, "Line 3 costs 'a"),
        ({"lineItem/UnblendedCost": "NaN"}, "is no number"),
        ({"lineItem/UsageStartDate": "last week"}, "which is none"),
    ],
)
def test_a_bill_with_a_line_that_cannot_be_read_is_not_read_by_half(
    scene: Scene, change: dict[str, str], words: str
) -> None:
    bill = scene.read(scene.cur(), scene.cur(**{"identity/LineItemId": "2", **change}))
    assert bill.state == FileState.FAILED
    assert words in bill.reason
    assert not BilledLine.objects.exists()


def test_odd_files_are_refused_in_words(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Known layouts: AWS" in scene.read_text("a,b\r\n1,2\r\n").reason
    assert "CSV" in scene.read_text(b"PK\x03\x04\x00\xff\xfe\x00" * 50).reason
    assert scene.read_text(b"\x1f\x8b broken").state == FileState.FAILED
    assert "no known layout" in scene.read_text(b"").reason
    monkeypatch.setattr(bill_file, "MOST_LETTERS", 1000)
    header = ",".join(scene.cur())
    assert "more than 1,000 letters" in scene.read_text(f"{header}\r\n" + "x" * 5000, packed=True).reason
    monkeypatch.setattr(bill_reading, "MOST_UPLOADED_BYTES", 10)
    with pytest.raises(bill_reading.NotTaken, match="more than 0 MB"):
        scene.read(scene.cur())


def test_owners_hand_bills_over_and_members_look(scene: Scene, client: Any) -> None:
    editor = make_user()
    add_member(scene.project, editor.email, "editor")
    new, look = (
        reverse(f"reports:{name}", args=[scene.project.slug]) for name in ("hand_over_bill", "bills")
    )
    text = io.BytesIO((",".join(scene.cur()) + "\r\n" + ",".join(scene.cur().values()) + "\r\n").encode())
    text.name = "november.csv"
    client.force_login(editor)
    assert client.post(new, {"file": text}).status_code == 403
    assert "Import a bill" not in client.get(look).content.decode()
    client.force_login(scene.owner)
    client.post(new)
    assert not CloudBill.objects.exists()
    text.seek(0)
    client.post(new, {"file": text})
    bill = CloudBill.objects.get()
    assert (bill.name, bill.state) == ("november.csv", FileState.QUEUED)
    bill_reading.BILL_READING.run(bill.pk)
    page = client.get(look).content.decode()
    assert "Report: 1 of 1 lines" in page
    assert exact_usd(scene.metered)
