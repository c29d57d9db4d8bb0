"""What the worker does about money when it is told to."""

from celery import shared_task

from webapp.jobs.billing import bills


@shared_task(name="webapp.money.tasks.draw_up_bill")
def draw_up_bill(job_id: str) -> None:
    """Draw a job's bill up by part, if that is due."""
    bills.draw_up_bill(job_id)
