"""What a job's platform reports while it runs: why its calls wait, and its cache's savings.

The job's process writes it when it has changed, at most every few seconds; pages read it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from cloud.platforms.throttling import ReportsThrottling
from cloud.platforms.trajectory_cache import CachingPlatform
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import format_file_size, plural
from webapp.jobs.models import Job, PlatformNote

_EVERY_S = 2.0
_LETTERS = 400
P = TypeVar("P")


class Notes:
    """The notes of one run under `epoch`. A run that lost its lease writes nothing."""

    def __init__(
        self,
        job_id: str,
        epoch: int,
        *,
        clock: Clock = SYSTEM_CLOCK,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._job_id = job_id
        self._epoch = epoch
        self._clock = clock
        self._now_s = now_s
        self._platform: object = None
        self._looked_s = float("-inf")
        self._before = (0, 0)
        self._written: tuple[str, int, int, int] | None = None

    def of(self, platform: P) -> P:
        """Observe this platform from now on. Its cache's counts continue those of earlier runs."""
        self._platform = platform
        row, _ = PlatformNote.objects.get_or_create(job_id=self._job_id, defaults={"at": self._clock.now()})
        self._before = (row.cache_hits, row.cache_misses)
        PlatformNote.objects.filter(pk=row.pk, epoch__lt=self._epoch).update(epoch=self._epoch, held_back="")
        return platform

    def look(self) -> None:
        """Write changes. May be called often."""
        now_s = self._now_s()
        if self._platform is not None and now_s - self._looked_s >= _EVERY_S:
            self._looked_s = now_s
            words = (
                self._platform.throttling_reasons() if isinstance(self._platform, ReportsThrottling) else ""
            )
            self._write(words)

    def end(self) -> None:
        """Clear the reasons for waiting."""
        if self._platform is not None:
            self._write("")

    def _write(self, words: str) -> None:
        hits, misses, held = 0, 0, 0
        if isinstance(self._platform, CachingPlatform):
            cache = self._platform.cache
            hits, misses, held = cache.hits, cache.misses, cache.stored_bytes
        written = (words[:_LETTERS], self._before[0] + hits, self._before[1] + misses, held)
        if written != self._written:
            self._written = written
            PlatformNote.objects.filter(job_id=self._job_id, epoch=self._epoch).update(
                held_back=written[0],
                cache_hits=written[1],
                cache_misses=written[2],
                cache_bytes=written[3],
                at=self._clock.now(),
            )


def throttling_sentences(job: Job) -> str:
    """Return why the cloud limits the job's pace, in whole sentences; empty if it does not."""
    return PlatformNote.objects.filter(job=job).values_list("held_back", flat=True).first() or ""


def cache_words(job: Job) -> str:
    """ "Trajectory cache: 12 of 48 rollouts were there already and cost nothing; it holds 3.4 MB."; empty
    without a cache."""
    note = PlatformNote.objects.filter(job=job).first()
    sampled = note.cache_hits + note.cache_misses if note is not None else 0
    if note is None or not sampled:
        return ""
    return (
        f"Trajectory cache: {note.cache_hits:,} of {plural(sampled, 'rollout')} were there already and"
        f" cost nothing; it holds {format_file_size(note.cache_bytes)}."
    )
