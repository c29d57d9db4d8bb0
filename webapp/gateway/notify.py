"""Hints through Redis between a job's process and the gateway. A lost hint costs a second and no data."""

from django.db import transaction

from webapp import doorbell

OFFERS = "starling:offers:"
ANSWERS = "starling:answers:"


def offers_on_commit(job_id: str) -> None:
    """Tell the gateway after the commit that the job may have calls to hand out."""
    transaction.on_commit(lambda: doorbell.bell.ring(f"{OFFERS}{job_id}", 1), robust=True)


def answers_on_commit(job_id: str) -> None:
    """Tell the job's process after the commit that answers may have arrived."""
    transaction.on_commit(lambda: doorbell.bell.ring(f"{ANSWERS}{job_id}", 1), robust=True)
