"""The worker measures a surface in a process of its own, and writes each point into the row as it comes."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from celery import shared_task
from django.conf import settings

from cloud.workers.processes import bound_to_this_process
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.database_faults import dispensable_write, is_unavailable
from webapp.jobs.policies.downloads import checkpoint_path
from webapp.surfaces import services
from webapp.surfaces.models import NOTHING_MEASURED, Surface, SurfaceState
from webapp.worker_stop import worker_stop

log = logging.getLogger(__name__)

WITHIN_S = 3600.0
_TELL_EVERY_S = 1.0
_SURROUNDINGS = ("OMP_NUM_THREADS=1", "SDL_VIDEODRIVER=dummy", "PYGAME_HIDE_SUPPORT_PROMPT=1")
# A measurement keeps a core busy for minutes, and training needs the cores more.
_one_at_a_time = threading.Lock()


class NotMeasured(Exception):
    """The text says why, as a sentence for people."""


@shared_task(name="webapp.surfaces.tasks.survey", expires=60)
def survey(surface_id: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Measure the surface if it is queued. Does nothing while this worker measures another."""
    if not _one_at_a_time.acquire(blocking=False):
        return
    try:
        queued = Surface.objects.filter(pk=surface_id, state=SurfaceState.QUEUED)
        if queued.update(state=SurfaceState.SURVEYING, since=clock.now()):
            _Survey(Surface.objects.get(pk=surface_id), clock).make()
    finally:
        _one_at_a_time.release()


class _Survey:
    """One surface being measured."""

    def __init__(self, surface: Surface, clock: Clock) -> None:
        self._surface = surface
        self._clock = clock
        self._points: list[list[float | None]] = [[None] * surface.grid for _ in range(surface.grid)]
        self._done = 0
        self._written_s = time.monotonic()

    def make(self) -> None:
        try:
            with _process(self._command()) as process:
                for line in process.stdout or ():
                    self._take(json.loads(line))
                code = process.wait()
            if worker_stop.requested and code < 0:
                self._write(state=SurfaceState.QUEUED, **NOTHING_MEASURED)
                return
            if self._done < self._surface.grid**2:
                raise NotMeasured(f"The process that measured ended with exit code {code}.")
            self._write(state=SurfaceState.READY)
        except NotMeasured as error:
            self._write(state=SurfaceState.FAILED, reason=str(error)[:500])
        except Exception as error:
            if is_unavailable(error):
                log.warning("surface %s is measured again later: %s", self._surface.pk, error)
                self._write(state=SurfaceState.QUEUED, **NOTHING_MEASURED)
                return
            log.exception("surface %s", self._surface.pk)
            self._write(state=SurfaceState.FAILED, reason=f"{type(error).__name__}: {error}."[:500])

    def _command(self) -> list[str]:
        surface = self._surface
        checkpoint = checkpoint_path(surface.job_id, surface.checkpoint)
        options = {"--grid": surface.grid, "--span": surface.span, "--episodes": surface.episodes}
        words = [str(word) for pair in options.items() for word in pair]
        return [sys.executable, "-m", "training.rl.surfaces.reward_surface", str(checkpoint), *words]

    def _take(self, message: dict[str, Any]) -> None:
        if "error" in message:
            raise NotMeasured(str(message["error"]))
        if "eigenvalues" in message:
            self._write(eigenvalues=message["eigenvalues"], offsets=message["offsets"])
            return
        self._points[message["row"]][message["column"]] = message["return_mean"]
        self._done += 1
        if time.monotonic() - self._written_s >= _TELL_EVERY_S:
            with dispensable_write():  # the last one has all points
                self._write()

    def _write(self, **changes: Any) -> None:
        """Write to the row. Raises NotMeasured if the surface was given up meanwhile."""
        self._written_s = time.monotonic()
        mine = Surface.objects.filter(pk=self._surface.pk, state=SurfaceState.SURVEYING)
        known = {"points": self._points, "done": self._done, "since": self._clock.now()}
        if not mine.update(**{**known, **changes}):
            raise NotMeasured("It was given up.")


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


@shared_task(name="webapp.surfaces.tasks.tick")
def tick() -> None:
    """Every few seconds: continue what lost messages and dead workers left behind."""
    services.look_after_surfaces()
