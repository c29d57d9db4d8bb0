"""The full bill of a run by part: sampling, learning, waiting, failures, and so on.

Pure arithmetic over settlements. Each line of the ledger is divided among parts by the time that it paid for. What
cannot be divided goes to one of them, so the parts sum to the ledger's total to the last picodollar.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from cloud.money.billing.parts import PartKey
from cloud.money.billing.work import CallRecord
from cloud.money.billing.work_file import RunSegment
from cloud.money.rents.proration import Stretch, shares_of_time
from cloud.timing.virtual_time import to_ns
from training.calls import KINDS
from training.calls.kind import AnyKind
from training.engine.ports import PriceLine, Settlement

_OVERHEAD_SKU = "paper.vm_overhead"
_STORAGE_SKUS = "s3."
_REQUEST_UNIT = "request"
_BY_ITSELF: dict[str, PartKey] = {"provisioned": "provisioned", "cache": "cache"}


@dataclass(frozen=True)
class BillContext:
    """What is needed from a run's platform to divide its bill.

    `actor_slots`: actors in a resource that is rented as one, "actors" or "workers". `all_on_learner`: the learner's
    machine runs the actors as well. `hessian_share`: the share of an update's time spent on Hessian products.
    `decision_ns`: the time of a round's decision, where no clock measured it.
    """

    actor_slots: int = 1
    all_on_learner: bool = False
    hessian_share: Callable[[CallRecord], float] = lambda work: 0.0
    decision_ns: Callable[[CallRecord], int] = lambda work: 0


@dataclass
class FullBill:
    """Picodollars by part, the ledger's lines summed by SKU, and counts of calls. `time_s`: platform time."""

    parts: Counter[PartKey] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    time_s: float = 0.0
    _skus: dict[tuple[str, str], tuple[Decimal, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    @property
    def lines(self) -> tuple[PriceLine, ...]:
        """One line for each SKU. Amounts that were booked without lines are not included."""
        return tuple(
            PriceLine(sku, f"{quantity:f}", unit, picodollars)
            for (sku, unit), (quantity, picodollars) in sorted(self._skus.items())
        )

    def divide(self, amount: int, shares: Mapping[PartKey, int], whole: int, rest: PartKey) -> None:
        """Add `shares`/`whole` of an amount to each part, rounded down, and the remainder to `rest`."""
        whole = max(whole, sum(shares.values()), 1)
        left = amount
        for part, share in shares.items():
            mine = amount * share // whole
            self.parts[part] += mine
            left -= mine
        self.parts[rest] += left

    def note(self, settlement: Settlement) -> None:
        """Add its lines by SKU; an amount beyond its lines counts as unknown."""
        unexplained = settlement.picodollars
        for line in settlement.lines:
            unexplained -= line.picodollars
            quantity, picodollars = self._skus.get((line.sku, line.unit), (Decimal(0), 0))
            self._skus[line.sku, line.unit] = (
                quantity + Decimal(line.quantity),
                picodollars + line.picodollars,
            )
        self.parts["unknown"] += unexplained


@dataclass(frozen=True)
class PaidCall:
    """A call with its settlement; `done`: its result could be used; `dropped`: nothing was made of it."""

    work: CallRecord
    settlement: Settlement
    done: bool
    dropped: bool = False

    @property
    def kind(self) -> AnyKind:
        return KINDS[self.work.kind]

    @property
    def part(self) -> PartKey:
        if not self.done:
            return "failed"
        return "dropped" if self.dropped else self.kind.part.key

    def seconds(self, name: str) -> float:
        """Return one of the times in its usage; 0 if it was not measured."""
        return _seconds(self.settlement, name)

    @property
    def run_ns(self) -> int:
        return to_ns(self.seconds("run_s"))

    def divided(self, time_ns: int, bill_context: BillContext) -> dict[PartKey, int]:
        """Divide this much of its run by part. The parts sum to it; the remainder is the call's own part."""
        parts: dict[PartKey, int] = {}
        own = self.part
        if own == "actors" and self.seconds("environment_s") + self.seconds("inference_s") > 0:
            own = "transfer"
            parts["environment"] = self._share_ns("environment_s", time_ns, time_ns)
            parts["inference"] = self._share_ns("inference_s", time_ns, time_ns - parts["environment"])
        elif self.done and self.work.hessian_products:
            parts["detector"] = int(time_ns * bill_context.hessian_share(self.work))
        parts[own] = time_ns - sum(parts.values())
        return parts

    def _share_ns(self, name: str, time_ns: int, most_ns: int) -> int:
        """Return an actor's own measurement of a time, limited to the time that it had."""
        return min(most_ns, time_ns * to_ns(self.seconds(name)) // max(self.run_ns, 1))

    @property
    def stretch(self) -> Stretch:
        """When it ran, on the platform's clock."""
        end_ns = to_ns(self.seconds("landed_s") - self.seconds("transfer_s"))
        return Stretch(end_ns - self.run_ns, end_ns)


def full_bill(segments: Iterable[RunSegment], bill_context: BillContext) -> FullBill:
    """Return all settlements by part."""
    bill = FullBill()
    segments = list(segments)
    taken = _taken_for_versions(segments)
    for segment in segments:
        calls = [_unless_taken(call, taken) for call in paid_calls(segment)]
        rents = [settled for settled in segment.settlements if "resource" in settled.usage]
        for call in calls:
            _add_call(bill, call, bill_context)
        _add_rents(bill, rents, calls, bill_context)
        for settlement in segment.settlements:
            bill.note(settlement)
        bill.time_s += _time_s(calls, rents)
    return bill


def paid_calls(segment: RunSegment) -> list[PaidCall]:
    """Return the calls of a run segment in the order of their settlements. An attempt that was followed by another had
    failed.
    """
    paid = [settlement for settlement in segment.settlements if "work" in settlement.usage]
    last: dict[str, int] = {}
    for work in segment.works:
        last[work.name] = max(work.attempt, last.get(work.name, 0))
    return [
        PaidCall(work, settlement, _is_done(work, settlement, last[work.name]))
        for work, settlement in zip(segment.works, paid, strict=True)
    ]


def _taken_for_versions(segments: Iterable[RunSegment]) -> set[str]:
    """Return the tasks that a call which makes a version names as what it was made of, whichever process did them."""
    works = [work for segment in segments for work in segment.works]
    return {name for work in works if KINDS[work.kind].makes_version for name in work.after}


def _unless_taken(call: PaidCall, taken: set[str]) -> PaidCall:
    """Return the call as dropped if it learned something of which no version was made."""
    learned = call.kind.role == "learning" and not call.kind.makes_version
    return replace(call, dropped=True) if learned and call.work.name not in taken else call


def _is_done(work: CallRecord, settlement: Settlement, last_attempt: int) -> bool:
    if work.broken or work.cancelled or work.attempt < last_attempt:
        return False
    return settlement.usage.get("status", "done") == "done"


def _seconds(settlement: Settlement, name: str) -> float:
    value: Any = settlement.usage.get(name)
    return 0.0 if value is None else float(value)


def _time_s(calls: Sequence[PaidCall], rents: Sequence[Settlement]) -> float:
    begins = [call.seconds("sent_s") for call in calls] + [_seconds(rent, "from_s") for rent in rents]
    ends = [call.seconds("landed_s") for call in calls] + [_seconds(rent, "to_s") for rent in rents]
    return max(ends, default=0.0) - min(begins, default=0.0)


def _add_call(bill: FullBill, call: PaidCall, bill_context: BillContext) -> None:
    bill.counts["calls" if call.done else "failed_calls"] += 1
    bill.counts["cold_starts"] += bool(call.settlement.usage.get("cold_start"))
    for line in call.settlement.lines:
        if is_stored(line):
            bill.parts["storage"] += line.picodollars
        elif is_request(line):
            bill.parts["requests"] += line.picodollars
        else:
            shares, billed_ns = _shares_of_call(call, bill_context)
            bill.divide(line.picodollars, shares, billed_ns, rest=list(shares)[-1])


def _shares_of_call(call: PaidCall, bill_context: BillContext) -> tuple[dict[PartKey, int], int]:
    """Return how a call's billed time divides: its cold start and its run by part. The last part takes
    the remainder.
    """
    billed_ns = to_ns(call.seconds("billed_s"))
    shares: dict[PartKey, int] = {}
    if call.done and call.settlement.usage.get("cold_start"):
        shares["cold_starts"] = max(0, billed_ns - call.run_ns)
    return shares | call.divided(call.run_ns, bill_context), billed_ns


def _add_rents(
    bill: FullBill, rents: Sequence[Settlement], calls: Sequence[PaidCall], bill_context: BillContext
) -> None:
    """Divide the rent of rented resources by the calls that ran on them; the rest of the time is idle."""
    stood_ns: Counter[str] = Counter()
    for rent in rents:
        stood_ns[_place(rent)] += to_ns(_seconds(rent, "to_s")) - to_ns(_seconds(rent, "from_s"))
    each_its_own = any(str(rent.usage["resource"]).startswith("actor-") for rent in rents)
    stood_ns["actors"] *= 1 if each_its_own else bill_context.actor_slots
    on_learner = [call for call in calls if bill_context.all_on_learner or call.work.where == "learner"]
    shares = {
        "actors": _actor_shares([call for call in calls if call.work.where == "actor"], bill_context),
        "learner": _learner_shares(on_learner, bill_context),
    }
    for place, by_part in shares.items():
        bill.counts[f"{place}_stood_ms"] += stood_ns[place] // 10**6
        bill.counts[f"{place}_busy_ms"] += min(stood_ns[place], sum(by_part.values())) // 10**6
    for rent in rents:
        place = _place(rent)
        for line in rent.lines:
            if line.sku == _OVERHEAD_SKU:
                bill.parts["address_and_disk"] += line.picodollars
            elif place in shares:
                bill.divide(line.picodollars, shares[place], stood_ns[place], rest="idle")
            else:
                bill.parts[_BY_ITSELF.get(place, "idle")] += line.picodollars


def place_of_rent(resource: str) -> str:
    """Return the group of a rent: actors by machine or one by one, local workers, the learner, or a part of its own."""
    return "actors" if resource.startswith("actor") or resource == "workers" else resource


def is_stored(line: PriceLine) -> bool:
    """Whether the line pays for a payload that went by storage."""
    return line.sku.startswith(_STORAGE_SKUS)


def is_request(line: PriceLine) -> bool:
    """Whether the line is the fee of a call."""
    return line.unit == _REQUEST_UNIT


def _place(rent: Settlement) -> str:
    return place_of_rent(str(rent.usage["resource"]))


def _actor_shares(calls: Sequence[PaidCall], bill_context: BillContext) -> Counter[PartKey]:
    shares: Counter[PartKey] = Counter()
    for call in calls:
        shares.update(call.divided(call.run_ns, bill_context))
    return shares


def _learner_shares(calls: Sequence[PaidCall], bill_context: BillContext) -> Counter[PartKey]:
    """Divide the time of one machine: calls that run at the same moment share it equally, decisions included."""
    shares: Counter[PartKey] = Counter()
    for call, time_ns in zip(calls, shares_of_time([call.stretch for call in calls]), strict=True):
        shares.update(call.divided(time_ns, bill_context))
        if call.done:
            shares["scheduler"] += to_ns(call.seconds("decision_s")) or bill_context.decision_ns(call.work)
    return shares
