"""The worker's tasks for resources. Messages carry ids only; each may come twice, late, or never."""

import logging

from celery import shared_task

from webapp.celery import app as celery_app
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.models import Connection
from webapp.resources import late_reports, scanner

log = logging.getLogger(__name__)


@shared_task(name="webapp.resources.tasks.look")
def look() -> None:
    """Every ten seconds: send a message for each account that is due, so that a slow account holds up no other."""
    now = SYSTEM_CLOCK.now()
    wanted = [("webapp.resources.tasks.look_at", one.pk) for one in scanner.due(now)]
    wanted += [("webapp.resources.tasks.read_log", job_id) for job_id in late_reports.due(now)]
    for task, argument in wanted:
        try:
            celery_app.send_task(task, args=[argument], expires=10)
        except Exception as error:  # whatever the broker's client raises: the next turn tries again
            log.warning("the scan of accounts waits: %s", error)
            return


@shared_task(name="webapp.resources.tasks.look_at")
def look_at(connection_id: str) -> None:
    """Scan one account."""
    connection = Connection.objects.filter(pk=connection_id).first()
    if connection is not None:
        scanner.scan(connection)


@shared_task(name="webapp.resources.tasks.read_log")
def read_log(job_id: str) -> None:
    """Look up a job's assumed charges in its cloud's log."""
    late_reports.read(job_id)
