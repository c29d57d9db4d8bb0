"""What the worker does when it is told to. Messages carry ids only; each task may come twice, late, or never."""

from celery import shared_task
from celery.signals import worker_ready

from webapp.jobs.billing import bills
from webapp.jobs.billing.limit_forecast import look_ahead
from webapp.jobs.launch.launch_forecasts import look_after_forecasts
from webapp.jobs.policies.films import look_after_films, make_film
from webapp.jobs.running.job_watchdog import look_after_jobs
from webapp.jobs.running.launcher import launch_and_watch, watched
from webapp.worker_stop import worker_stop


@shared_task(name="webapp.jobs.tasks.launch_job", acks_late=False, max_retries=0)
def launch_job(job_id: str) -> None:
    """Start and watch the job's process, for as long as the job runs."""
    launch_and_watch(job_id)


@shared_task(name="webapp.jobs.tasks.tick")
def tick() -> None:
    """Every few seconds: bring on what lost messages and dead processes left behind."""
    look_after_jobs()
    look_after_films()
    bills.look_after_bills()
    look_ahead()
    look_after_forecasts()


@shared_task(name="webapp.jobs.tasks.draw_up_bill")
def draw_up_bill(job_id: str) -> None:
    """Draw a job's bill up by part, if that is due."""
    bills.draw_up_bill(job_id)


@shared_task(name="webapp.jobs.tasks.film")
def film(film_id: int) -> None:
    """Film a policy that somebody asked to see."""
    make_film(film_id)


@worker_ready.connect
def look_at_once(**_: object) -> None:
    """A worker that died left jobs behind; the one that takes its place does not wait for the next turn."""
    tick.delay()


@worker_stop.first
def hand_jobs_over() -> None:
    """The worker is to end: its jobs write a checkpoint and wait for the next worker."""
    watched.stop()
