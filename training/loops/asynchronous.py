"""The asynchronous loop: actors and learner never wait for each other, and each uses the newest version or data.

Data older than the staleness limit is dropped and counted. Actors pause while more data waits than the learner can
use before it gets too old: sampling it would only cost money. When no new data has arrived and the algorithm allows
it, the learner uses old data again.

A checkpoint holds the data that waits, the data that may be used again, and each slot's count of fragments. A run that
stops first receives what is still in flight and keeps what was done. So a resumed run loses no data that was paid for
before its checkpoint, and learns from none more often than its uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, Self

from training.base_model import setting
from training.engine.checkpoints import Progress
from training.engine.replay import CircularBuffer, Contribution
from training.loops.loop import Loop
from training.loops.state import (
    EndRound,
    Landing,
    LoopJob,
    LoopState,
    MakeVersion,
    NothingWorks,
    Sample,
    SendUpdate,
    Step,
)
from training.scaling.plan import Plan

FAILURES_ALLOWED_PER_ACTOR = 3
"""A run in which this many calls for each actor failed one after another ends."""


class AsynchronousState(LoopState):
    """The work in progress: fragments by task, with slot and version, data that waits, one update with its `_batch`.

    `_is_new` says whether the update learns from its batch for the first time.
    """

    def __init__(
        self, loop: Any, job: LoopJob, progress: Progress, plan: Plan, name: Callable[[str], str]
    ) -> None:
        super().__init__(loop, job, progress, plan, name)
        self._serials = dict(progress.serials)
        self._sampling: dict[str, tuple[int, int]] = {}
        self._idle = set(range(plan.actors))
        self._sampled_last: dict[int, str] = {}
        self._learned_last = ""
        self._ready = list(progress.waiting)
        self._updating = ""
        self._batch: tuple[Contribution, ...] = ()
        self._is_new = False
        self._dropped = 0
        self._failures_in_a_row = 0
        self._replay: CircularBuffer[Contribution] = CircularBuffer(*job.replay, progress.replay)
        self._kept = True

    @property
    def _per_update(self) -> int:
        return int(self.loop.trajectories_per_update or self.plan.actors)

    @property
    def _oldest_allowed(self) -> int:
        return max(0, self.version - int(self.loop.staleness_limit))

    def send(self) -> Iterator[Step]:
        yield from self._send_learner()
        yield from self._send_actors()

    def _send_actors(self) -> Iterator[Sample]:
        """Send a fragment to every idle slot, unless more data already waits than the learner will use in time. What
        is sampled while it learns is a version behind when the next update begins.
        """
        updates = self.loop.staleness_limit + (not self._updating)
        room = self._per_update * updates - len(self._ready) - len(self._sampling)
        if room <= 0:
            return
        for slot in sorted(self._idle)[:room]:
            if slot >= self.plan.actors:
                break
            self._idle.remove(slot)
            serial = self._serials[slot] = self._serials.get(slot, 0) + 1
            number = self.version * 1_000_000 + serial
            name = self.name(f"s{slot}-{number}")
            self._sampling[name] = slot, self.version
            after = (self._sampled_last.get(slot, ""), self._learned_last, *self.after)
            yield Sample(name, after, slot, number)

    def _send_learner(self) -> Iterator[SendUpdate]:
        """Send an update, if none is in flight and there is data: new data if possible, old if the algorithm may
        replay it.
        """
        if self._updating:
            return
        oldest = self._oldest_allowed
        fresh = [contribution for contribution in self._ready if contribution.version >= oldest]
        self._dropped += len(self._ready) - len(fresh)
        self._ready = fresh
        if len(fresh) >= self._per_update:
            self._batch, self._is_new = tuple(fresh[: self._per_update]), True
            self._ready = fresh[self._per_update :]
        else:
            self._batch, self._is_new = self._replay.take(oldest) or (), False
        if self._batch:
            self._updating = self.name("update")
            after = (*(contribution.name for contribution in self._batch), self._learned_last, *self.after)
            yield SendUpdate(self._updating, after, self._batch)

    def begin_round(self, plan: Plan) -> None:
        """Continue with as many actors as `plan` has. A slot beyond them finishes its fragment and gets no other."""
        self._idle |= set(range(self.plan.actors, plan.actors)) - {
            slot for slot, _ in self._sampling.values()
        }
        super().begin_round(plan)

    def land(self, landing: Landing) -> Iterator[Step]:
        self.after = (landing.name,)
        if landing.name == self._updating:
            yield from self._land_update(landing)
            return
        slot, version = self._sampling.pop(landing.name)
        self._idle.add(slot)
        self._sampled_last[slot] = landing.name
        if landing.done:
            self._failures_in_a_row = 0
            self._ready.append(Contribution(landing.payload, version, landing.name))
            self._kept = False
            return
        self._failures_in_a_row += 1
        if self._failures_in_a_row > FAILURES_ALLOWED_PER_ACTOR * self.plan.actors:
            raise NothingWorks(f"no actor returns a result any more: {landing.reason}")

    def _land_update(self, landing: Landing) -> Iterator[Step]:
        """Take a version. If it was not made, its data waits again and counts as not learned from."""
        batch, self._batch, self._updating = self._batch, (), ""
        if not landing.done:
            if self._is_new:
                self._ready = [*batch, *self._ready]
            else:
                self._replay.give_back(batch)
            raise NothingWorks(f"an update failed: {landing.reason}")
        self._learned_last = landing.name
        if self._is_new:
            self._replay.put(batch, min(contribution.version for contribution in batch))
        self._made(landing.samples if self._is_new else 0)
        yield MakeVersion(landing.name, replayed=not self._is_new)
        self._round_ended()
        dropped, self._dropped, self._kept = self._dropped, 0, True
        yield EndRound(dropped)

    @property
    def keeps_data(self) -> bool:
        return not self._kept

    def kept(self) -> dict[str, Any]:
        return {
            "serials": dict(self._serials),
            "waiting": tuple(self._ready),
            "replay": self._replay.kept,
        }


class Asynchronous(Loop):
    """Asynchronous: actors and learner never wait; data that is too old is dropped."""

    depends_on_timing: ClassVar[bool] = True

    kind: Literal["asynchronous"] = "asynchronous"
    decides = AsynchronousState
    decided_by_times = "which data an update learns from"
    waits_for_slowest = False
    staleness_limit: int = setting(
        4,
        "Staleness limit",
        "Data of a policy older than this is not learned from.",
        ge=1,
        le=1000,
        unit="versions",
    )
    trajectories_per_update: int | None = setting(
        None, "Trajectories per update", "Empty: as many as there are actors.", ge=1, le=4096, advanced=True
    )

    @property
    def judges_beside(self) -> bool:
        return True

    @property
    def goes_by_waves(self) -> bool:
        return False

    @property
    def versions_apart(self) -> int:
        return self.staleness_limit

    def learns_from(self, actors: int) -> int:
        return self.trajectories_per_update or actors

    def learning_from(self, contributions: float) -> Self:
        if self.trajectories_per_update is None:
            return self
        return self.model_copy(update={"trajectories_per_update": max(1, math.ceil(contributions))})
