"""What a job's charges tell beside their amounts, and the bill that was made of them."""

from cloud.work_file import Sitting
from training.ports import PriceLine, Settlement
from webapp.jobs.models import Job
from webapp.money.models import BillSheet, Charge, ChargeState


def works_of(job: Job) -> list[Sitting]:
    """What the job did, a sitting for each process that ran it, calls in the order of their reservation.

    Calls whose process died were booked without a record of their work, so that the graph of a sitting may have holes.
    """
    by_epoch: dict[int, list[Settlement]] = {}
    charges = Charge.objects.filter(account__job=job, state=ChargeState.SETTLED).order_by("epoch", "pk")
    for charge in charges.iterator(chunk_size=1000):
        by_epoch.setdefault(charge.epoch, []).append(_settlement(charge))
    return [Sitting.of(job.spec, settlements) for settlements in by_epoch.values()]


def bill_sheet(job_id: str) -> BillSheet | None:
    """The job's bill as it was drawn up last."""
    return BillSheet.objects.filter(job_id=job_id).first()


def _settlement(charge: Charge) -> Settlement:
    lines = tuple(PriceLine(**line) for line in charge.lines)
    return Settlement(charge.name, charge.settled_picodollars or 0, charge.basis, lines, charge.usage)
