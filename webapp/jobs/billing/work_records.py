"""The record of a job's work, read from its charges: what bills and re-timings are made from."""

from __future__ import annotations

from cloud.billing.work_file import Sitting
from training.ports import PriceLine, Settlement
from webapp.jobs.models import Job
from webapp.money.models import Charge, ChargeState


def works_of(job: Job) -> list[Sitting]:
    """What the job did, a sitting for each process that ran it, calls in the order of their reservation.

    Calls whose process died were booked without a record of their work, so that the graph of a sitting may have holes.
    """
    by_epoch: dict[int, list[Settlement]] = {}
    charges = Charge.objects.filter(account__job=job, state=ChargeState.SETTLED).order_by("epoch", "pk")
    for charge in charges.iterator(chunk_size=1000):
        by_epoch.setdefault(charge.epoch, []).append(_settlement(charge))
    return [Sitting.of(job.spec, settlements) for settlements in by_epoch.values()]


def _settlement(charge: Charge) -> Settlement:
    lines = tuple(PriceLine(**line) for line in charge.lines)
    return Settlement(charge.name, charge.settled_picodollars or 0, charge.basis, lines, charge.usage)
