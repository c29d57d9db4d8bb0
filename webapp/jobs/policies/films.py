"""Films of policies: requested on a page or after an evaluation, made by the worker, one at a time.

A lost message costs seconds: `recover_films` reads the rows and sends it again. A worker that stops while
filming leaves the film queued; a worker that dies leaves a failed film with the reason, which a user can
request again.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any

from django.db import transaction

from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies import evaluation_films
from webapp.jobs.policies.downloads import KeptCheckpoint, checkpoint_path
from webapp.jobs.policies.film_process import (
    WITHIN_S,
    FilmFailed,
    FilmInterrupted,
    FilmNotStored,
    film_folder,
    remove_film_files,
    shoot,
    short_films,
)

log = logging.getLogger(__name__)

ASK_AGAIN_AFTER = timedelta(seconds=4)
GIVEN_UP_AFTER = timedelta(seconds=WITHIN_S + 60)
INTERRUPTED = "The worker stopped while it was filming. Film it again."
_FILMS_AT_ONCE = 10
# Drawing keeps a core busy, and training has priority.
_one_at_a_time = threading.Lock()


@transaction.atomic
def ask_for_film(*, job: Job, chosen: KeptCheckpoint, user: Any, clock: Clock = SYSTEM_CLOCK) -> Film:
    """Return that checkpoint's film, queued if it is new, failed before, or only a short one."""
    wanted = {
        "checkpoint": chosen.name,
        "round_no": chosen.round_no,
        "since": clock.now(),
        "asked_by": user,
    }
    film, made = Film.objects.select_for_update().get_or_create(
        job=job, sha256=chosen.sha256, defaults=wanted
    )
    if not made and (film.state == FilmState.FAILED or film.automatic):
        Film.objects.filter(pk=film.pk).update(**wanted, state=FilmState.QUEUED, reason="")
        film.refresh_from_db()
    if film.state == FilmState.QUEUED:
        transaction.on_commit(lambda: send_hint("webapp.jobs.tasks.film", film.pk), robust=True)
    return film


def make_film(film_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Make the queued film with that id. Does nothing if it is not queued, or another film is being made."""
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        film = Film.objects.select_related("job").filter(pk=film_id, state=FilmState.QUEUED).first()
        if film is None:
            return
        cpu_s = evaluation_films.allowed_cpu_s(film, clock) if film.automatic else None
        if film.automatic and not cpu_s:
            evaluation_films.put_off(film, clock)
            return
        now = clock.now()
        if Film.objects.filter(pk=film_id, state=FilmState.QUEUED).update(state=FilmState.FILMING, since=now):
            film.since = now
            _make(film, cpu_s, clock)
    finally:
        _one_at_a_time.release()


def _make(film: Film, cpu_s: float | None, clock: Clock) -> None:
    name = f"{film.job_id}/{film.sha256[:16]}.webp"
    checkpoint, file = checkpoint_path(film.job_id, film.checkpoint), film_folder() / name
    try:
        if cpu_s is None:
            facts = shoot(checkpoint, file)
        else:
            facts = evaluation_films.with_used_time(
                film.job, short_films.shoot(checkpoint, file, cpu_s=cpu_s)
            )
        changes = {"state": FilmState.READY, "reason": "", "file": name, "facts": facts}
    except FilmInterrupted:
        changes = {"state": FilmState.QUEUED}
    except FilmNotStored as error:
        log.warning("film %s is made later: %s", film.pk, error)
        changes = {"state": FilmState.QUEUED, "reason": str(error)}
    except FilmFailed as error:
        if film.automatic and not checkpoint.exists():  # newer ones took its place
            Film.objects.filter(pk=film.pk).delete()
            return
        changes = {"state": FilmState.FAILED, "reason": str(error)}
    except Exception as error:
        log.exception("film %s", film.pk)
        changes = {"state": FilmState.FAILED, "reason": f"{type(error).__name__}: {error}."}
    # Only if it was not given up, nor its job deleted, meanwhile.
    mine = Film.objects.filter(pk=film.pk, state=FilmState.FILMING, since=film.since)
    if not mine.update(**changes, since=clock.now()):
        remove_film_files(name)
    elif film.automatic:
        evaluation_films.thin_out(film.job_id)


def recover_films(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Queue waiting films again, and fail those whose worker has stopped responding."""
    now = clock.now()
    short_films.end_if_idle()
    lost = Film.objects.filter(state=FilmState.FILMING, since__lt=now - GIVEN_UP_AFTER)
    lost.update(state=FilmState.FAILED, reason=INTERRUPTED, since=now)
    if _one_at_a_time.locked():
        return
    waiting = Film.objects.filter(state=FilmState.QUEUED, since__lte=now - ASK_AGAIN_AFTER)
    for film_id in waiting.order_by("since").values_list("pk", flat=True)[:_FILMS_AT_ONCE]:
        if not send_hint("webapp.jobs.tasks.film", film_id):
            break
