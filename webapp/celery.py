"""The Celery application of the worker and of beat, and of whoever sends a task.

Messages are hints that carry ids; the database holds what is to be done. Losing one costs a few seconds.
"""

import logging
import os
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

app = Celery("starling")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

logger = logging.getLogger(__name__)


@worker_ready.connect
def _say_worker_ready(**details: Any) -> None:
    """The line by which `manage.py up` sees that tasks are being taken."""
    logger.info("worker is ready")


@beat_init.connect
def _say_beat_ready(**details: Any) -> None:
    """The line by which `manage.py up` sees that ticks will come."""
    logger.info("beat is ready")
