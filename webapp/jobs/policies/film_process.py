"""Films a checkpoint's policy in a separate process: drawing may hang or crash, and the worker must not."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from django.conf import settings

from cloud.workers.processes import bound_to_this_process
from webapp.worker_stop import worker_stop

WITHIN_S = 180
# Drawing without a screen: EGL on Linux, elsewhere MuJoCo's default.
_DRAWING = ("SDL_VIDEODRIVER=dummy", "PYGAME_HIDE_SUPPORT_PROMPT=1", "OMP_NUM_THREADS=1")
_ON_LINUX = ("MUJOCO_GL=egl",)


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
