"""The worker's tasks of A/B tests. Messages carry ids only, and each may come twice, late, or never."""

import threading

from celery import shared_task

from webapp.abtests import engine

# Two turns at once would only wait for each other.
_one_at_a_time = threading.Lock()


@shared_task(name="webapp.abtests.tasks.tick")
def tick() -> None:
    """Every few seconds: advance all tests."""
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        engine.advance_tests()
    finally:
        _one_at_a_time.release()


@shared_task(name="webapp.abtests.tasks.advance", expires=60)
def advance(test_id: int) -> None:
    """Advance one test, at once after its start."""
    with _one_at_a_time:
        engine.advance(test_id)
