"""What the worker does about memory profiles. Messages carry an id and nothing else."""

from celery import shared_task

from webapp.profiling import running


@shared_task(name="webapp.profiling.tasks.profile_memory", expires=60)
def profile_memory(profile_id: int) -> None:
    """Make a profile that somebody asked for."""
    running.run(profile_id)
