"""FOCUS 1.2: our files keep its rules, our checker finds what does not; the foundation's validator agrees on 1.0."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from cloud.platforms.aws.functions import function_name
from tests.factories import make_connection, make_project, make_running_job, make_spec, make_user
from tests.webapp.reports.focus_check import problems
from tests.webapp.settled import DAY, lambda_lines, many_charges, settle
from webapp.connections.models import Connection
from webapp.jobs.models import Job
from webapp.money.models import Charge
from webapp.reports.files import focus_file
from webapp.reports.files.focus_rules import rules
from webapp.reports.report_query import Question
from webapp.reports.table import Costs
from webapp.resources.models import Holding

pytestmark = pytest.mark.django_db(transaction=True)
_VALIDATOR = Path(settings.BASE_DIR) / ".venv-focus" / "bin" / "focus-validator"


def exported() -> str:
    """Calls of two hours, metered and not, and the rent of a machine."""
    owner = make_user()
    project = make_project(owner)
    job, epoch = make_running_job(project=project, user=owner, spec=make_spec("hopper-simulated"))
    many_charges([job], 120, DAY, timedelta(hours=1))
    settle(job, epoch, "unknown", assumed=5, at=DAY)
    question = Question(
        project=project.pk, first_day=DAY.date(), last_day=DAY.date(), prices="simulated", by="call"
    )
    return "".join(focus_file.pieces(Costs(question)))


@pytest.fixture
def text() -> str:
    return exported()


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_our_file_keeps_the_rules(text: str) -> None:
    assert problems(io.StringIO(text)) == []
    rows = _rows(text)
    assert {row["ChargePeriodStart"] for row in rows} == {"2026-11-03T10:00:00Z", "2026-11-03T11:00:00Z"}
    assert {row["BillingPeriodStart"] for row in rows} == {"2026-11-01T00:00:00Z"}
    assert {row["ProviderName"] for row in rows} == {"AWS (simulated)"}, (
        "no provider's name on money no one pays"
    )
    usage = [row for row in rows if row["SkuId"] == "lambda.duration.x86"]
    assert {row["PricingUnit"] for row in usage} == {"GB-Seconds"}
    assert {row["ServiceSubcategory"] for row in usage} == {"Serverless Compute"}
    assert json.loads(usage[0]["Tags"])["algorithm"] == "ppo"
    assert {row["x_EnvironmentId"] for row in rows} == {"Hopper-v5"}
    unmetered = [row for row in rows if row["ChargeCategory"] == "Adjustment"]
    assert unmetered
    assert all(row["PricingQuantity"] == row["SkuId"] == "" for row in unmetered)
    assert {row["x_CostBasis"] for row in unmetered} == {"estimated"}


def test_what_the_account_knows_by_name_is_named() -> None:
    owner = make_user()
    project = make_project(owner)
    connection = make_connection(project, owner)
    Connection.objects.filter(pk=connection.pk).update(account_id="123456789012")
    job, epoch = make_running_job(project=project, user=owner)
    platform = {"kind": "aws_lambda", "connection": connection.pk, "region": "eu-west-1"}
    Job.objects.filter(pk=job.pk).update(spec={**job.spec, "platform": platform})
    ready = f"arn:aws:lambda:eu-west-1:123456789012:function:{function_name(connection.prefix, 1024)}:7"
    Holding.objects.create(
        connection=connection,
        job=job,
        epoch=epoch,
        kind="provisioned",
        name=f"{function_name(connection.prefix, 1024)}:7",
        provider_id=ready,
        state="gone",
        facts={"resource": "provisioned"},
        **dict.fromkeys(("intended_at", "since", "expires_at", "ended_at"), DAY),
    )
    settle(job, epoch, "call", lambda_lines(700))
    settle(job, epoch, "rent-provisioned-1", lambda_lines(9000)[:1], kind="rent")
    Charge.objects.filter(name="rent-provisioned-1").update(usage={"resource": "provisioned"})
    settle(job, epoch, "rent-other-1", lambda_lines(500)[:1], kind="rent")
    Charge.objects.filter(name="rent-other-1").update(usage={"resource": "other"})
    question = Question(project=project.pk, first_day=DAY.date(), last_day=DAY.date(), by="call")
    text = "".join(focus_file.pieces(Costs(question)))
    assert problems(io.StringIO(text)) == []
    found = {(row["SkuId"], row["ResourceId"], row["ResourceType"]) for row in _rows(text)}
    size = job.spec["training"]["rollout"]["memory_mb"]
    function = f"arn:aws:lambda:eu-west-1:123456789012:function:{function_name(connection.prefix, size)}"
    assert found == {
        ("lambda.duration.x86", function, "Function"),
        ("lambda.request", function, "Function"),
        ("lambda.duration.x86", ready, "Functions kept ready"),
        ("lambda.duration.x86", "", ""),
    }


def _without(column: str) -> Callable[[list[dict[str, Any]]], None]:
    def spoil(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            del row[column]

    return spoil


def spoilt(column: str, value: str) -> Callable[[list[dict[str, Any]]], None]:
    return lambda rows: rows[0].update({column: value})


def problems_of(text: str, spoil: Callable[[list[dict[str, Any]]], None]) -> list[str]:
    """What the checker finds in our file once its rows are spoilt."""
    rows: list[dict[str, Any]] = [row for row in _rows(text) if row["SkuId"] == "lambda.duration.x86"]
    spoil(rows)
    out = io.StringIO()
    writer = csv.DictWriter(out, rows[0].keys())
    writer.writeheader()
    writer.writerows(rows)
    return problems(io.StringIO(out.getvalue()))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (_without("ServiceCategory"), "The column ServiceCategory is missing"),
        (spoilt("BilledCost", ""), "BilledCost is empty"),
        (spoilt("BilledCost", "+1.0"), "no decimal number"),
        (spoilt("BilledCost", "1,000"), "no decimal number"),
        (spoilt("BillingAccountName", "N/A"), "an empty cell"),
        (spoilt("BillingCurrency", "dollars"), "no currency's code"),
        (spoilt("ChargePeriodStart", "2026-11-03 10:00:00"), "no moment like"),
        (
            spoilt("ChargePeriodEnd", "2026-11-03T10:00:00Z"),
            "ChargePeriodStart is not before ChargePeriodEnd",
        ),
        (spoilt("ChargeCategory", "Cost"), "may be Usage"),
        (spoilt("ServiceCategory", "Computing"), "AI and Machine Learning"),
        (spoilt("ServiceSubcategory", "Object Storage"), "not within Compute"),
        (spoilt("SkuId", ""), "SkuId is empty"),
        (spoilt("PricingUnit", ""), "empty or neither"),
        (spoilt("ResourceName", "a function"), "ResourceName is filled and ResourceId is not"),
        (spoilt("Tags", "team=a"), "Tags is no JSON object"),
        (spoilt("ListUnitPrice", "2"), "ListCost is not ListUnitPrice × PricingQuantity"),
    ],
)
def test_the_checker_finds_it(text: str, spoil: Callable[[list[dict[str, Any]]], None], words: str) -> None:
    found = problems_of(text, spoil)
    assert any(words in problem for problem in found), found


def test_own_columns_come_last_and_begin_with_x() -> None:
    names = rules().names
    assert [column.name for column in rules().column if column.level == "mandatory"] == [
        name for name in names if name in _MANDATORY
    ]
    assert len(_MANDATORY) == 21
    for header, words in (
        ([*names, "JobId"], "one of our own begins with x_"),
        (["x_JobId", *names], "come after those of FOCUS"),
        ([*names, "Tags"], "there twice"),
    ):
        assert any(words in problem for problem in problems(io.StringIO(",".join(header) + "\r\n")))


_MANDATORY = {
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd"),
    *("BillingPeriodStart", "ChargeCategory", "ChargeClass", "ChargeDescription", "ChargePeriodEnd"),
    *(
        "ChargePeriodStart",
        "ContractedCost",
        "EffectiveCost",
        "InvoiceIssuerName",
        "ListCost",
        "PricingQuantity",
    ),
    *("PricingUnit", "ProviderName", "PublisherName", "ServiceCategory", "ServiceName"),
}

_MISNAMED = {
    "InvoiceIssuerName": "InvoiceIssuer",
    "ProviderName": "Provider",
    "PublisherName": "Publisher",
    "ResourceId": "ResourceID",
}
"""What focus-validator 1.0.0 calls columns that the specification of 1.0 and 1.2 names as on the left."""
_BROKEN = ("BillingCurrency_IsCurrencyCode", "SkuPriceId_Nullable")
"""Rules that it cannot run: one lacks its file of currencies, the other looks at a column that 1.0 does not have."""


@pytest.mark.slow
@pytest.mark.skipif(not _VALIDATOR.exists(), reason="`make focus-setup` installs the validator on its own")
def test_the_foundations_validator_accepts_it_by_the_rules_of_1_0(text: str, tmp_path: Path) -> None:
    rows = _rows(text)
    assert rows
    file = tmp_path / "report.csv"
    with file.open("w", newline="") as out:
        writer = csv.DictWriter(out, [_MISNAMED.get(name, name) for name in rows[0]])
        writer.writeheader()
        writer.writerows({_MISNAMED.get(name, name): value for name, value in row.items()} for row in rows)
    command = [_VALIDATOR, "--data-file", file, "--validate-version", "1.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert "Validation" in done.stdout, done.stderr
    assert set(re.findall(r"^(\w+) failed:", done.stdout, re.MULTILINE)) <= set(_BROKEN), done.stdout
