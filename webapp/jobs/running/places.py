"""How many jobs this installation's worker runs at once."""

from django.conf import settings

_THREADS_LEFT_FOR_OTHERS = 4
"""Each watched job holds a thread of the worker; looks after jobs need some too."""


def places() -> int:
    return int(settings.CELERY_WORKER_CONCURRENCY) - _THREADS_LEFT_FOR_OTHERS
