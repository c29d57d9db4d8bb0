"""What the worker does about what stands. Messages carry ids only; each may come twice, late, or never."""

import logging

from celery import shared_task

from webapp.celery import app as celery_app
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.models import Connection
from webapp.resources import late_reports, scanner

log = logging.getLogger(__name__)


@shared_task(name="webapp.resources.tasks.look")
def look() -> None:
    """Every ten seconds: a message for each account whose look has come, so that a slow one holds up no other."""
    now = SYSTEM_CLOCK.now()
    wanted = [("webapp.resources.tasks.look_at", one.pk) for one in scanner.due(now)]
    wanted += [("webapp.resources.tasks.read_log", job_id) for job_id in late_reports.due(now)]
    for task, argument in wanted:
        try:
            celery_app.send_task(task, args=[argument], expires=10)
        except Exception as error:  # whatever the broker's client raises: the next turn tries again
            log.warning("what stands is looked at later: %s", error)
            return


@shared_task(name="webapp.resources.tasks.look_at")
def look_at(connection_id: str) -> None:
    """Look at one account, if its look has come."""
    there = Connection.objects.filter(pk=connection_id).first()
    if there is not None:
        scanner.look_at(there)


@shared_task(name="webapp.resources.tasks.read_log")
def read_log(job_id: str) -> None:
    """Look a job's assumed charges up in its cloud's log."""
    late_reports.read(job_id)
