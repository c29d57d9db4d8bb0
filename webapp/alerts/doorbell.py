"""Hints to the worker that something is to be sent or read. A lost one costs the two seconds to the next tick."""

import logging

from django.db import transaction

from webapp.celery import app as celery_app

log = logging.getLogger(__name__)
_HINT_LIVES_S = 10.0


def ring_on_commit() -> None:
    """Once the present transaction is committed, have what is due sent now rather than at the next tick."""
    transaction.on_commit(_ring, robust=True)


def _ring() -> None:
    try:
        celery_app.send_task("webapp.alerts.tasks.send_due", expires=_HINT_LIVES_S)
    except Exception as error:  # whatever the broker's client raises: nobody's change must fail for a hint
        log.debug("alerts wait for the next tick, no message could be sent: %s", error)
