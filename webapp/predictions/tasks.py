"""The worker's task of predictions."""

from celery import shared_task

from webapp.predictions import services


@shared_task(name="webapp.predictions.tasks.tick")
def tick() -> None:
    """Every few seconds: judge the predictions of jobs that have ended."""
    services.judge_ended()
