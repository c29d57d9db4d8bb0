"""The periodic task for mailboxes."""

from celery import shared_task

from webapp.gateway import services


@shared_task
def tidy() -> None:
    """Close the boxes of jobs that are over and whose process could not close them."""
    services.tidy()
