"""The worker's tasks for alerts. Messages carry no data: the database says what to do."""

import logging

from celery import shared_task

from webapp.alerts import anomaly_scan, mail_consent, outbox, services, sources

log = logging.getLogger(__name__)
_TURN = (
    sources.raise_crossings,
    sources.raise_job_ends,
    sources.end_outdated,
    services.wake_snoozed,
    mail_consent.send_due_requests,
    outbox.release_lost,
    outbox.send_due,
)


@shared_task(name="webapp.alerts.tasks.tick")
def tick() -> None:
    """Every two seconds: raise new alerts, release deliveries of dead senders, and send what is due."""
    for part in _TURN:
        try:
            part()
        except Exception:  # a source that fails must not stop the others
            log.exception("alerts: %s failed and is tried again at the next turn", part.__name__)


@shared_task(name="webapp.alerts.tasks.send_due")
def send_due() -> None:
    """Raise and send alerts at once, after a crossing or a new alert."""
    sources.raise_crossings()
    outbox.send_due()


@shared_task(name="webapp.alerts.tasks.look_for_anomalies")
def look_for_anomalies() -> None:
    """Every half minute: scan running jobs for anomalies."""
    anomaly_scan.scan_jobs()
    services.put_away_old()
