"""Films of policies: requested on a page, made by the worker, one at a time.

A lost message costs seconds: `recover_films` reads the rows and sends it again. A worker that stops while
filming leaves the film queued; a worker that dies leaves a failed film with the reason, which a user can
request again.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from webapp.celery import app as celery_app
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies.downloads import KeptCheckpoint, checkpoint_path
from webapp.jobs.policies.film_process import WITHIN_S, FilmFailed, FilmInterrupted, shoot

log = logging.getLogger(__name__)

ASK_AGAIN_AFTER = timedelta(seconds=4)
GIVEN_UP_AFTER = timedelta(seconds=WITHIN_S + 60)
INTERRUPTED = "The worker stopped while it was filming. Film it again."
_FILMS_AT_ONCE = 10
# Drawing keeps a core busy, and training has priority.
_one_at_a_time = threading.Lock()


@transaction.atomic
def ask_for_film(*, job: Job, chosen: KeptCheckpoint, user: Any, clock: Clock = SYSTEM_CLOCK) -> Film:
    """Return that checkpoint's film, queued if it is new or failed before."""
    wanted = {
        "checkpoint": chosen.name,
        "round_no": chosen.round_no,
        "since": clock.now(),
        "asked_by": user,
    }
    film, made = Film.objects.select_for_update().get_or_create(
        job=job, sha256=chosen.sha256, defaults=wanted
    )
    if not made and film.state == FilmState.FAILED:
        Film.objects.filter(pk=film.pk).update(**wanted, state=FilmState.QUEUED, reason="")
        film.refresh_from_db()
    if film.state == FilmState.QUEUED:
        transaction.on_commit(lambda: _ask_worker(film.pk), robust=True)
    return film


def make_film(film_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Make the queued film with that id. Does nothing if it is not queued, or another film is being made."""
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        queued = Film.objects.filter(pk=film_id, state=FilmState.QUEUED)
        if queued.update(state=FilmState.FILMING, since=clock.now()):
            _make(Film.objects.get(pk=film_id), clock)
    finally:
        _one_at_a_time.release()


def _make(film: Film, clock: Clock) -> None:
    name = f"{film.job_id}/{film.sha256[:16]}.webp"
    try:
        facts = shoot(checkpoint_path(film.job_id, film.checkpoint), film_folder() / name)
        changes = {"state": FilmState.READY, "reason": "", "file": name, "facts": facts}
    except FilmInterrupted:
        changes = {"state": FilmState.QUEUED}
    except FilmFailed as error:
        changes = {"state": FilmState.FAILED, "reason": str(error)}
    except Exception as error:
        log.exception("film %s", film.pk)
        changes = {"state": FilmState.FAILED, "reason": f"{type(error).__name__}: {error}."}
    # Only if it was not given up meanwhile.
    mine = Film.objects.filter(pk=film.pk, state=FilmState.FILMING, since=film.since)
    mine.update(**changes, since=clock.now())


def recover_films(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Queue waiting films again, and fail those whose worker has stopped responding."""
    now = clock.now()
    lost = Film.objects.filter(state=FilmState.FILMING, since__lt=now - GIVEN_UP_AFTER)
    lost.update(state=FilmState.FAILED, reason=INTERRUPTED, since=now)
    if _one_at_a_time.locked():
        return
    waiting = Film.objects.filter(state=FilmState.QUEUED, since__lte=now - ASK_AGAIN_AFTER)
    for film_id in waiting.order_by("since").values_list("pk", flat=True)[:_FILMS_AT_ONCE]:
        if not _ask_worker(film_id):
            break


def film_folder() -> Path:
    """Return the folder of all films, with a folder for each job."""
    return Path(settings.STARLING_DATA) / "films"


def film_path(film: Film, *, still: bool = False) -> Path:
    """Return the path of that film, or of its first picture."""
    path = film_folder() / film.file
    return path.with_stem(f"{path.stem}-still") if still else path


def _ask_worker(film_id: int) -> bool:
    """Send the message; False if that failed. The row says the same and is read every few seconds."""
    try:
        celery_app.send_task("webapp.jobs.tasks.film", args=[film_id])
    except Exception as error:  # whatever the broker's client raises: the request must not fail with it
        log.warning("film %s waits for the next look, no message could be sent: %s", film_id, error)
        return False
    return True
