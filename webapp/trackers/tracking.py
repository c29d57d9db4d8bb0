"""What trackers have in common: what a run is called there, what is sent, how sending fails, and the thread that sends.

The thread is its own, so that nothing of it holds the run up. At most `MOST_WAITING` rows wait. A tracker that is
slower than the run gets every other one of them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar

from webapp.formatting import plural

GOES_ON = "The run goes on without it."

End = Literal["finished", "failed", "stopped", "paused"]


class NotTracked(Exception):
    """The tracker does not take this run; the text is a sentence for the job's page."""


class TryLater(NotTracked):
    """The tracker does not answer now, but may later."""


@dataclass(frozen=True)
class RunFacts:
    """How a run appears in a tracker. `parameters` are its spec by path."""

    job_id: str
    name: str
    parameters: Mapping[str, str]
    tags: Mapping[str, str]


class TrackedStep(NamedTuple):
    """Figures at a step of the run. Times are seconds since 1970, by the platform's clock."""

    step: int
    at_s: float
    figures: Mapping[str, float]


class Tracking(Protocol):
    """One run in one tracker. Every method may raise NotTracked, and may take its time: only a thread calls them."""

    def begin(self, facts: RunFacts) -> str:
        """Create the run, or find the one that an earlier process of the job made. Returns its page's address."""

    def send(self, rows: Sequence[TrackedStep]) -> None: ...

    def end(self, end: End, figures: Mapping[str, float]) -> None:
        """Record how the run ended. A paused one stays open."""

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Keep the files of the policy beside the run, once it has ended, where the tracker takes files."""

    def close(self) -> None:
        """Let go of everything, at once and without raising."""


log = logging.getLogger(__name__)

MOST_WAITING = 1000
_AT_ONCE = 100
_AGAIN_AFTER_S = (1.0, 5.0, 20.0, 60.0)
T = TypeVar("T")


class Stream:
    """`word` names the tracker in sentences. `url` and `problem` may be read at any time."""

    def __init__(
        self,
        word: str,
        run: Tracking,
        facts: RunFacts,
        *,
        again_after_s: Sequence[float] = _AGAIN_AFTER_S,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._word, self._run, self._facts = word, run, facts
        self._again_after_s, self._most_waiting = again_after_s, most_waiting
        self._waiting: list[TrackedStep] = []
        self._left_out = 0
        self._end: tuple[End, Mapping[str, float]] | None = None
        self._files: Mapping[str, bytes] = {}
        self._ending = False
        self._abandoned = threading.Event()
        self._changed = threading.Condition()
        self._failure = ""
        self.url = ""
        self._thread = threading.Thread(target=self._work, name=f"tracker {word}", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> str:
        """Why rounds are missing there, as a sentence; empty if none are."""
        if self._failure:
            return self._failure
        if self._left_out:
            return (
                f"{self._word} is slower than this run: {plural(self._left_out, 'row')} of figures left out."
            )
        return ""

    def offer(self, row: TrackedStep) -> None:
        """Let a row be sent. Returns at once, whatever the tracker does."""
        with self._changed:
            if self._failure:
                return
            self._waiting.append(row)
            if len(self._waiting) > self._most_waiting:
                kept = self._waiting[1::2]
                self._left_out += len(self._waiting) - len(kept)
                self._waiting = kept
            self._changed.notify()

    def close(
        self,
        grace_s: float,
        end: End | None = None,
        figures: Mapping[str, float] | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """Send what waits and how the run ended, within the grace at most. Without an end the run may go on."""
        ends_s = time.monotonic() + grace_s
        with self._changed:
            self._end = None if end is None else (end, figures or {})
            self._files = files or {}
            self._ending = True
            self._changed.notify()
        self._thread.join(max(0.0, ends_s - time.monotonic()))
        self._abandoned.set()
        if self._thread.is_alive():
            waiting = plural(len(self._waiting), "row") if self._waiting else "the last rows"
            self._failure = (
                self._failure or f"{self._word} had not taken {waiting} of figures when the run ended."
            )
        self._run.close()

    def _work(self) -> None:
        try:
            self.url = self._patiently(lambda: self._run.begin(self._facts))
            while rows := self._take():
                self._patiently(lambda rows=rows: self._run.send(rows))  # type: ignore[misc]
            if self._end is not None:
                end, figures = self._end
                self._patiently(lambda: self._run.end(end, figures))
                if self._files:
                    self._patiently(lambda: self._run.keep(self._files))
        except NotTracked as refusal:
            self._fail(str(refusal))
        except Exception as error:
            log.exception("%s", self._word)
            self._fail(f"Sending to {self._word} failed: {type(error).__name__}.")

    def _take(self) -> list[TrackedStep]:
        """The next rows; none once all are taken and the run is over. Waits for them."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ending)
            taken, self._waiting = self._waiting[:_AT_ONCE], self._waiting[_AT_ONCE:]
            return taken

    def _patiently(self, act: Callable[[], T]) -> T:
        """Do it, again and again while the tracker does not answer, until no patience or time is left."""
        for wait_s in self._again_after_s:
            try:
                return act()
            except TryLater as error:
                log.warning("%s: %s", self._word, error)
                if self._abandoned.wait(wait_s):
                    raise
        return act()

    def _fail(self, sentence: str) -> None:
        with self._changed:
            if not self._abandoned.is_set():
                self._failure = f"{sentence} {GOES_ON}"
            self._waiting = []
