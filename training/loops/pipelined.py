"""The pipelined loop: actors sample with the previous policy while the learner learns, always one version behind.

Learner and actors overlap as in an asynchronous loop, yet nothing depends on timing (Cleanba, Huang et al. 2023):
round k learns from data sampled with version k−2, except for the first round, and the same seed gives the same
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal

from training.engine.checkpoints import Progress
from training.engine.replay import Contribution
from training.loops.loop import Loop
from training.loops.state import EndRound, KeepData, Landing, LoopJob, MakeVersion, PlanAgain, Step
from training.loops.synchronous import WaveState
from training.scaling.plan import Plan


class PipelinedState(WaveState):
    """A wave beside an update by the data of the wave before."""

    def __init__(
        self, loop: Any, job: LoopJob, progress: Progress, plan: Plan, name: Callable[[str], str]
    ) -> None:
        super().__init__(loop, job, progress, plan, name)
        self._pending = tuple(Contribution(payload, self.version) for payload in progress.pending)
        self._updated: Landing | None = None

    def send(self) -> Iterator[Step]:
        if self._sampling or self._updating:
            return
        # The first data is learned from in round 1, so later samples are numbered one round ahead.
        samples = list(self._wave(self.round_no + (2 if self._pending else 1)))
        if self._pending:
            update = self._update(self._pending)
            self._names.insert(0, update.name)
            yield update
        yield from samples

    def land(self, landing: Landing) -> Iterator[Step]:
        if landing.name == self._updating:
            self._updating, self._updated = "", landing
        else:
            self._land_sample(landing)
        if not self._sampling and not self._updating:
            yield from self._all_landed()

    def _all_landed(self) -> Iterator[Step]:
        before, self._pending = len(self._pending), self._wave_is_over()
        updated, self._updated = self._updated, None
        if updated is None:
            self._count_barren(barren=len(self._pending) == before)
            yield KeepData() if self._pending else PlanAgain()
            return
        self._require(updated)
        self._count_barren(barren=False)
        self._made(updated.samples)
        yield MakeVersion(updated.name)
        self._round_ended()
        yield EndRound()

    def kept(self) -> dict[str, Any]:
        return {"pending": tuple(contribution.payload for contribution in self._pending)}


class Pipelined(Loop):
    """Pipelined: actors sample while the learner learns, always exactly one version behind. Repeatable too."""

    kind: Literal["pipelined"] = "pipelined"
    decides = PipelinedState
    depends_on_timing: ClassVar[bool] = False
    collects = "beside learning"

    @property
    def staleness_limit(self) -> int:
        return 1
