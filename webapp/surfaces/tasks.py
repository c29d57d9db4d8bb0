"""What the worker does about reward surfaces."""

from celery import shared_task

from webapp.surfaces import measurement, services


@shared_task(name="webapp.surfaces.tasks.survey", expires=60)
def survey(surface_id: int) -> None:
    """Measure a surface that somebody asked to see."""
    measurement.survey(surface_id)


@shared_task(name="webapp.surfaces.tasks.tick")
def tick() -> None:
    """Every few seconds: bring on what lost messages and dead workers left behind."""
    services.look_after_surfaces()
