"""The worker measures a surface in a process of its own, and writes each point into the row as it comes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings

from cloud.workers.processes import bound_to_this_process
from webapp.background import Attempt, LifeCycle, Postponed, WorkRefused
from webapp.database.faults import dispensable_write
from webapp.jobs.policies.downloads import checkpoint_path
from webapp.jobs.surfaces.models import NOTHING_MEASURED, Surface, SurfaceState
from webapp.processes.worker_stop import worker_stop

WITHIN_S = 3600.0
_TELL_EVERY_S = 1.0
_SURROUNDINGS = ("OMP_NUM_THREADS=1", "SDL_VIDEODRIVER=dummy", "PYGAME_HIDE_SUPPORT_PROMPT=1")


class Surveying(LifeCycle[Surface]):
    model = Surface
    working = SurfaceState.SURVEYING
    silent_for = timedelta(minutes=12)
    interrupted = "The worker stopped while it was measuring. Measure it again."
    resumes = "It is measured once the disk can be written."
    unforeseen = "It could not be measured ({}). Measure it again; the worker's log says more."
    not_begun = NOTHING_MEASURED

    def do(self, attempt: Attempt[Surface]) -> None:
        grid = attempt.row.grid
        points: list[list[float | None]] = [[None] * grid for _ in range(grid)]
        done, written_s = 0, time.monotonic()
        with _process(_command(attempt.row)) as process:
            for line in process.stdout or ():
                message = json.loads(line)
                if "error" in message:
                    raise WorkRefused(str(message["error"]))
                if "eigenvalues" in message:
                    attempt.write(eigenvalues=message["eigenvalues"], offsets=message["offsets"])
                    continue
                points[message["row"]][message["column"]] = message["return_mean"]
                done += 1
                if time.monotonic() - written_s >= _TELL_EVERY_S:
                    with dispensable_write():  # the last one has all points
                        attempt.write(points=points, done=done)
                    written_s = time.monotonic()
            code = process.wait()
        if worker_stop.requested and code < 0:
            raise Postponed
        if done < grid**2:
            raise WorkRefused(f"The process that measured ended with exit code {code}.")
        attempt.write(state=SurfaceState.READY, points=points, done=done)


SURVEYING = Surveying()


def _command(surface: Surface) -> list[str]:
    checkpoint = checkpoint_path(surface.job_id, surface.checkpoint)
    options = {"--grid": surface.grid, "--span": surface.span, "--episodes": surface.episodes}
    words = [str(word) for pair in options.items() for word in pair]
    return [sys.executable, "-m", "training.rl.surfaces.reward_surface", str(checkpoint), *words]


@contextmanager
def _process(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """Start the process. It ends with this one, with the block, or after an hour."""
    whole = bound_to_this_process(["env", *_SURROUNDINGS, "nice", "-n", "10", *command])
    process = subprocess.Popen(
        whole, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    limit = threading.Timer(WITHIN_S, process.kill)
    limit.start()
    try:
        with worker_stop.ends(process):
            yield process
    finally:
        limit.cancel()
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
