"""A report as FOCUS 1.2, the FinOps Foundation's common form of bills: a row for each hour, job and thing bought.

What could not be metered is an Adjustment: it is booked without a quantity. Columns of our own begin with x_.
Where a cloud's bill is there, BilledCost and EffectiveCost are its amount, by shares of what we metered; ListCost and
ContractedCost stay what we metered, at list prices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import Case, When
from django.db.models.fields.json import KT

from cloud.money.billing.price_book import PriceBook, UnknownSku
from cloud.platforms.aws.functions import function_name
from webapp.connections.models import Connection
from webapp.jobs.billing.cost_csv import harmless
from webapp.money.amounts import exact_usd
from webapp.money.models import RENT
from webapp.reports.bills.billed import BilledScope
from webapp.reports.cells import UtcHour, settled
from webapp.reports.cost_query import CostPart, known_by
from webapp.reports.files.csv_file import LINES_AT_ONCE, text_of
from webapp.reports.files.focus_rules import rules
from webapp.reports.job_facts import JobFacts
from webapp.reports.report_query import DayRange, month_of
from webapp.reports.sold_services import SoldService, billed_service, focus_unit, service_of
from webapp.reports.table import Costs
from webapp.resources.models import Holding, HoldingKind


class Resource(NamedTuple):
    id: str
    name: str
    type: str


class BillingAccount(NamedTuple):
    """The account of a connection, and the beginning of the names in it."""

    id: str
    name: str
    prefix: str


class JobResources:
    """The resources of one job. Simulated clouds and users' own machines have none.

    `account` is None for a connection that was removed: which names began there is not known any more.
    """

    def __init__(self, facts: JobFacts, account: BillingAccount | None) -> None:
        self._function: Resource | None = None
        self._rented: dict[str, Resource] = {}
        if not facts.connection:
            return
        if facts.function_memory_mb and account is not None:
            name = function_name(account.prefix, facts.function_memory_mb)
            arn = f"arn:aws:lambda:{facts.region}:{account.id}:function:{name}"
            self._function = Resource(arn, name, "Function")
        held = Holding.objects.filter(job_id=facts.id).exclude(provider_id="")
        for epoch, which, provider_id, name, kind in held.values_list(
            "epoch", "facts__resource", "provider_id", "name", "kind"
        ):
            self._rented[rented(epoch, which)] = Resource(provider_id, name, HoldingKind(kind).label)

    def of(self, sku: str, rent: str) -> Resource | None:
        """The resource of a line of this SKU. `rent`: the key from `rented`, empty for a call."""
        if rent:
            return self._rented.get(rent)
        return self._function if sku.startswith("lambda.") else None


def rented(epoch: int, resource: str) -> str:
    """The key of a rented resource. It holds the epoch, as each run of a job numbers its resources from one."""
    return f"{epoch} {resource}"


OWN_COLUMNS = (
    "x_JobId",
    "x_JobName",
    "x_SeedGroupId",
    "x_Algorithm",
    "x_Subject",
    "x_ActorCount",
    "x_Progress",
    "x_Score",
    "x_ScoredBy",
    "x_CostBasis",
    "x_Prices",
    *("x_EnvironmentId", "x_EnvSteps", "x_MeanReturn"),  # the first names of three, for one release
)
_READ_AT_ONCE = 2000


@dataclass
class _Bought:
    """What one job bought of one thing within one hour. `billed`: its share of the cloud's bill, where there is one."""

    picodollars: int = 0
    quantity: Decimal = field(default_factory=Decimal)
    billed: int | None = None


def pieces(costs: Costs, on_progress: Callable[[int], None] = lambda rows: None) -> Iterator[str]:
    """The file in pieces of text. `on_progress` gets the number of charges read."""
    columns = [*rules().names, *OWN_COLUMNS]
    yield text_of([columns])
    accounts = _accounts(costs)
    done = 0
    for facts in sorted(costs.facts.values(), key=lambda facts: (facts.project, facts.id)):
        bought, read = _bought(costs, facts)
        _share_bills(costs, facts, bought)
        done += read
        resources = JobResources(facts, accounts.get(facts.connection))
        rows: list[list[Any]] = []
        for (hour, basis, sku, unit, rent), line_sum in sorted(bought.items()):
            document = _row(facts, accounts, hour, basis, sku, unit, line_sum)
            document |= _of_resource(resources.of(sku, rent))
            rows.append([harmless_of(document.get(name)) for name in columns])
            if len(rows) == LINES_AT_ONCE:
                yield text_of(rows)
                rows = []
        yield text_of(rows)
        on_progress(done)
    yield text_of(
        [harmless_of(document.get(name)) for name in columns]
        for document in (_unmetered(part, accounts) for part in costs.reading.unmetered)
    )


def harmless_of(cell: Any) -> str:
    """The cell as text that no spreadsheet runs as a formula. Amounts may begin with a minus, texts may not."""
    return f"{cell:f}" if isinstance(cell, Decimal) else harmless(cell)


def _accounts(costs: Costs) -> dict[str, BillingAccount]:
    """The account of each connection that jobs ran on, by connection id."""
    wanted = {facts.connection for facts in costs.facts.values()}
    accounts = Connection.objects.filter(pk__in=wanted).values_list("pk", "account_id", "name", "prefix")
    return {pk: BillingAccount(account or pk, name, prefix) for pk, account, name, prefix in accounts}


Bought = dict[tuple[str, str, str, str, str], _Bought]


def _bought(costs: Costs, facts: JobFacts) -> tuple[Bought, int]:
    """What a job bought, by hour, basis, SKU, unit and rented resource; and the number of its charges."""
    bought: Bought = {}
    read = 0
    charges = settled(costs.question).filter(account__job_id=facts.id).annotate(hour=UtcHour("resolved_at"))
    # Only rent names its resource. Parsing the usage of every call would take far longer than reading the charges.
    of_rent = Case(When(kind=RENT, then=KT("usage__resource")), default=None)
    fields = ("hour", "basis", "settled_picodollars", "lines", "epoch", "of_rent")
    rows = charges.annotate(of_rent=of_rent).values_list(*fields)
    for hour, basis, amount, lines, epoch, resource in rows.iterator(_READ_AT_ONCE):
        read += 1
        rent = rented(epoch, resource) if resource else ""
        rest = amount
        for line in lines:
            rest -= line["picodollars"]
            line_sum = bought.setdefault((hour, basis, line["sku"], line["unit"], rent), _Bought())
            line_sum.picodollars += line["picodollars"]
            line_sum.quantity += Decimal(line["quantity"])
        if rest:
            bought.setdefault((hour, basis, "", "", rent), _Bought()).picodollars += rest
    return bought, read


def _share_bills(costs: Costs, facts: JobFacts, bought: Bought) -> None:
    """Give each item its share of the bill that covers it, and drop items outside the question."""
    wanted, sharings = costs.question.service, costs.reading.billed.sharings()
    for key in sorted(bought):
        hour, _, sku, *_ = key
        one, service = bought[key], billed_service(sku, facts.provider).name
        scope = BilledScope(facts.project_id, date.fromisoformat(hour[:10]), service)
        one.billed = sharings.of(scope, facts.id, one.picodollars)
        if wanted and wanted != (service if one.billed is not None else service_of(sku, facts.provider).name):
            del bought[key]


def _row(
    facts: JobFacts,
    accounts: dict[str, BillingAccount],
    hour: str,
    basis: str,
    sku: str,
    unit: str,
    line_sum: _Bought,
) -> dict[str, Any]:
    start = datetime.fromisoformat(f"{hour}:00:00").replace(tzinfo=UTC)
    month = month_of(start.date())
    name_it = service_of if line_sum.billed is None else billed_service
    service = name_it(sku, facts.provider)
    return {
        "BillingPeriodStart": _moment(month.start),
        "BillingPeriodEnd": _moment(month.end),
        "ChargePeriodStart": _moment(start),
        "ChargePeriodEnd": _moment(start + timedelta(hours=1)),
        **_whose(facts, accounts),
        **_what(facts, service, sku),
        **_how_much(facts, sku, unit, line_sum),
        **_own(facts, known_by(basis) if line_sum.billed is None else "billed"),
    }


def _unmetered(part: CostPart, accounts: dict[str, BillingAccount]) -> dict[str, Any]:
    """A row of a day for an amount of a bill without any metered use."""
    service = part.service or billed_service("", part.facts.provider)
    period, day = month_of(part.day), DayRange(part.day, part.day)
    return {
        "BillingPeriodStart": _moment(period.start),
        "BillingPeriodEnd": _moment(period.end),
        "ChargePeriodStart": _moment(day.start),
        "ChargePeriodEnd": _moment(day.end),
        **_whose(part.facts, accounts),
        **_what(part.facts, service, ""),
        **_how_much(part.facts, "", "", _Bought(billed=part.picodollars)),
        **_own(part.facts, part.basis),
        "ChargeDescription": f"On the cloud's bill, and metered by no call, {part.facts.id or part.facts.project}",
    }


def _whose(facts: JobFacts, accounts: dict[str, BillingAccount]) -> dict[str, Any]:
    account = accounts.get(facts.connection) or BillingAccount(facts.cloud, "", "")
    return {
        "BillingAccountId": account.id,
        "BillingAccountName": account.name,
        "BillingAccountType": "Cloud account" if account.name else "Place",
        "BillingCurrency": "USD",
        "SubAccountId": f"project-{facts.project_id}",
        "SubAccountName": facts.project,
        "SubAccountType": "Project",
    }


def _what(facts: JobFacts, service: SoldService, sku: str) -> dict[str, Any]:
    # Money that no one pays must not look like a provider's in a reader's sums.
    unreal = "" if facts.prices == "actual" else f" ({facts.prices})"
    issuer = f"{service.provider}{unreal}"
    tags = {"project": facts.project, "job": facts.name, "user": facts.user, "algorithm": facts.algorithm}
    return {
        **dict.fromkeys(("InvoiceIssuerName", "ProviderName", "PublisherName"), issuer),
        "ServiceName": service.name,
        "ServiceCategory": service.category,
        "ServiceSubcategory": service.subcategory,
        "RegionId": facts.region,
        "RegionName": facts.region,
        "ChargeCategory": "Usage" if sku else "Adjustment",
        "ChargeFrequency": "Usage-Based",
        "ChargeDescription": f"{sku or 'Booked in full: it could not be metered'}, {facts.id}",
        "Tags": json.dumps({**tags, "environment": facts.subject, **dict.fromkeys(facts.tags, "")}),
    }


def _of_resource(resource: Resource | None) -> dict[str, Any]:
    if resource is None:
        return {}
    return {"ResourceId": resource.id, "ResourceName": resource.name, "ResourceType": resource.type}


def _how_much(facts: JobFacts, sku: str, unit: str, line_sum: _Bought) -> dict[str, Any]:
    metered = Decimal(exact_usd(line_sum.picodollars))
    cost = metered if line_sum.billed is None else Decimal(exact_usd(line_sum.billed))
    costs: dict[str, Any] = {
        **dict.fromkeys(("BilledCost", "EffectiveCost"), cost),
        **dict.fromkeys(("ListCost", "ContractedCost"), metered),
    }
    if not sku:
        return costs
    price = _list_price(sku, facts.region)
    quantity = Decimal(f"{line_sum.quantity.normalize():f}")
    return {
        **costs,
        **dict.fromkeys(("PricingQuantity", "ConsumedQuantity"), quantity),
        **dict.fromkeys(("PricingUnit", "ConsumedUnit"), focus_unit(unit)),
        **dict.fromkeys(("ListUnitPrice", "ContractedUnitPrice"), price),
        "PricingCategory": "Standard",
        "SkuId": sku,
        "SkuMeter": focus_unit(unit),
        "SkuPriceId": f"{_whose_price(sku, facts.region)}{sku}/{facts.region or 'here'}",
    }


def _list_price(sku: str, region: str) -> Decimal | None:
    """The price in the price book; None if it has none, such as a user's own machine."""
    try:
        return Decimal(f"{PriceBook.load().row(sku, region).price:f}")
    except UnknownSku:
        return None


def _whose_price(sku: str, region: str) -> str:
    """A prefix for the ids of prices that the operator gave."""
    return "own:" if PriceBook.load().own([sku], region) else ""


def _own(facts: JobFacts, basis: str) -> dict[str, Any]:
    score = None if facts.score is None else Decimal(f"{facts.score:.6g}")
    return {
        "x_JobId": facts.id,
        "x_JobName": facts.name,
        "x_SeedGroupId": "; ".join(facts.groups),
        "x_Algorithm": facts.algorithm,
        "x_Subject": facts.subject,
        "x_ActorCount": facts.actors,
        "x_Progress": facts.total_progress,
        "x_Score": score,
        "x_ScoredBy": facts.scored_by or None,
        "x_CostBasis": basis,
        "x_Prices": facts.prices,
        "x_EnvironmentId": facts.subject,
        "x_EnvSteps": facts.total_progress,
        "x_MeanReturn": score,
    }


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"
