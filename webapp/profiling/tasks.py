"""The worker's task for memory profiles. Messages carry only an id."""

from celery import shared_task

from webapp.profiling import profile_run


@shared_task(name="webapp.profiling.tasks.profile_memory", expires=60)
def profile_memory(profile_id: int) -> None:
    """Measure a requested profile."""
    profile_run.run(profile_id)
