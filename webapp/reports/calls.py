"""Single calls and slices of rent, one job after the other, in the order of their reservation. Nothing is held back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any, NamedTuple

from webapp.reports.cells import UtcSecond, settled
from webapp.reports.job_facts import JobFacts
from webapp.reports.sold_services import service_of
from webapp.reports.table import Costs

_AT_ONCE = 2000
_FIELDS = ("at", "round_no", "epoch", "name", "kind", "basis", "settled_picodollars")


class SettledCall(NamedTuple):
    """One charge. `at`: when it was settled, as 2026-01-31T23:59:59Z. `basis`: estimated, metered or billed."""

    facts: JobFacts
    at: str
    round_no: int
    epoch: int
    name: str
    kind: str
    basis: str
    picodollars: int


def calls(costs: Costs) -> Iterator[SettledCall]:
    """Each charge that the question is about. With a filter on services, only what that service took of it."""
    wanted = costs.question.service
    fields = (*_FIELDS, "lines") if wanted else _FIELDS
    ordered = sorted(costs.facts.values(), key=lambda facts: (facts.project, facts.name, facts.id))
    for facts in ordered:
        charges = settled(costs.question).filter(account__job_id=facts.id)
        rows = charges.annotate(at=UtcSecond("resolved_at")).order_by("pk").values_list(*fields)
        bases: dict[tuple[str, str], str] = {}
        for at, round_no, epoch, name, kind, booked, amount, *lines in rows.iterator(_AT_ONCE):
            if wanted:
                amount = _part(lines[0], amount, wanted, facts.provider)
                if not amount:
                    continue
            basis = bases.get((at[:10], booked))
            if basis is None:
                basis = bases[at[:10], booked] = costs.basis(facts, date.fromisoformat(at[:10]), booked)
            yield SettledCall(facts, at, round_no, epoch, name, kind, basis, amount)


def _part(lines: list[dict[str, Any]], amount: int, service: str, provider: str) -> int:
    """What a service took of a charge; what no line explains is a service of its own."""
    sold = [(service_of(line["sku"], provider).name, line["picodollars"]) for line in lines]
    rest = amount - sum(part for _, part in sold)
    return sum(part for name, part in (*sold, (service_of("", provider).name, rest)) if name == service)
