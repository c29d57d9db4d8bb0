"""Real costs of lost calls: assumed charges are looked up in the provider's log and corrected to what it bills.

A call whose process died, or whose answer was lost, is booked at its whole reservation until then, and the bill says
so. The log comes some seconds late. A call that is missing there did not run, if it is too late for it to start and if
every execution of that time names its call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from cloud.accounts.connections import AwsConnection
from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import CallPrice, total
from cloud.platforms.aws import log as aws_log
from cloud.platforms.aws.error_text import code_of, refusal
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws.invoke import Report
from cloud.platforms.aws_lambda import LambdaOptions
from training.engine.messages import Call
from training.engine.ports import PriceLine, Settlement
from training.engine.reports import Usage
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import decrypt
from webapp.formatting import plural
from webapp.job_states import TERMINAL
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.models import Job
from webapp.money.models import RENT, Basis, Charge, ChargeState
from webapp.money.services import correct
from webapp.resources.models import LogReading

EVERY = timedelta(seconds=30)
_SLOWEST = timedelta(minutes=15)
LOG_COMES_WITHIN = timedelta(minutes=5)
LOG_IS_KEPT = timedelta(days=7)
_CALLS_AT_ONCE = 2000
_CLOCKS_DIFFER_S = 5.0

Open = Callable[[Job], AwsConnection]


@dataclass(frozen=True)
class LateReading:
    """What one reading of the log changed. `certain_at`: when the next call is known not to have run, if it is absent
    then too."""

    corrected: int = 0
    left: int = 0
    sentence: str = ""
    certain_at: datetime | None = None


def due(now: datetime) -> list[str]:
    """Ids of jobs on AWS Lambda whose log may hold more and is due to be read."""
    fresh = Q(finished_at=None) | Q(finished_at__gte=now - LOG_IS_KEPT)
    unread = Q(log_reading=None) | Q(log_reading__again_at__lte=now)
    begun = Q(account__spent_picodollars__gt=0)
    jobs = Job.objects.filter(fresh, unread, begun, spec__platform__kind=LambdaOptions().kind)
    return list(jobs.order_by("pk").values_list("pk", flat=True)[:100])


def read(job_id: str, *, clock: Clock = SYSTEM_CLOCK, connect: Open | None = None) -> LateReading:
    """Correct the charges that the log explains, and plan the next reading. Errors of the cloud are not raised."""
    job = Job.objects.select_related("account").get(pk=job_id)
    charges = _assumed(job)
    if not charges:
        reading = LateReading()
    else:
        try:
            reading = _read(job, charges, (connect or _connected)(job), clock)
        except decrypt.CannotOpen as error:
            reading = LateReading(left=len(charges), sentence=str(error))
        except Exception as error:  # whatever the SDK raises
            why = refusal(error)
            reading = LateReading(left=len(charges), sentence=f"{why.words} {why.fix}".strip())
    _note(job, reading, clock)
    return reading


def _connected(job: Job) -> AwsConnection:
    connection = decrypt.open_connection(job.project_id, job.spec["platform"]["connection"])
    if not isinstance(connection, AwsConnection):
        raise decrypt.CannotOpen("The job's connection is not one to AWS.")
    return connection


def _assumed(job: Job) -> list[Charge]:
    """Calls booked by assumption, oldest first. Only names that begin with the job's id are its own for certain."""
    rows = Charge.objects.filter(
        account=job.account,
        state=ChargeState.SETTLED,
        basis=Basis.ASSUMED,
        reserved_picodollars__gt=0,
        name__startswith=f"{job.pk}-",
    ).exclude(kind=RENT)
    return list(rows.order_by("pk")[:_CALLS_AT_ONCE])


def _read(job: Job, charges: Sequence[Charge], connection: AwsConnection, clock: Clock) -> LateReading:
    spec = job.parsed_spec()
    options = spec.platform
    assert isinstance(options, LambdaOptions)
    client, memory_mb = connection.open().client("logs"), spec.training.memory_mb
    by_memory: dict[int, list[Charge]] = {}
    for charge in charges:
        by_memory.setdefault(int(charge.usage.get("memory_mb") or memory_mb), []).append(charge)
    corrected = left = 0
    sentence = ""
    certain: list[datetime] = []
    for size, some in sorted(by_memory.items()):
        price = options.tariff(PriceBook.load(), size).actor
        assert price is not None
        lookup = _Lookup(client, function_name(connection.prefix, size), size, price, options)
        now = clock.now()
        late = lookup.settlements(some, now)
        corrected += sum(_correct(charge, late[charge.pk], clock) for charge in some if charge.pk in late)
        unknown = [charge for charge in some if charge.pk not in late]
        left += len(unknown)
        certain += [at for at in map(lookup.certain_at, unknown) if at > now]
        sentence = lookup.sentence or sentence
    return LateReading(corrected, left, sentence, min(certain, default=None))


def _correct(charge: Charge, settlement: Settlement, clock: Clock) -> bool:
    return correct(
        account_id=charge.account_id,
        epoch=charge.epoch,
        name=charge.name,
        settlement=settlement,
        clock=clock,
    )


class _Lookup:
    """The log of one function."""

    def __init__(
        self, client: Any, function: str, memory_mb: int, price: CallPrice, options: LambdaOptions
    ) -> None:
        self._client = client
        self._function = function
        self._memory_mb = memory_mb
        self._price = price
        self._longest = timedelta(seconds=options.start_cap_s + options.function_timeout_s)
        self.sentence = ""

    def settlements(self, charges: Sequence[Charge], now: datetime) -> dict[int, Settlement]:
        """The settlements that the log explains by now, by the charge's key."""
        since_unix_s = min(charge.opened_at for charge in charges).timestamp() - _CLOCKS_DIFFER_S
        try:
            reports = aws_log.reports_of(
                self._client, self._function, [charge.name for charge in charges], since_unix_s
            )
        except Exception as error:
            if code_of(error) != "ResourceNotFoundException":
                raise
            self.sentence = f"The log of {self._function} no longer exists."
            return {}
        known = {one.pk: self._settlement(one, reports[one.name]) for one in charges if one.name in reports}
        absent = [charge for charge in charges if charge.name not in reports]
        known |= {charge.pk: self._settlement(charge, ()) for charge in self._never_ran(absent, now)}
        return known

    def certain_at(self, charge: Charge) -> datetime:
        """When the log shows the call if it ran."""
        return charge.opened_at + self._longest + LOG_COMES_WITHIN

    def _never_ran(self, absent: Sequence[Charge], now: datetime) -> list[Charge]:
        """The calls that the log would show by now if they had run."""
        over = [one for one in absent if self.certain_at(one) <= now <= one.opened_at + LOG_IS_KEPT]
        if not over:
            return []
        since = min(charge.opened_at for charge in over).timestamp() - _CLOCKS_DIFFER_S
        until = max(charge.opened_at for charge in over) + self._longest
        unnamed = aws_log.unnamed(self._client, self._function, since, until.timestamp())
        if unnamed:
            executions = plural(len(unnamed), "execution in the log does", "executions in the log do")
            stay = plural(len(over), "call stays", "calls stay")
            self.sentence = f"{executions} not name a call, so {stay} assumed."
            return []
        return over

    def _settlement(self, charge: Charge, executions: Sequence[Report]) -> Settlement:
        """A settlement that bills each execution, also if there are two; without any it cost nothing."""
        # Prices read no more of a call than this; what else it was is no longer known.
        known: dict[str, Any] = {"id": charge.name, "where": "actor", "memory_mb": self._memory_mb}
        call = Call.model_construct(**known)
        lines: tuple[PriceLine, ...] = ()
        for one in executions:
            lines += self._price.lines(call, Usage(billed_s=one.billed_s, provisioned=one.provisioned)) or ()
        usage: dict[str, object] = {
            "billed_s": sum(execution.billed_s for execution in executions),
            "memory_mb": self._memory_mb,
            "executions": len(executions),
            "from_log": True,
        }
        return Settlement(charge.name, total(lines), "metered", lines, usage)


def _note(job: Job, reading: LateReading, clock: Clock) -> None:
    """Plan the next reading: soon at first, seldom later, none once the job has ended and no call is assumed."""
    now = clock.now()
    row = LogReading.objects.filter(job=job).first() or LogReading(job=job)
    ended = job.observed in TERMINAL
    too_late = ended and job.finished_at is not None and job.finished_at + LOG_IS_KEPT <= now
    row.reads = 0 if reading.corrected else row.reads + 1
    row.at, row.corrected = now, row.corrected + reading.corrected
    row.sentence = reading.sentence[:300]
    pause = min(EVERY * 2 ** min(row.reads, 10), _SLOWEST) if reading.left else EVERY * 2
    again_at = min(now + pause, reading.certain_at or now + pause)
    row.again_at = None if ended and (not reading.left or too_late) else again_at
    row.save()
    if reading.corrected:
        calls = plural(reading.corrected, "call")
        left = f" {plural(reading.left, 'is', 'are')} assumed still." if reading.left else ""
        sentence = f"AWS's log shows what {calls} really cost, so the bill is corrected.{left}"
        append_events(job.pk, [note(sentence)], clock=clock)
