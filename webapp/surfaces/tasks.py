"""The worker's tasks for reward surfaces."""

from celery import shared_task

from webapp.surfaces import measurement, services


@shared_task(name="webapp.surfaces.tasks.survey", expires=60)
def survey(surface_id: int) -> None:
    """Measure a requested surface."""
    measurement.survey(surface_id)


@shared_task(name="webapp.surfaces.tasks.tick")
def tick() -> None:
    """Every few seconds: continue what lost messages and dead workers left behind."""
    services.look_after_surfaces()
