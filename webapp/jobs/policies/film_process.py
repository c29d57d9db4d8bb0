"""The processes that draw films, because they may hang or crash and the worker must not; and where films are stored.

A film that a user requested has a process of its own. Short films share one, because its start takes longer than a
film: it is started with the first one and ended after ten minutes without.
"""

from __future__ import annotations

import json
import selectors
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings

from cloud.workers.processes import bound_to_this_process
from training.rl.policies.film import ShortFilm, still_of
from webapp.background import Postponed, WorkRefused
from webapp.database.storage_faults import storage_fault
from webapp.jobs.models import Film
from webapp.processes.worker_stop import worker_stop

WITHIN_S = 180
SHORT_WITHIN_S = 60
_IDLE_S = 600.0
# Drawing without a screen: EGL on Linux, elsewhere MuJoCo's default.
_DRAWING = ("SDL_VIDEODRIVER=dummy", "PYGAME_HIDE_SUPPORT_PROMPT=1", "OMP_NUM_THREADS=1")
_ON_LINUX = ("MUJOCO_GL=egl",)


class FilmFailed(WorkRefused):
    """No film was made. The text says why, as a sentence for users."""


def shoot(checkpoint: Path, file: Path, *, seed: int = 0, within_s: float = WITHIN_S) -> dict[str, Any]:
    """Film a policy into `file`; returns what `training.rl.policies.film.FilmFacts` holds.

    Raises FilmFailed, OSError if the disk cannot be written, and Postponed if the worker stops meanwhile.
    """
    done = _run(_command(str(checkpoint), str(file), "--seed", str(seed)), within_s)
    if worker_stop.requested and done.returncode < 0:
        raise Postponed
    return _facts(_last_line(done.stdout), done.returncode, done.stderr)


def _command(*arguments: str) -> list[str]:
    surroundings = (*_DRAWING, *(_ON_LINUX if sys.platform.startswith("linux") else ()))
    return bound_to_this_process(
        ["env", *surroundings, sys.executable, "-m", "training.rl.policies.film", *arguments]
    )


def _run(command: list[str], within_s: float) -> subprocess.CompletedProcess[str]:
    pipe = subprocess.PIPE
    process = _started(command, stdout=pipe, stderr=pipe)
    with process, worker_stop.ends(process):
        try:
            output, errors = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise FilmFailed(_too_long(within_s)) from None
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def _started(command: list[str], **pipes: Any) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(command, cwd=settings.BASE_DIR, text=True, **pipes)
    except OSError as error:
        raise FilmFailed(f"The film's process could not be started: {error.strerror}.") from None


def _too_long(within_s: float) -> str:
    return f"Filming took longer than {within_s:.0f} s and was stopped."


def _last_line(output: str) -> dict[str, Any] | None:
    lines = output.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def _facts(answer: dict[str, Any] | None, returncode: int, errors: str) -> dict[str, Any]:
    if answer is None:
        raise FilmFailed(_unexplained(returncode, errors))
    if "error" in answer:
        if storage_fault(error := OSError(answer.get("errno"), answer["error"])) is not None:
            raise error
        raise FilmFailed(str(answer["error"]))
    return answer


def _unexplained(returncode: int, errors: str) -> str:
    """Return how a process without an answer ended, and its last error output."""
    if returncode < 0:
        return f"The film's process was ended by {signal.Signals(-returncode).name} while it drew."
    complaint = errors.strip().splitlines()[-1:] or ["it said nothing"]
    return f"The film's process ended with exit code {returncode}: {complaint[0][:200]}."


class ShortFilms:
    """A process that makes short films one after the other. It starts again after each end, whatever its cause."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._used_at_s = 0.0

    def shoot(
        self, checkpoint: Path, file: Path, *, cpu_s: float, within_s: float = SHORT_WITHIN_S
    ) -> dict[str, Any]:
        """Film a policy's first seconds into `file` in about `cpu_s` of processor time; the rest as `shoot` above."""
        wanted = json.dumps(asdict(ShortFilm(str(checkpoint), str(file), cpu_s)))
        with self._lock:
            process = self._running()
            try:
                with worker_stop.ends(process):
                    return self._answer(process, wanted, within_s)
            finally:
                self._used_at_s = time.monotonic()

    @property
    def is_warm(self) -> bool:
        """Whether the next film needs no new process."""
        return self._process is not None and self._process.poll() is None

    def end_if_idle(self, idle_s: float = _IDLE_S) -> None:
        """End the process if it has made no film for so long."""
        if self._lock.acquire(blocking=False):
            try:
                if time.monotonic() - self._used_at_s >= idle_s:
                    self._end()
            finally:
                self._lock.release()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            pipe = subprocess.PIPE
            self._process = _started(_command("--serve"), stdin=pipe, stdout=pipe, stderr=pipe, bufsize=1)
        return self._process

    def _answer(self, process: subprocess.Popen[str], wanted: str, within_s: float) -> dict[str, Any]:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(f"{wanted}\n")
        except OSError:  # it has ended; what it said follows
            pass
        with selectors.DefaultSelector() as answers:  # `select` knows no descriptor beyond 1,023
            answers.register(process.stdout, selectors.EVENT_READ)
            answered = answers.select(within_s)
        if not answered:
            self._end()
            raise FilmFailed(_too_long(within_s))
        # An answer is written in one piece. None: the process has ended.
        answer = _last_line(process.stdout.readline())
        if answer is not None:
            return _facts(answer, 0, "")
        _, errors = process.communicate()
        if worker_stop.requested and process.returncode < 0:
            raise Postponed
        return _facts(None, process.returncode, errors)

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:  # closes its pipes
                self._process = None


short_films = ShortFilms()
"""This worker's."""


def film_folder() -> Path:
    """Return the folder of all films, with a folder for each job."""
    return Path(settings.STARLING_DATA) / "films"


def film_path(film: Film, *, still: bool = False) -> Path:
    """Return the path of that film, or of its first picture."""
    path = film_folder() / film.file
    return still_of(path) if still else path


def remove_film_files(name: str) -> None:
    """Delete the film of that name, its first picture, and its job's folder if nothing else is in it."""
    path = film_folder() / name
    for file in (path, still_of(path)):
        file.unlink(missing_ok=True)
    try:
        path.parent.rmdir()
    except OSError:  # other films are in it, or it is gone
        pass
