"""What the worker does about alerts. Messages say nothing: what is to be done stands in the database."""

import logging

from celery import shared_task

from webapp.alerts import anomaly_scan, mail_consent, outbox, services, sources

log = logging.getLogger(__name__)
_TURN = (
    sources.tell_crossings,
    sources.tell_ends,
    sources.end_what_passed,
    services.wake_snoozed,
    mail_consent.ask_due,
    outbox.free_lost,
    outbox.send_due,
)


@shared_task(name="webapp.alerts.tasks.tick")
def tick() -> None:
    """Every two seconds: tell what is new, free what dead senders held, and send what is due."""
    for part in _TURN:
        try:
            part()
        except Exception:  # one source that fails must not keep what others found from going out
            log.exception("alerts: %s failed and is tried again at the next turn", part.__name__)


@shared_task(name="webapp.alerts.tasks.send_due")
def send_due() -> None:
    """Tell and send now: somebody has just crossed a line or raised an alert."""
    sources.tell_crossings()
    outbox.send_due()


@shared_task(name="webapp.alerts.tasks.look_for_anomalies")
def look_for_anomalies() -> None:
    """Every half minute: look at how running jobs spend."""
    anomaly_scan.look_at_jobs()
    services.put_away_old()
