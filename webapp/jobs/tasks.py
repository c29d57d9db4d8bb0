"""The worker's tasks. Messages carry ids only; each task may arrive twice, late, or never."""

# mypy: disallow-untyped-decorators=False
# Celery has no types.

from celery import shared_task
from celery.signals import worker_ready

from webapp.jobs.billing import bills
from webapp.jobs.billing.limit_forecast import announce_expected_limits
from webapp.jobs.launch.launch_forecasts import forecast_recent_job
from webapp.jobs.policies.films import make_film, recover_films
from webapp.jobs.running.job_watchdog import check_jobs
from webapp.jobs.running.launcher import launch_and_watch, watched
from webapp.worker_stop import worker_stop


@shared_task(name="webapp.jobs.tasks.launch_job", acks_late=False, max_retries=0)
def launch_job(job_id: str) -> None:
    """Start the job's process and watch it while the job runs."""
    launch_and_watch(job_id)


@shared_task(name="webapp.jobs.tasks.tick")
def tick() -> None:
    """Every few seconds: repair what lost messages and dead processes left behind."""
    check_jobs()
    recover_films()
    bills.queue_due_bills()
    announce_expected_limits()
    forecast_recent_job()


@shared_task(name="webapp.jobs.tasks.draw_up_bill")
def draw_up_bill(job_id: str) -> None:
    """Draw a job's bill up by part, if that is due."""
    bills.draw_up_bill(job_id)


@shared_task(name="webapp.jobs.tasks.film")
def film(film_id: int) -> None:
    """Make a requested film of a policy."""
    make_film(film_id)


@worker_ready.connect
def check_at_start(**_: object) -> None:
    """Check at start: a worker that died may have left jobs behind."""
    tick.delay()


@worker_stop.first
def hand_jobs_over() -> None:
    """Before the worker ends, its jobs write a checkpoint and wait for the next worker."""
    watched.stop()
