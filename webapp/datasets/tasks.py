"""The worker's tasks for data sets. Messages carry only an id; each may come twice, late, or never."""

from celery import shared_task

from webapp.datasets import reading


@shared_task(name="webapp.datasets.tasks.read")
def read(data_set_id: int) -> None:
    reading.read(data_set_id)


@shared_task(name="webapp.datasets.tasks.tick")
def tick() -> None:
    """Every few seconds: continue what lost messages and dead workers left behind."""
    reading.look_after_data_sets()
