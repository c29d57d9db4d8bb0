"""Single calls and slices of rent, job by job, in the order of their reservation. They are never all in memory.

A cloud does not bill single calls: each call gets a share of the bill in proportion to what was metered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

from webapp.reports.bills.billed import BilledScope, Sharings
from webapp.reports.cells import UtcSecond, settled
from webapp.reports.cost_query import CostPart, known_by
from webapp.reports.job_facts import JobFacts
from webapp.reports.sold_services import billed_service, service_of
from webapp.reports.table import Costs

_AT_ONCE = 2000
_LEAST_CERTAIN_FIRST = ("estimated", "metered", "billed")
_FIELDS = ("at", "round_no", "epoch", "name", "kind", "basis", "settled_picodollars")


class SettledCall(NamedTuple):
    """One charge. `at`: when it was settled, as 2026-01-31T23:59:59Z. `basis`: estimated, metered or billed.

    `metered`: what Starling metered of it, if a bill covers it; otherwise None.
    """

    facts: JobFacts
    at: str
    round_no: int
    epoch: int
    name: str
    kind: str
    basis: str
    picodollars: int
    metered: int | None = None


def calls(costs: Costs) -> Iterator[SettledCall]:
    """Each charge of the question. With a filter on services, only that service's part of it.

    Amounts of a bill that no charge explains come last, with the kind "bill".
    """
    ordered = sorted(costs.facts.values(), key=lambda facts: (facts.project, facts.name, facts.id))
    by_line = bool(costs.question.service or costs.reading.billed)
    for facts in ordered:
        yield from _by_line(costs, facts) if by_line else _whole(costs, facts)
    yield from map(_unmetered, costs.reading.unmetered)


def _charges(costs: Costs, facts: JobFacts, *more: str) -> Iterator[tuple[Any, ...]]:
    charges = settled(costs.question).filter(account__job_id=facts.id)
    rows = charges.annotate(at=UtcSecond("resolved_at")).order_by("pk").values_list(*_FIELDS, *more)
    return iter(rows.iterator(_AT_ONCE))


def _whole(costs: Costs, facts: JobFacts) -> Iterator[SettledCall]:
    for at, round_no, epoch, name, kind, booked, amount in _charges(costs, facts):
        yield SettledCall(facts, at, round_no, epoch, name, kind, known_by(booked), amount)


def _by_line(costs: Costs, facts: JobFacts) -> Iterator[SettledCall]:
    """Charges split by line, as each line may belong to another service and may be billed or not."""
    sharings = costs.reading.billed.sharings()
    wanted = costs.question.service
    for at, round_no, epoch, name, kind, booked, amount, lines in _charges(costs, facts, "lines"):
        parts = list(_parts(lines, amount, facts, date.fromisoformat(at[:10]), known_by(booked), sharings))
        mine = [part for part in parts if wanted in ("", part[0])]
        if wanted and not any(part[2] or part[3] for part in mine):
            continue
        basis = ", ".join(sorted({part[1] for part in mine}, key=_LEAST_CERTAIN_FIRST.index))
        billed = [part[3] for part in mine if part[3] is not None]
        cost, metered = sum(part[2] for part in mine), sum(billed) if billed else None
        yield SettledCall(facts, at, round_no, epoch, name, kind, basis, cost, metered)


def _parts(
    lines: Sequence[dict[str, Any]], amount: int, facts: JobFacts, day: date, known: str, sharings: Sharings
) -> Iterator[tuple[str, str, int, int | None]]:
    """Service, basis, cost, and the metered amount if a bill covers it. Money that no line explains comes last."""
    bought = [(line["sku"], line["picodollars"]) for line in lines]
    rest = amount - sum(part for _, part in bought)
    for sku, part in (*bought, *([("", rest)] if rest or not bought else [])):
        service = billed_service(sku, facts.provider)
        charged = sharings.of(BilledScope(facts.project_id, day, service.name), facts.id, part)
        if charged is None:
            yield service_of(sku, facts.provider).name, known, part, None
        else:
            yield service.name, "billed", charged, part


def _unmetered(part: CostPart) -> SettledCall:
    name = part.service.name if part.service else ""
    return SettledCall(
        part.facts, f"{part.day}T00:00:00Z", 0, 0, name, "bill", part.basis, part.picodollars, part.metered
    )
