"""What the worker does about reward surfaces."""

from celery import shared_task

from webapp.landscapes import services, surveying


@shared_task(name="webapp.landscapes.tasks.survey", expires=60)
def survey(surface_id: int) -> None:
    """Measure a surface that somebody asked to see."""
    surveying.survey(surface_id)


@shared_task(name="webapp.landscapes.tasks.tick")
def tick() -> None:
    """Every few seconds: bring on what lost messages and dead workers left behind."""
    services.look_after_surfaces()
