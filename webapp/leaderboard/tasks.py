"""The worker's task of the board."""

from celery import shared_task

from webapp.leaderboard import results


@shared_task(name="webapp.leaderboard.tasks.tick")
def tick() -> None:
    """Every few seconds: read jobs that have finished."""
    results.read_finished()
