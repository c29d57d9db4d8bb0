"""What the worker does about memory profiles. Messages carry an id and nothing else."""

from celery import shared_task

from webapp.profiling import profile_run


@shared_task(name="webapp.profiling.tasks.profile_memory", expires=60)
def profile_memory(profile_id: int) -> None:
    """Make a profile that somebody asked for."""
    profile_run.run(profile_id)
