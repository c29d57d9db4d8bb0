"""The synchronous loop: the learner waits for all actors, then all actors get the new policy.

The same seed gives the same weights with any number of workers, in whatever order they answer: calls are numbered by
slot, their state and seeds travel with them, and the learner takes contributions in order of slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from training.engine.replay import Contribution
from training.loops.loop import Loop
from training.loops.state import (
    EndRound,
    Landing,
    LoopState,
    MakeVersion,
    NothingWorks,
    PlanAgain,
    Sample,
    SendUpdate,
    Step,
)

BARREN_ROUNDS_ALLOWED = 3


class WaveState(LoopState):
    """A loop in which all actors sample once, side by side, and all wait until the last of them has landed.

    `_sampling` are samples in flight by slot, `_names` all calls of this wave, `_landed` and `_reasons` what came of
    its samples by slot.
    """

    keeps_what_lands_late = False

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._sampling: dict[str, int] = {}
        self._updating = ""
        self._names: list[str] = []
        self._landed: dict[int, Contribution] = {}
        self._reasons: dict[int, str] = {}
        self._barren_waves = 0

    def _wave(self, number: int) -> Iterator[Sample]:
        """Begin a wave: every actor samples, with this number."""
        self._landed, self._reasons = {}, {}
        after = self.after
        self._sampling = {self.name(f"s{slot}-{number}"): slot for slot in range(self.plan.actors)}
        self._names = list(self._sampling)
        for name, slot in self._sampling.items():
            yield Sample(name, after, slot, number)

    def _update(self, batch: tuple[Contribution, ...]) -> SendUpdate:
        self._updating = self.name("update")
        return SendUpdate(self._updating, self.after, batch)

    def _land_sample(self, landing: Landing) -> None:
        slot = self._sampling.pop(landing.name)
        if landing.done:
            self._landed[slot] = Contribution(landing.payload, self.version, landing.name)
        else:
            self._reasons[slot] = landing.reason

    def _wave_is_over(self) -> tuple[Contribution, ...]:
        """Return what the wave brought, in order of slot. What follows depends on all of its calls."""
        self.after = tuple(self._names)
        for _, reason in sorted(self._reasons.items()):
            self.last_failure = reason
        return tuple(self._landed[slot] for slot in sorted(self._landed))

    def _count_barren(self, *, barren: bool) -> None:
        """Count waves one after another that brought nothing. Raises NothingWorks after a few."""
        self._barren_waves = self._barren_waves + 1 if barren else 0
        if self._barren_waves == BARREN_ROUNDS_ALLOWED:
            raise NothingWorks(self.last_failure)

    def _require(self, updated: Landing) -> None:
        if not updated.done:
            raise NothingWorks(f"the update of round {self.round_no + 1} failed: {updated.reason}")


class SynchronousState(WaveState):
    """One wave, then one update by what it brought."""

    @property
    def waiting_for(self) -> str:
        return "the learner" if self._updating else f"{self.plan.actors} actors"

    def send(self) -> Iterator[Step]:
        if not self._sampling and not self._updating:
            yield from self._wave(self.round_no + 1)

    def land(self, landing: Landing) -> Iterator[Step]:
        if landing.name == self._updating:
            self._updating, self.after = "", (landing.name,)
            self._require(landing)
            self._made(landing.samples)
            yield MakeVersion(landing.name)
            self._round_ended()
            yield EndRound()
            return
        self._land_sample(landing)
        if self._sampling:
            return
        batch = self._wave_is_over()
        self._count_barren(barren=not batch)
        yield self._update(batch) if batch else PlanAgain()

    def kept(self) -> dict[str, Any]:
        return {}


class Synchronous(Loop):
    """Synchronous: the learner waits for all actors. The same seed gives the same weights."""

    kind: Literal["synchronous"] = "synchronous"
    decides = SynchronousState
    depends_on_timing: ClassVar[bool] = False
    collects = "before learning"

    @property
    def staleness_limit(self) -> int:
        return 0
