"""A later bill of the same account and month is the month's bill: what the earlier one said is replaced, not added to.

Clouds write a month's bill again each day. AWS's line ids are others each time, and FOCUS and Azure have none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from django.urls import reverse

from tests.webapp.reports.test_cloud_bills import Scene
from webapp.alerts.models import Alert, AlertKind, AlertState
from webapp.reports.models import BilledLine, BilledPeriod, CloudBill, FileState
from webapp.reports.table import Costs

pytestmark = pytest.mark.django_db(transaction=True)
Line = dict[str, str]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def cur(
    day: int, usd: str, *, printed: int, account: str = "123456789012", month: str = "11", **more: str
) -> Line:
    """A line as the report that was written on day `printed` has it: its id is of that day alone."""
    return {
        "identity/LineItemId": f"printed-{printed}-{day}-{usd}",
        "identity/TimeInterval": f"2026-{month}-{day:02}T00:00:00Z/2026-{month}-{day + 1:02}T00:00:00Z",
        "bill/BillingPeriodStartDate": f"2026-{month}-01T00:00:00Z",
        "bill/PayerAccountId": "999999999999",
        "lineItem/UsageAccountId": account,
        "lineItem/LineItemType": "Usage",
        "lineItem/UsageStartDate": f"2026-{month}-{day:02}T10:00:00Z",
        "lineItem/ProductCode": "AWSLambda",
        "lineItem/UsageType": "Lambda-GB-Second",
        "lineItem/ResourceId": "arn",
        "lineItem/CurrencyCode": "USD",
        "lineItem/UnblendedCost": usd,
        "resourceTags/user:app": "starling",
        **more,
    }


def focus(day: int, usd: str, *, printed: int) -> Line:
    return {
        "BillingAccountId": "999999999999",
        "SubAccountId": "123456789012",
        "BillingPeriodStart": "2026-11-01T00:00:00Z",
        "BillingPeriodEnd": "2026-12-01T00:00:00Z",
        "ChargePeriodStart": f"2026-11-{day:02}T00:00:00Z",
        "BilledCost": usd,
        "BillingCurrency": "USD",
        "ServiceName": "AWS Lambda",
        "ProviderName": "AWS",
        "ChargeCategory": "Usage",
        "ChargeDescription": f"{usd} USD as of {printed}",
        "ResourceId": "arn",
        "Tags": '{"app": "starling"}',
    }


def azure(day: int, usd: str, *, printed: int) -> Line:
    return {
        "SubscriptionId": "64e355d7-997c-491d-b0c1-8414dccfcf42",
        "billingPeriodStartDate": "11/01/2026",
        "date": f"11/{day:02}/2026",
        "meterCategory": "Container Instances",
        "meterName": "Standard vCPU Duration",
        "consumedService": "Microsoft.ContainerInstance",
        "resourceId": "/subscriptions/s/starling",
        "quantity": f"{printed}.{day}",
        "chargeType": "Usage",
        "costInUsd": usd,
        "tags": '"app": "starling"',
    }


def billed(scene: Scene) -> str:
    amount = sum(BilledLine.objects.filter(project=scene.project).values_list("picodollars", flat=True))
    return f"{amount / 10**12:.2f}"


@pytest.mark.parametrize("write", [cur, focus, azure])
def test_bills_of_two_consecutive_days_are_one_month(scene: Scene, write: Callable[..., Line]) -> None:
    first = scene.read(write(1, "1.20", printed=3), write(2, "1.80", printed=3), name="of the 3rd.csv")
    assert billed(scene) == "3.00"
    days = [write(1, "1.20", printed=4), write(2, "1.85", printed=4), write(3, "0.05", printed=4)]
    second = scene.read(*days, name="of the 4th.csv")
    assert (second.state, billed(scene)) == (FileState.READY, "3.10")
    costs = Costs(scene.question)
    assert costs.table().total.amounts.billed == 3_100_000_000_000
    assert not BilledLine.every.filter(period__bill=first).exists(), "nothing is kept that does not count"
    assert list(
        BilledPeriod.objects.order_by("bill").values_list("bill", "first_day", "line_count", "replaced_by")
    ) == [
        (first.pk, date(2026, 11, 1), 2, second.pk),
        (second.pk, date(2026, 11, 1), 3, None),
    ]


def test_the_page_and_the_api_say_what_a_bill_replaced(scene: Scene, client: Any) -> None:
    scene.read(cur(1, "3", printed=2), name="november-2.csv")
    scene.read(cur(1, "3", printed=3), cur(2, "0.10", printed=3), name="november-3.csv")
    client.force_login(scene.owner)
    page = client.get(reverse("reports:bills", args=[scene.project.slug])).content.decode()
    period = "AWS, account 123456789012, November 2026"
    assert re.search(rf"{period}: \$3\.10 in 2 lines, .* \$3\.00 in 1 line of november-2\.csv", page)
    assert re.search(rf"{period}: \$3\.00 in 1 line.* november-3\.csv", page)


def test_the_two_layouts_of_one_cloud_are_one_bill(scene: Scene) -> None:
    scene.read(cur(1, "3", printed=2))
    scene.read(focus(1, "3.10", printed=3))
    assert billed(scene) == "3.10"


def test_accounts_and_months_that_a_file_does_not_have_stay(scene: Scene) -> None:
    other = {"account": "210987654321"}
    scene.read(
        cur(1, "1", printed=5), cur(1, "2", printed=5, **other), cur(1, "4", printed=5, month="10"), name="a"
    )
    scene.read(cur(2, "8", printed=6, **other), cur(1, "8", printed=6, **other), name="b.csv")
    assert billed(scene) == "21.00"
    assert {(one.account, one.first_day.month) for one in BilledPeriod.objects.filter(replaced_by=None)} == {
        ("123456789012", 11),
        ("123456789012", 10),
        ("210987654321", 11),
    }


S3 = {"lineItem/ProductCode": "AmazonS3"}


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (
            [cur(1, "3", printed=4), cur(2, "0.5", printed=4, **S3)],
            "older",
        ),
        (
            [cur(1, "4", printed=5), cur(4, "1", printed=5)],
            "Amazon S3",
        ),
        (
            [cur(3, "4", printed=5), cur(4, "1", printed=5, **S3)],
            "it begins on 2026-11-03, and stored.csv on 2026-11-01.",
        ),
        (
            [cur(1, "2", printed=5), cur(4, "0.2", printed=5, **S3)],
            "it bills $2.20, and stored.csv $3.70.",
        ),
    ],
    ids=["older", "one service", "the last days", "one region"],
)
def test_a_bill_that_is_older_or_a_part_wins_only_if_asked_to(
    scene: Scene, client: Any, lines: list[Line], words: str
) -> None:
    stored = [cur(1, "3", printed=4), cur(2, "0.5", printed=4, **S3), cur(4, "0.2", printed=4)]
    scene.read(*stored, name="stored.csv")
    refused = scene.read(*lines, name="doubtful.csv")
    assert refused.state == FileState.FAILED
    assert words in refused.reason
    assert "Nothing was changed." in refused.reason
    assert billed(scene) == "3.70"
    assert BilledPeriod.objects.get().replaced_by is None

    scene.replace_anyway = True
    assert scene.read(*lines, name="doubtful.csv").pk == refused.pk
    wanted = sum(float(line["lineItem/UnblendedCost"]) for line in lines)
    assert billed(scene) == f"{wanted:.2f}"


def test_owners_ask_for_it_with_a_tick_on_the_form(scene: Scene, client: Any) -> None:
    client.force_login(scene.owner)
    new = reverse("reports:hand_over_bill", args=[scene.project.slug])
    for name, tick in (("a.csv", {}), ("b.csv", {"replace_anyway": "on"})):
        file = scene.file(cur(1, name[0], printed=1))
        file.name = name
        client.post(new, {"file": file, **tick})
    assert dict(CloudBill.objects.values_list("name", "replace_anyway")) == {"a.csv": False, "b.csv": True}


def test_a_bill_that_names_no_account_replaces_that_clouds_month(scene: Scene) -> None:
    """CUR 2.0 has the columns that were chosen for it."""
    scene.read(cur(1, "3", printed=2))
    scene.read(cur(1, "3.10", printed=3) | {"lineItem/UsageAccountId": "", "bill/PayerAccountId": ""})
    assert billed(scene) == "3.10"
    scene.read(cur(1, "3.20", printed=4))
    assert billed(scene) == "3.20"


def test_a_months_bills_have_one_alert(scene: Scene) -> None:
    """Each day's bill covers one day more, and is about the same month."""
    scene.read(cur(3, "3", printed=3))
    assert Alert.objects.get(kind=AlertKind.BILL).state == AlertState.OPEN
    scene.read(cur(3, "3", printed=4), cur(4, "1", printed=4))
    assert Alert.objects.get(kind=AlertKind.BILL).state == AlertState.OPEN
    scene.replace_anyway = True
    scene.read(cur(3, "1.01", printed=5), cur(4, "0", printed=5))
    assert Alert.objects.get(kind=AlertKind.BILL).state == AlertState.RESOLVED
