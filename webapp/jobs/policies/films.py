"""Films of policies: requested on a page or after an evaluation, made by the worker, one at a time.

A worker that stops while filming leaves the film queued; a worker that dies leaves a failed film with the reason, which
a user can request again.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from webapp.accounts.models import User
from webapp.background import Attempt, LifeCycle, Postponed, TakenOver, send_on_commit
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies import evaluation_films
from webapp.jobs.policies.downloads import KeptCheckpoint, checkpoint_path
from webapp.jobs.policies.film_process import WITHIN_S, film_folder, remove_film_files, shoot, short_films


@transaction.atomic
def ask_for_film(*, job: Job, chosen: KeptCheckpoint, user: User, clock: Clock = SYSTEM_CLOCK) -> Film:
    """Return that checkpoint's film, queued if it is new, failed before, or only a short one."""
    wanted = {
        "checkpoint": chosen.name,
        "round_no": chosen.round_no,
        "since": clock.now(),
        "requested_by": user,
    }
    film, made = Film.objects.select_for_update().get_or_create(
        job=job, sha256=chosen.sha256, defaults=wanted
    )
    if not made and (film.state == FilmState.FAILED or film.automatic):
        Film.objects.filter(pk=film.pk).update(**wanted, state=FilmState.QUEUED, reason="")
        film.refresh_from_db()
    if film.state == FilmState.QUEUED:
        send_on_commit(film)
    return film


class Filming(LifeCycle[Film]):
    model = Film
    working = FilmState.FILMING
    silent_for = timedelta(seconds=WITHIN_S + 60)
    interrupted = "The worker stopped while it was filming. Film it again."
    resumes = "It is made once the disk can be written."
    unforeseen = "It could not be filmed ({}). Film it again; the worker's log says more."

    def may_begin(self, row: Film, clock: Clock) -> bool:
        """A short film waits until its job has run longer, or has ended."""
        if not row.automatic or evaluation_films.allowed_cpu_s(row, clock):
            return True
        self.rows.filter(pk=row.pk).update(since=clock.now())
        return False

    def do(self, attempt: Attempt[Film]) -> None:
        film = attempt.row
        name = f"{film.job_id}/{film.sha256[:16]}.webp"
        checkpoint, file = checkpoint_path(film.job_id, film.checkpoint), film_folder() / name
        if not film.automatic:
            facts = shoot(checkpoint, file)
        elif cpu_s := evaluation_films.allowed_cpu_s(film, attempt.clock):
            shot = short_films.shoot(checkpoint, file, cpu_s=cpu_s)
            facts = evaluation_films.with_used_time(film.job, shot)
        else:
            raise Postponed
        try:
            attempt.write(state=FilmState.READY, reason="", file=name, facts=facts)
        except TakenOver:  # it was given up, or its job deleted, meanwhile
            remove_film_files(name)
            raise
        if film.automatic:
            evaluation_films.thin_out(film.job_id)

    def fail(self, attempt: Attempt[Film], reason: str) -> None:
        film = attempt.row
        if film.automatic and not checkpoint_path(film.job_id, film.checkpoint).exists():
            film.delete()  # newer checkpoints took its place
        else:
            super().fail(attempt, reason)

    def tidy(self, now: datetime) -> None:
        short_films.end_if_idle()


FILMING = Filming()
