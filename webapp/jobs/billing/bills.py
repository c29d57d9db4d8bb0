"""Bills by part. The worker draws them up and stores them; pages only read them.

A bill is drawn up when a job stops or pauses, and from time to time while it runs. A task for a bill that is
not due does nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Literal, cast

from django.db.models import F, Q, QuerySet

from cloud.money.billing.bill_context import bill_context_of
from cloud.money.billing.comparison import compare, compare_until_now
from cloud.money.billing.free_tier import free_tier_share
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.round_times import paper_costs
from cloud.money.billing.work import WorkError
from cloud.money.billing.work_file import RunSegment
from cloud.timing.forecasting.outcome import outcome_by_part
from cloud.timing.numbers import profile as profiles
from training.engine.ports import PriceLine, Settlement
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import TERMINAL, Observed
from webapp.jobs.models import Job
from webapp.jobs.spec import AnyPlatformOptions
from webapp.money.models import Account, BillSheet, Charge, ChargeState

log = logging.getLogger(__name__)

REST = TERMINAL | {Observed.PAUSED}
AT_LEAST_EVERY = timedelta(seconds=15)
MOST_CALLS_COMPARED = 60_000
"""A comparison replays the run once for each cloud: a few tens of microseconds a call."""
_PAUSE_FOR_EACH_SECOND = 20
_BILLS_AT_ONCE = 10
_one_at_a_time = threading.Lock()


def due_bills(now: datetime) -> QuerySet[Job]:
    """Return the stopped jobs without a final bill, and the running jobs whose next bill is due."""
    resting = Q(observed__in=REST) & (
        Q(bill__isnull=True)
        | Q(bill__final=False)
        | ~Q(bill__total_picodollars=F("account__spent_picodollars") + F("account__overrun_picodollars"))
    )
    running = Q(observed=Observed.RUNNING) & (
        Q(bill__isnull=True) | Q(bill__final=True) | Q(bill__again_at__lte=now)
    )
    begun = Q(round_no__gte=1) | Q(account__spent_picodollars__gt=0)
    return Job.objects.filter(resting | running, begun).order_by("-since")


def queue_due_bills(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Queue the bills that are due, unless one is being drawn up."""
    if _one_at_a_time.locked():
        return
    for job_id in due_bills(clock.now()).values_list("pk", flat=True)[:_BILLS_AT_ONCE]:
        if not send_hint("webapp.jobs.tasks.draw_up_bill", job_id):
            return


def draw_up_bill(job_id: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Draw the job's bill up and store it, if it is due and no other bill is being drawn up."""
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        job = due_bills(clock.now()).filter(pk=job_id).select_related("account").first()
        if job is not None:
            _draw_up(job, clock)
    finally:
        _one_at_a_time.release()


def _draw_up(job: Job, clock: Clock) -> None:
    began_s = time.monotonic()
    final = job.observed in REST
    try:
        document = document_of(works_of(job), job.parsed_spec().platform, ended=final)
    except (WorkError, ValueError) as error:
        # A spec or a record of another version of this program: log it once, do not retry.
        log.warning("no bill of %s: %s", job.pk, error)
        document = {"problem": str(error)[:300]}
    pause = timedelta(seconds=_PAUSE_FOR_EACH_SECOND * (time.monotonic() - began_s))
    account = Account.objects.get(job=job)
    BillSheet.objects.update_or_create(
        job=job,
        defaults={
            "at": clock.now(),
            "round_no": job.round_no,
            "total_picodollars": account.spent_picodollars + account.overrun_picodollars
            if final
            else document.get("total", 0),
            "final": final,
            "again_at": None if final else clock.now() + max(AT_LEAST_EVERY, pause),
            "document": document,
        },
    )


def document_of(
    segments: Sequence[RunSegment], options: AnyPlatformOptions, *, ended: bool = True
) -> dict[str, Any]:
    """Return everything that a page shows of a bill, as plain JSON; amounts in picodollars.

    `own` is what a running simulated job would cost if it ended now: its ledger books rent later.
    """
    book = PriceBook.load()
    bill = full_bill(segments, bill_context_of(options))
    free = free_tier_share(bill.lines, book)
    calls = sum(len(segment.works) for segment in segments)
    comparable = calls <= MOST_CALLS_COMPARED
    compared, notes = compare(segments, options, book) if comparable else ([], ())
    own = None
    if comparable and not ended and options.is_simulated:
        own = asdict(compare_until_now(segments, options.alike, book))
    return {
        "total": bill.total,
        "parts": dict(bill.parts),
        "by_forecast_part": outcome_by_part(one for segment in segments for one in segment.settlements),
        "counts": dict(bill.counts),
        "time_s": bill.time_s,
        "papers": {formula.name: cost for formula, cost in paper_costs(segments, book)},
        "free_tier": {"covered": free.covered_picodollars, "total": free.total_picodollars},
        "own": own,
        "compared": [asdict(outcome) for outcome in compared],
        "not_compared": not comparable,
        "notes": list(notes),
        "own_prices": [
            f"{row.sku} at {'an unknown price' if row.usd is None else f'${row.usd:f}'} a {row.unit} in {row.region}"
            f" ({row.source}, {row.as_of})"
            for row in book.own((line.sku for line in bill.lines), _region(options))
        ],
    }


def works_of(job: Job) -> list[RunSegment]:
    """Return the job's work, one run segment for each process that ran it, with calls in the order of their
    reservation.

    A process that died left charges without a record of their work, so a run segment may have gaps.
    """
    by_epoch: dict[int, list[Settlement]] = {}
    charges = Charge.objects.filter(account__job=job, state=ChargeState.SETTLED).order_by("epoch", "pk")
    for charge in charges.iterator(chunk_size=1000):
        by_epoch.setdefault(charge.epoch, []).append(_settlement(charge))
    return [RunSegment.of(job.spec, settlements) for settlements in by_epoch.values()]


def _settlement(charge: Charge) -> Settlement:
    lines = tuple(PriceLine(**line) for line in charge.lines)
    basis = cast(Literal["metered", "assumed"], charge.basis)
    return Settlement(charge.name, charge.settled_picodollars or 0, basis, lines, charge.usage)


def _region(options: AnyPlatformOptions) -> str:
    region = getattr(options, "region", None)
    return region or (profiles.load(options.alike.profile).region if options.is_simulated else "")
