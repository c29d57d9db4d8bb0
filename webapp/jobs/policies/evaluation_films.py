"""Short films after evaluations: the job's process queues one, the worker makes it while the job has time for it.

Films take at most a twentieth of their job's time: the processor time of each is measured, with the start of the
process that draws, and a film waits until its job has run long enough. The first may count on the time that the job
will take at the pace of its newest rounds. A film that waits gives way to a newer one; one that still waits when
its job has ended is drawn then. Films that are too many or too large are thinned out evenly over the rounds.
"""

from __future__ import annotations

import logging
from typing import Any

from django.db import DatabaseError, transaction

from training.engine.messages import CheckpointSaved
from webapp.background import send, send_on_commit
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import TERMINAL
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies.film_process import remove_film_files, short_films

log = logging.getLogger(__name__)

SHARE = 0.05
MOST_CPU_S = 3.0
KEPT_FILMS = 40
KEPT_BYTES = 8_000_000
_FIRST_CPU_S = 1.2
"""What a film takes with the start of its process, before one was measured."""
_WARM_CPU_S = 0.7
"""What the first film of a job takes where the process is there: it prepares what it draws."""


def queue_film(job_id: str, saved: CheckpointSaved, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Queue a short film of this checkpoint in place of one that still waits. A job never fails for a film."""
    try:
        _queue(job_id, saved, clock)
    except DatabaseError as error:
        log.warning("no film of round %s of %s: %s", saved.round_no, job_id, error)


@transaction.atomic
def _queue(job_id: str, saved: CheckpointSaved, clock: Clock) -> None:
    of_job = Film.objects.filter(job_id=job_id, requested_by=None)
    if of_job.filter(state=FilmState.FAILED).exists():  # the next one would fail as well
        return
    of_job.filter(state=FilmState.QUEUED).delete()
    wanted = {"checkpoint": saved.name, "round_no": saved.round_no, "since": clock.now()}
    film, made = Film.objects.get_or_create(job_id=job_id, sha256=saved.sha256, defaults=wanted)
    if made:
        send_on_commit(film)


def send_waiting_film(job_id: str) -> None:
    """Have the film of a job that has ended drawn now, if one waits. The worker would find it seconds later."""
    for film_id in Film.objects.filter(job_id=job_id, requested_by=None, state=FilmState.QUEUED).values_list(
        "pk", flat=True
    ):
        send(Film, film_id)


def allowed_cpu_s(film: Film, clock: Clock) -> float:
    """Return how much processor time this film may take now; 0 if its job has not run long enough for one."""
    job = film.job
    if job.observed in TERMINAL:  # takes none of its time any more
        return MOST_CPU_S
    used_s, last_s = _used_cpu_s(job)
    job_s = _passed_s(job, clock) + (0.0 if used_s else _expected_s(job))
    free_s = SHARE * job_s - used_s
    needed_s = (last_s or _WARM_CPU_S) if short_films.is_warm else _FIRST_CPU_S
    return min(free_s, MOST_CPU_S) if free_s >= needed_s else 0.0


def _used_cpu_s(job: Job) -> tuple[float, float]:
    """Return the processor time of all short films of the job while it ran, and of the last one."""
    facts = job.films.filter(requested_by=None, state=FilmState.READY).values_list("facts", flat=True)
    last = max(facts, key=lambda fact: float(fact["used_cpu_s"]), default=None)
    return (float(last["used_cpu_s"]), float(last["cpu_s"])) if last else (0.0, 0.0)


def with_used_time(job: Job, facts: dict[str, Any]) -> dict[str, Any]:
    """Return a film's facts with `used_cpu_s`: what all short films took while the job ran, also those deleted."""
    took_s = 0.0 if job.observed in TERMINAL else float(facts["cpu_s"])
    return {**facts, "used_cpu_s": _used_cpu_s(job)[0] + took_s}


def _passed_s(job: Job, clock: Clock) -> float:
    """Return the time since the job's start."""
    return (clock.now() - job.started_at).total_seconds() if job.started_at else 0.0


def _expected_s(job: Job) -> float:
    """Return how long the job will still take at the pace of this run's completed rounds; 0 before the second."""
    limit, last = job.training_facts.progress_limit, job.rounds.order_by("round_no").last()
    if not limit or last is None:
        return 0.0
    # Of the newer half of its rounds: the first ones are slower, and preparing belongs to no round.
    rounds = job.rounds.filter(epoch=last.epoch).order_by("round_no")
    middle = (rounds[0].report["round_no"] + last.report["round_no"]) // 2
    first = rounds.filter(round_no__gte=middle)[0]
    made = last.report["total_env_steps"] - first.report["total_env_steps"]
    ahead = max(0, limit - last.report["total_env_steps"])
    return (last.at - first.at).total_seconds() * ahead / made if made > 0 else 0.0


def thin_out(job_id: str) -> None:
    """Delete short films until they are few and small enough: first those with near neighbours, never the ends."""
    rows = Film.objects.filter(job_id=job_id, requested_by=None, state=FilmState.READY)
    films = list(rows.order_by("round_no", "pk"))
    while len(films) > 2 and (len(films) > KEPT_FILMS or _byte_count(films) > KEPT_BYTES):
        inner = range(1, len(films) - 1)
        gone = films.pop(min(inner, key=lambda at: films[at + 1].round_no - films[at - 1].round_no))
        gone.delete()
        remove_film_files(gone.file)


def _byte_count(films: list[Film]) -> int:
    return sum(int(film.facts["byte_count"]) for film in films)
