"""What the worker does for mailboxes now and then."""

from celery import shared_task

from webapp.gateway import services


@shared_task
def tidy() -> None:
    """Close the boxes of jobs that are over but whose process could not."""
    services.tidy()
