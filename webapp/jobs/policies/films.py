"""Films of policies: requested on a page, made by the worker, one at a time.

A lost message costs seconds: `recover_films` reads the rows and sends it again. A worker that stops while
filming leaves the film queued; a worker that dies leaves a failed film with the reason, which a user can
request again.
"""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from cloud.workers.processes import bound_to_this_process
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Film, FilmState, Job
from webapp.jobs.policies.downloads import KeptCheckpoint, checkpoint_path
from webapp.worker_stop import worker_stop

log = logging.getLogger(__name__)

ASK_AGAIN_AFTER = timedelta(seconds=4)
WITHIN_S = 180
GIVEN_UP_AFTER = timedelta(seconds=WITHIN_S + 60)
INTERRUPTED = "The worker stopped while it was filming. Film it again."
_FILMS_AT_ONCE = 10
# Drawing without a screen: EGL on Linux, elsewhere MuJoCo's default.
_DRAWING = ("SDL_VIDEODRIVER=dummy", "PYGAME_HIDE_SUPPORT_PROMPT=1", "OMP_NUM_THREADS=1")
_ON_LINUX = ("MUJOCO_GL=egl",)
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
        transaction.on_commit(lambda: send_hint("webapp.jobs.tasks.film", film.pk), robust=True)
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
        if not send_hint("webapp.jobs.tasks.film", film_id):
            break


def film_folder() -> Path:
    """Return the folder of all films, with a folder for each job."""
    return Path(settings.STARLING_DATA) / "films"


def film_path(film: Film, *, still: bool = False) -> Path:
    """Return the path of that film, or of its first picture."""
    path = film_folder() / film.file
    return path.with_stem(f"{path.stem}-still") if still else path


# The process that draws: it may hang or crash, and the worker must not


class FilmFailed(Exception):
    """No film was made. The text says why, as a sentence for users."""


class FilmInterrupted(Exception):
    """The worker stopped during filming."""


def shoot(checkpoint: Path, file: Path, *, seed: int = 0, within_s: float = WITHIN_S) -> dict[str, Any]:
    """Film an episode into `file`; returns what `training.film.FilmFacts` holds.

    FilmFailed for any failure. FilmInterrupted if the worker stops meanwhile.
    """
    surroundings = (*_DRAWING, *(_ON_LINUX if sys.platform.startswith("linux") else ()))
    program = [sys.executable, "-m", "training.film", str(checkpoint), str(file), "--seed", str(seed)]
    command = bound_to_this_process(["env", *surroundings, *program])
    done = _run(command, within_s)
    if worker_stop.asked and done.returncode < 0:
        raise FilmInterrupted
    answer = _last_line(done.stdout)
    if answer is None:
        raise FilmFailed(_unexplained(done))
    if "error" in answer:
        raise FilmFailed(str(answer["error"]))
    return answer


def _run(command: list[str], within_s: float) -> subprocess.CompletedProcess[str]:
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, cwd=settings.BASE_DIR, stdout=pipe, stderr=pipe, text=True)
    except OSError as error:
        raise FilmFailed(f"The film's process could not be started: {error.strerror}.") from None
    with process, worker_stop.ends(process):
        try:
            output, errors = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise FilmFailed(f"Filming took longer than {within_s:.0f} s and was stopped.") from None
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _last_line(output: str) -> dict[str, Any] | None:
    lines = output.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _unexplained(done: subprocess.CompletedProcess[str]) -> str:
    """Return how a process without an answer ended, and its last error output."""
    if done.returncode < 0:
        return f"The film's process was ended by {signal.Signals(-done.returncode).name} while it drew."
    complaint = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
    return f"The film's process ended with exit code {done.returncode}: {complaint[0][:200]}."
