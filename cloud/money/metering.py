"""Any platform behind a ledger: no call starts without a reservation of its worst case, and all rent is paid."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cloud.formatting import display_usd
from cloud.money.billing.work import WorkWriter, work_of
from cloud.money.ledger import remaining_money
from cloud.money.pricing import Tariff
from cloud.money.rents.job import Rents
from cloud.money.rents.payer import LedgerPayer, RentsItsResources
from cloud.timing.virtual_time import NS, to_ns
from training.engine.messages import FAULTS_OF_THE_PLATFORM, BlobRef, Call, FaultCode, Outcome
from training.engine.ports import Ledger, Platform, Preparable, Reservation, Settlement
from training.engine.reports import Spend

_BATCH = 64
_DRAIN_S = 1.0
_DRAINS = 30
_REFUSED_BY_ACTOR = "refused_"


@dataclass(frozen=True)
class _Reserved:
    call: Call
    reservation: Reservation
    serial: int


class MeteredPlatform:
    """Implements `Platform` and `Metered` over another platform. Single-threaded, like its caller.

    Calls are held until the next `next`, `publish` or `cancel` and reserved in one batch; one that does not fit
    becomes an outcome "refused". Outcomes carry their cost. When rent cannot be paid everything stops: calls in
    flight are cancelled, rented resources are ended, and all later calls are refused.

    Every settlement of a call carries the record of its work, by which the run can be timed and priced again.
    `id_prefix` goes before the ids of all reservations, for ledgers that hold more than one run.
    """

    def __init__(self, platform: Platform, ledger: Ledger, tariff: Tariff, *, id_prefix: str = "") -> None:
        self._platform = platform
        self._ledger = ledger
        self._tariff = tariff
        self._id_prefix = id_prefix
        self._waiting: dict[str, Call] = {}
        self._in_flight: dict[str, _Reserved] = {}
        self._ready: deque[Outcome] = deque()
        self._unsettled: list[Settlement] = []
        self._unreleased: list[str] = []
        self._rents = Rents(tariff, ledger, id_prefix)
        self._actors_in_flight = 0
        self._works = WorkWriter()
        self._sent = 0
        self._round_no = 0
        self._stopped = ""
        self._closed = False
        if isinstance(platform, RentsItsResources):
            platform.set_payer(LedgerPayer(self._rents, platform.now_s, lambda: self._round_no, self._book))

    def publish(self, version: int, blob: bytes) -> BlobRef:
        self._send_waiting()
        return self._platform.publish(version, blob)

    def submit(self, call: Call) -> None:
        self._waiting[call.id] = call
        self._round_no = max(self._round_no, call.round_no)

    def next(self, timeout_s: float) -> Outcome | None:
        end_ns = to_ns(self.now_s()) + to_ns(timeout_s)
        while True:
            self._send_waiting()
            if self._ready:
                return self._ready.popleft()
            if not self._in_flight:
                self._book()
                return None
            # The clock must not pass the moment at which rent falls due, so the wait ends there.
            due_ns = self._rents.due_ns() or end_ns
            wait_ns = min(end_ns, due_ns) - to_ns(self.now_s())
            outcome = self._platform.next(max(0, wait_ns) / NS)
            if outcome is not None:
                return self._priced(outcome)
            if due_ns >= end_ns or to_ns(self.now_s()) < due_ns:
                return None

    def cancel(self, call_id: str) -> None:
        call = self._waiting.pop(call_id, None)
        if call is not None:
            self._ready.append(self._unsent(call, "cancelled", "cancelled before it was sent", "cancelled"))
            return
        self._send_waiting()
        self._platform.cancel(call_id)

    def now_s(self) -> float:
        return self._platform.now_s()

    def spend(self) -> Spend:
        self._book()
        accrued = self._rents.accrued(self.now_s())
        return self._ledger.spend().model_copy(update={"accrued_picodollars": accrued})

    def rent_ahead(self, for_s: float) -> int:
        """Return what must be reserved within the next `for_s` seconds if all rented resources are kept."""
        return self._rents.ahead(self.now_s(), for_s)

    def close(self) -> None:
        """Stop everything, book what was used, release the rest. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._drain()
        self._platform.close()
        self._rents.end(self.now_s())
        # A call without an outcome is billed in full, because it may have run to its deadline.
        for reserved in self._in_flight.values():
            self._settle_whole(reserved, self._lost(reserved))
        self._in_flight.clear()
        self._waiting.clear()
        self._book()

    def _send_waiting(self) -> None:
        """Pay rent that falls due, then reserve and send the calls that were submitted since."""
        calls, self._waiting = list(self._waiting.values()), {}
        self._pay_rent()
        if not calls:
            return
        if self._stopped or self._closed:
            self._refuse(calls, self._stopped or "the platform is closed")
            return
        self._book()
        if none := self._grow(calls):
            self._refuse(calls, none)
            return
        reservations = [
            Reservation(self._id_prefix + call.id, call.kind, call.round_no, self._tariff.worst_case(call))
            for call in calls
        ]
        granted = self._ledger.reserve(reservations)
        refused: list[_Reserved] = []
        for call, reservation, fits in zip(calls, reservations, granted, strict=True):
            self._sent += 1
            if not fits:
                refused.append(_Reserved(call, reservation, self._sent))
                continue
            self._in_flight[call.id] = _Reserved(call, reservation, self._sent)
            self._actors_in_flight += call.where == "actor"
            self._platform.submit(call)
        if refused:
            left = remaining_money(self._ledger)
            for reserved in refused:
                most = display_usd(reserved.reservation.picodollars)
                self._refuse([reserved.call], f"this call may cost up to {most} and {left}")

    def _refuse(self, calls: Iterable[Call], reason: str) -> None:
        self._ready.extend(self._unsent(call, "refused", reason, "budget") for call in calls)

    def _unsent(self, call: Call, status: str, reason: str, code: FaultCode) -> Outcome:
        now_s = self.now_s()
        return Outcome.model_validate(
            {
                "call_id": call.id,
                "status": status,
                "started_s": now_s,
                "finished_s": now_s,
                "cost_picodollars": 0,
                "reason": reason,
                "reason_code": code,
            }
        )

    def _priced(self, outcome: Outcome) -> Outcome:
        """Return the outcome with its cost; its settlement waits for the next batch."""
        self._rents.need(self._actors_in_flight, self.now_s())
        reserved = self._in_flight.pop(outcome.call_id)
        self._actors_in_flight -= reserved.call.where == "actor"
        if outcome.status == "refused":
            self._unreleased.append(reserved.reservation.id)
            cost = 0
        else:
            lines = self._tariff.lines(reserved.call, outcome)
            if lines is None:
                cost = self._settle_whole(reserved, outcome)
            else:
                cost = sum(line.picodollars for line in lines)
                usage = self._usage(reserved, outcome)
                self._unsettled.append(Settlement(reserved.reservation.id, cost, "metered", lines, usage))
        if not self._in_flight or len(self._unsettled) >= _BATCH:
            self._book()
        return outcome.model_copy(update={"cost_picodollars": cost})

    def _settle_whole(self, reserved: _Reserved, outcome: Outcome) -> int:
        """Book the whole reservation, because the true cost is unknown for now. Return its amount."""
        reservation = reserved.reservation
        usage = self._usage(reserved, outcome)
        self._unsettled.append(Settlement(reservation.id, reservation.picodollars, "assumed", (), usage))
        return reservation.picodollars

    def _usage(self, reserved: _Reserved, outcome: Outcome) -> dict[str, object]:
        """Return the provider's measurements, the times, and the record of the work."""
        work = work_of(
            reserved.call,
            outcome.usage,
            serial=reserved.serial,
            broken=outcome.status == "failed" and not _is_platform_failure(outcome.reason_code),
            cancelled=outcome.status == "cancelled",
        )
        decision_s = reserved.call.decision_s
        return {
            **outcome.usage.model_dump(),
            **({"decision_s": decision_s} if decision_s else {}),
            "status": outcome.status,
            "sent_s": outcome.started_s,
            "landed_s": outcome.finished_s,
            "work": self._works.record(work),
        }

    def _lost(self, reserved: _Reserved) -> Outcome:
        now_s = self.now_s()
        return Outcome(call_id=reserved.call.id, status="cancelled", started_s=now_s, finished_s=now_s)

    def _book(self) -> None:
        settlements, self._unsettled = self._unsettled, []
        released, self._unreleased = self._unreleased, []
        if settlements:
            self._ledger.settle(settlements)
        if released:
            self._ledger.release(released)

    def _pay_rent(self) -> None:
        if self._stopped or self._closed:
            return
        now_s, before = self.now_s(), self._rents.actors
        self._rents.need(self._actors_in_flight, now_s)
        if self._rents.is_due(now_s):
            self._book()
            too_dear = self._rents.pay(now_s, self._round_no)
            self._prepare(before)
            if too_dear:
                self._stop(too_dear)

    def _grow(self, calls: Sequence[Call]) -> str:
        """Rent actors for these calls too. Return why there is none, or an empty string."""
        more = sum(call.where == "actor" for call in calls)
        if not more:
            return ""
        before = self._rents.actors
        none = self._rents.grow(self._actors_in_flight + more, self.now_s(), self._round_no)
        self._prepare(before)
        return none

    def _prepare(self, before: int | None) -> None:
        """Let the platform have as many kept actors as are paid for, if that has changed."""
        actors = self._rents.actors
        if actors is not None and actors != before and isinstance(self._platform, Preparable):
            self._platform.prepare(actors)

    def _stop(self, reason: str) -> None:
        """End everything because the budget is used up: calls in flight and rented resources."""
        self._stopped = reason
        for outcome in self._drain():
            self._ready.append(_because(outcome, reason))
        self._platform.close()
        self._rents.end(self.now_s())
        for reserved in list(self._in_flight.values()):
            self._ready.append(_because(self._priced(self._lost(reserved)), reason))
        self._book()

    def _drain(self) -> list[Outcome]:
        """Cancel all calls in flight and wait for their outcomes for a limited time."""
        for call_id in list(self._in_flight):
            self._platform.cancel(call_id)
        outcomes: list[Outcome] = []
        for _ in range(_DRAINS + len(self._in_flight)):
            if not self._in_flight:
                break
            outcome = self._platform.next(_DRAIN_S)
            if outcome is not None:
                outcomes.append(self._priced(outcome))
        return outcomes


def _because(outcome: Outcome, reason: str) -> Outcome:
    """Return the outcome; if the call was cancelled for the budget, its reason says so."""
    if outcome.status != "cancelled":
        return outcome
    return outcome.model_copy(update={"reason": reason, "reason_code": "budget"})


def _is_platform_failure(reason_code: str) -> bool:
    """Whether a failure need not happen elsewhere."""
    return reason_code in FAULTS_OF_THE_PLATFORM or reason_code.startswith(_REFUSED_BY_ACTOR)
