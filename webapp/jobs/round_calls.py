"""The calls of one round on the job's page: state, age, start, steps, cost and error."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.db.models import Max, Min

from training.calls import KINDS
from webapp.formatting import Pill
from webapp.jobs.events.event_text import sentence
from webapp.jobs.models import Event, EventKind, Job
from webapp.money.models import RENT, Charge, ChargeState

ROWS_SHOWN = 200
_SLOT = re.compile(r"-s(\d+)-")
_ATTEMPT = re.compile(r"-a(\d+)$")
CallState = Literal["open", "done", "failed", "released"]
CALL_PILLS: dict[CallState, Pill] = {
    "failed": Pill("Failed", "failed", "exclamation-triangle-fill"),
    "open": Pill("In flight", "running", "play-fill"),
    "done": Pill("Done", "ok", "check-lg"),
    "released": Pill("Not used", "waiting", "slash-circle"),
}
"""Unusual calls come first."""


@dataclass(frozen=True)
class CallRow:
    """One call. `age_s` is by this machine's clock, `took_s` by the platform's."""

    name: str
    who: str
    slot: int | None
    attempt: int
    state: CallState
    age_s: float
    took_s: float | None
    startup_s: float | None
    cold: bool
    steps: int | None
    cost: int | None
    reserved: int
    error: str

    @property
    def pill(self) -> Pill:
        return CALL_PILLS[self.state]


@dataclass(frozen=True)
class RoundCalls:
    """A round's calls, unfinished and failed ones first; `more` of them are not in `rows`."""

    round_no: int
    first: int
    last: int
    rows: list[CallRow]
    cells: list[CallRow]
    more: int

    @property
    def counts(self) -> Counter[CallState]:
        """How many calls are in each state."""
        return Counter(row.state for row in self.cells)

    @property
    def cold(self) -> int:
        return sum(row.cold for row in self.cells)

    @property
    def cost(self) -> int:
        return sum(row.cost or 0 for row in self.cells)

    @property
    def before(self) -> int | None:
        return self.round_no - 1 if self.round_no > self.first else None

    @property
    def after(self) -> int | None:
        return self.round_no + 1 if self.round_no < self.last else None


_STATES: dict[ChargeState, CallState] = {
    ChargeState.OPEN: "open",
    ChargeState.SETTLED: "done",
    ChargeState.RELEASED: "released",
}


def round_calls(job: Job, round_no: int | None, now: datetime) -> RoundCalls | None:
    """Return the calls of this round, or of the newest one; None if there are none yet."""
    calls = Charge.objects.filter(account=job.account).exclude(kind=RENT)
    ends = calls.aggregate(first=Min("round_no"), last=Max("round_no"))
    if ends["last"] is None:
        return None
    chosen = min(max(round_no if round_no is not None else ends["last"], ends["first"]), ends["last"])
    problems = _problems(job, chosen)
    rows = [_row(charge, problems, now) for charge in calls.filter(round_no=chosen).order_by("pk")]
    urgent = list(CALL_PILLS)
    ordered = sorted(
        rows, key=lambda row: (urgent.index(row.state), row.slot if row.slot is not None else -1)
    )
    return RoundCalls(
        chosen, ends["first"], ends["last"], ordered[:ROWS_SHOWN], rows, max(0, len(rows) - ROWS_SHOWN)
    )


def _problems(job: Job, round_no: int) -> dict[str, str]:
    events = Event.objects.filter(job=job, kind=EventKind.CALL_FAILED, payload__round_no=round_no)
    return dict(events.values_list("payload__call_id", "payload__reason"))


def _row(charge: Charge, problems: dict[str, str], now: datetime) -> CallRow:
    usage: dict[str, Any] = charge.usage or {}
    error = problems.get(charge.name, "")
    state = _STATES[ChargeState(charge.state)]
    took = [usage.get(part) for part in ("startup_s", "run_s", "transfer_s")]
    slot, attempt = _SLOT.search(charge.name), _ATTEMPT.search(charge.name)
    return CallRow(
        name=charge.name,
        who=KINDS[charge.kind].who if charge.kind in KINDS else charge.get_kind_display(),
        slot=int(slot[1]) if slot else None,
        attempt=int(attempt[1]) if attempt else 1,
        state="failed" if error and state != "open" else state,
        age_s=((charge.resolved_at or now) - charge.opened_at).total_seconds(),
        took_s=sum(part or 0.0 for part in took) if any(part for part in took) else None,
        startup_s=usage.get("startup_s"),
        cold=bool(usage.get("cold_start")),
        steps=usage.get("env_steps") if usage else None,
        cost=charge.settled_picodollars,
        reserved=charge.reserved_picodollars,
        error=sentence(error),
    )
