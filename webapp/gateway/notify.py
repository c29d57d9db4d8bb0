"""Hints through Redis between a job's process and the gateway. A lost one costs a second, never truth."""

from django.db import transaction

from webapp import doorbell

OFFERS = "starling:offers:"
ANSWERS = "starling:answers:"


def offers_on_commit(job_id: str) -> None:
    """There may be something to hand out."""
    transaction.on_commit(lambda: doorbell.bell.ring(f"{OFFERS}{job_id}", 1), robust=True)


def answers_on_commit(job_id: str) -> None:
    """There may be something to take in."""
    transaction.on_commit(lambda: doorbell.bell.ring(f"{ANSWERS}{job_id}", 1), robust=True)
