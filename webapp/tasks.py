"""The worker's tasks that are a call each. Those with more to do are in the `tasks` of their own apps.

Messages carry ids only, and each may come twice, late, or never: the rows say what is to be done. A task keeps its
name, because messages of an older version may still be on their way.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from typing import Any

from celery import shared_task

from webapp.alerts import anomalies, disk_space, mail_consent, outbox, rules, sources
from webapp.alerts import services as alerts
from webapp.background import TASK
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK
from webapp.comparing import goal_results
from webapp.comparing.abtests import engine
from webapp.comparing.predictions import services as predictions
from webapp.connections import account_setup, connection_check
from webapp.connections.gateway import services as mailboxes
from webapp.connections.models import Connection
from webapp.datasets.reading import READING
from webapp.jobs.policies.films import FILMING
from webapp.jobs.surfaces.measuring import SURVEYING
from webapp.reports import schedules
from webapp.reports.bills.bill_reading import BILL_READING
from webapp.reports.report_builds import BUILDING
from webapp.resources import late_reports, scanner

log = logging.getLogger(__name__)
# Two turns of A/B tests at once would only wait for each other.
_one_turn_of_tests = threading.Lock()
LIFE_CYCLES = {one.name: one for one in (FILMING, SURVEYING, BUILDING, BILL_READING, READING)}
"""What the worker does beside jobs, by the name of its table."""
_TURN_OF_ALERTS = (
    sources.raise_crossings,
    sources.raise_job_ends,
    sources.end_outdated,
    alerts.wake_snoozed,
    mail_consent.send_due_requests,
    outbox.release_lost,
    outbox.send_due,
)


def _run_all(parts: Iterable[Callable[[], object]]) -> None:
    for part in parts:
        try:
            part()
        except Exception:  # one that fails must not stop the others
            log.exception("%s failed and is tried again at the next turn", part)


@shared_task(name=TASK)
def run_background(kind: str, pk: Any) -> None:
    """Work a row off: a film, a surface, a report, a bill, a data set."""
    LIFE_CYCLES[kind].run(pk)


@shared_task(name="webapp.background.tick")
def recover_background() -> None:
    """Every few seconds: continue what lost messages and dead workers left behind."""
    _run_all(life_cycle.recover for life_cycle in LIFE_CYCLES.values())


@shared_task(name="webapp.alerts.tasks.tick")
def turn_alerts() -> None:
    """Every two seconds: raise new alerts, release deliveries of dead senders, and send what is due."""
    _run_all(_TURN_OF_ALERTS)


@shared_task(name="webapp.alerts.tasks.send_due")
def send_alerts() -> None:
    """Raise and send alerts at once, after a crossing or a new alert."""
    sources.raise_crossings()
    outbox.send_due()


@shared_task(name="webapp.alerts.tasks.look_for_anomalies")
def look_for_anomalies() -> None:
    """Every half minute: watch disks, scan running jobs for anomalies, hold the projects' rules against them, and look
    whether stopped jobs have room again."""
    disk_space.watch_disks()
    anomalies.scan_jobs()
    rules.scan_rules()
    sources.end_stops_with_room()
    alerts.put_away_old()


@shared_task(name="webapp.connections.tasks.test_connection", expires=60)
def test_connection(connection_id: str, number: int) -> None:
    connection_check.run_test(connection_id, number)


@shared_task(name="webapp.connections.tasks.set_up_connection", expires=60)
def set_up_connection(connection_id: str, number: int) -> None:
    account_setup.run(connection_id, number)


@shared_task(name="webapp.connections.gateway.tasks.tidy")
def tidy_mailboxes() -> None:
    """Every minute: close the boxes of jobs that are over and whose process could not close them."""
    mailboxes.tidy()


@shared_task(name="webapp.reports.tasks.tick")
def send_reports() -> None:
    """Every ten seconds: send the e-mails of reports that are due."""
    schedules.send_due()


@shared_task(name="webapp.resources.tasks.look")
def scan_accounts() -> None:
    """Every ten seconds: send a message for each account that is due, so that a slow account holds up no other."""
    now = SYSTEM_CLOCK.now()
    wanted = [("webapp.resources.tasks.look_at", connection.pk) for connection in scanner.due(now)]
    wanted += [("webapp.resources.tasks.read_log", job_id) for job_id in late_reports.due(now)]
    for task, argument in wanted:
        if not send_hint(task, argument, expires=10):
            return


@shared_task(name="webapp.resources.tasks.look_at")
def scan_account(connection_id: str) -> None:
    connection = Connection.objects.filter(pk=connection_id).first()
    if connection is not None:
        scanner.scan(connection)


@shared_task(name="webapp.resources.tasks.read_log")
def read_log(job_id: str) -> None:
    """Look up a job's assumed charges in its cloud's log."""
    late_reports.read(job_id)


@shared_task(name="webapp.comparing.abtests.tasks.tick")
def advance_tests() -> None:
    """Every few seconds: advance all A/B tests."""
    if not _one_turn_of_tests.acquire(blocking=False):
        return
    try:
        engine.advance_tests()
    finally:
        _one_turn_of_tests.release()


@shared_task(name="webapp.comparing.abtests.tasks.advance", expires=60)
def advance_test(test_id: int) -> None:
    """Advance one A/B test, at once after its start."""
    with _one_turn_of_tests:
        engine.advance(test_id)


@shared_task(name="webapp.comparing.predictions.tasks.tick")
def judge_predictions() -> None:
    """Every few seconds: judge the predictions of jobs that have ended."""
    predictions.judge_ended()


@shared_task(name="webapp.comparing.tasks.tick")
def read_results() -> None:
    """Every few seconds: read jobs that have finished, for the boards."""
    goal_results.read_finished()
