"""What a job came to, by the parts of its forecast: the bill divides the same money more finely, and otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from cloud.money.billing.full_bill import is_request, is_stored
from cloud.money.billing.parts import BillPart
from cloud.timing.forecasting.bill import forecast_parts, part_of_rent
from training.calls import KINDS
from training.engine.ports import Settlement

_UNRECORDED = BillPart("unrecorded", "Lost calls", "Booked in full, or as the cloud's log shows")


def outcome_parts() -> tuple[BillPart, ...]:
    """Return the parts of a forecast, and what no forecast foresees."""
    return (*forecast_parts(), _UNRECORDED)


def outcome_by_part(settlements: Iterable[Settlement]) -> dict[str, int]:
    """Return picodollars by part. They sum to what was booked."""
    costs: Counter[str] = Counter()
    for settlement in settlements:
        part = _part_of(settlement)
        unexplained = settlement.picodollars
        for line in settlement.lines:
            costs["requests" if is_request(line) or is_stored(line) else part] += line.picodollars
            unexplained -= line.picodollars
        costs[_UNRECORDED.key] += unexplained
    return {part: amount for part, amount in costs.items() if amount}


def _part_of(settlement: Settlement) -> str:
    work, resource = settlement.usage.get("work"), settlement.usage.get("resource")
    if isinstance(work, dict):
        return KINDS[str(work["kind"])].part.key
    return _UNRECORDED.key if resource is None else part_of_rent(str(resource))
