"""Learners that compute gradients: slices go to idle ones, what comes back waits in a queue, one call at a time makes
the next version of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from training.engine.replay import Contribution, ReplaySlice, Slices
from training.engine.unfinished import Unfinished, WaitingGradient
from training.loops.aggregation import GradientQueue, QueuedGradient, calibrated
from training.loops.state import (
    ApplyGradients,
    ComputeGradient,
    DropGradient,
    Landing,
    LoopJob,
    MakeVersion,
    Step,
)

if TYPE_CHECKING:
    from training.loops.staleness_aware import StalenessAware


@dataclass(frozen=True)
class _LaunchedGradient:
    """A gradient in flight: its number in the order of launch, its slice, and the version of its parameters."""

    number: int
    slice: ReplaySlice
    version: int


@dataclass(frozen=True)
class _Known:
    """What is known of a gradient in the queue: its task, and the progress that counts with it."""

    name: str
    samples: int


class Learners:
    """Slices, gradients in flight and in the queue, and the call that applies them. `version` counts the versions.

    A learner whose gradient is held goes on at once; one whose gradient is being applied waits for the version that is
    made of it, unless the job says that learners do not wait. `contributions_lost` and `lost_in_a_row` count
    contributions that were given up, since the last round and since the last version. `versions` are those that
    calls may still need; the driver keeps their weights.
    """

    def __init__(
        self,
        loop: StalenessAware,
        job: LoopJob,
        kept: Unfinished,
        version: int,
        name: Callable[[str], str],
        failed: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._job = job
        self._name = name
        self.version = version
        self.most = loop.learners
        self.slices = Slices(kept.slices)
        self._slices_made = kept.slices_made
        queued = [QueuedGradient(one.order, one.version, one.payload) for one in kept.gradients]
        self._queue = GradientQueue(self.most, loop.weights, launched=kept.launched, queued=queued)
        self._known = {one.order: _Known(one.name, job.samples_of(one.payload)) for one in kept.gradients}
        self._held: set[int] = set()
        self._launched: dict[str, _LaunchedGradient] = {}
        self._landed: dict[str, Landing] = {}
        self._applying = ""
        self._applied: tuple[QueuedGradient, ...] = ()
        self._awaiting = self._fresh = 0
        self._last_of_slice: dict[int, str] = {}
        self._learned_last = ""
        self.versions = {*kept.policies, version}
        self._distances: dict[int, float] | None = None
        self._measured_with = (self.most, job.most_actors)
        alike = kept.measured_with == self._measured_with
        self._largest = kept.largest_staleness if alike else None
        self._calibrated_round = kept.calibrated_round if alike else 0
        self._staleness: list[float] = []
        self.contributions_lost = self.lost_in_a_row = self.queue_most = 0
        self._failed = failed

    @property
    def busy(self) -> bool:
        """Whether a learner or the call that applies has work, or a gradient waits for it."""
        return bool(self._launched or self._applying or self._queue.queued or self.slices)

    @property
    def in_flight(self) -> int:
        """How many gradients are being computed. One that has landed and waits for its turn is not."""
        return len(self._launched) - len(self._landed)

    @property
    def applying(self) -> bool:
        return bool(self._applying)

    @property
    def idle(self) -> int:
        """How many more gradients may be sent now. While a version is made, no more may come than the queue has room
        for.
        """
        awaiting = self._awaiting if self._loop.learners_wait else 0
        taken = max(awaiting, self.queued) if self._applying else 0
        return max(0, self.most - len(self._launched) - taken)

    @property
    def queued(self) -> int:
        return len(self._queue.queued)

    @property
    def unfinished_slices(self) -> list[ReplaySlice]:
        return [*self.slices.waiting, *(launched.slice for launched in self._launched.values())]

    @property
    def uncounted_samples(self) -> int:
        """The progress of gradients that are not applied yet, but were the last of their slices."""
        gradients = (*self._queue.queued, *self._applied)
        return sum(self._known[gradient.number].samples for gradient in gradients)

    def bound(self, round_no: int) -> float:
        """What the mean staleness of a release must not exceed in this round; infinite while it is being measured."""
        return self._loop.bound(round_no, self._largest, self._calibrated_round)

    def cut(self, contributions: tuple[Contribution, ...]) -> None:
        """Make a slice of these, for all its passes."""
        self._slices_made += 1
        self.slices.put(ReplaySlice(self._slices_made, contributions))

    def launch(self, after: tuple[str, ...]) -> Iterator[ComputeGradient]:
        """Send a slice to every idle learner, with the newest version."""
        while self.idle and (slice_ := self.slices.take()) is not None:
            yield self._launch_slice(slice_, after)

    def _launch_slice(self, slice_: ReplaySlice, after: tuple[str, ...]) -> ComputeGradient:
        number = self._queue.launch(self.version)
        others = (
            tuple(version for version in self._queue.versions_in_flight if version != self.version)
            if self._loop.truncated.reads_policies
            else ()
        )
        sampled = {contribution.version for contribution in slice_.contributions} & (
            self.versions - {self.version}
        )
        anchors = tuple(sorted(sampled)) if self._job.keeps_sampling_policy else ()
        before = [contribution.name for contribution in slice_.contributions]
        if slice_.number in self._last_of_slice:
            before = [self._last_of_slice[slice_.number]]
        name = self._name(f"gradient{number}")
        self._last_of_slice[slice_.number] = name
        self._launched[name] = _LaunchedGradient(number, slice_, self.version)
        needs = (*before, self._learned_last, *after)
        return ComputeGradient(name, needs, number, slice_, others, anchors)

    def expects(self, name: str) -> bool:
        return name in self._launched

    def land(self, landing: Landing) -> None:
        """A gradient has landed. It is taken when its turn comes."""
        self._landed[landing.name] = landing

    def next_landed(self) -> Landing | None:
        """Return the next gradient to take, if there is one: in the order of launch if the job asks for that, and then
        only between versions.
        """
        if self._loop.order == "launch":
            first = next(iter(self._launched), "")
            return None if self._applying else self._landed.pop(first, None)
        return self._landed.pop(next(iter(self._landed)), None) if self._landed else None

    def landed_in_order(self) -> list[Landing]:
        """Return all that have landed and were not taken: those that are done, and then the others, the last first, so
        that their slices wait in the order of launch.
        """
        landed = [self._landed.pop(name) for name in self._launched if name in self._landed]
        failed = [landing for landing in landed if not landing.done]
        return [*(landing for landing in landed if landing.done), *reversed(failed)]

    def take(self, landing: Landing, *, stopping: bool = False) -> Iterator[DropGradient]:
        """Put a gradient that has landed into the queue, and its slice back if passes are left. A failed one's slice
        goes to the next learner, at most so many times and not where that is in vain; `stopping` counts no failure.
        """
        launched = self._launched.pop(landing.name)
        slice_, number = launched.slice, launched.number
        if not landing.done:
            self._queue.lose(number)
            if stopping:
                self.slices.give_back(slice_)
            elif self._loop.order == "launch" or landing.in_vain or slice_.failures + 1 >= self._job.attempts:
                self._give_up(slice_, landing.reason)
            else:
                self.slices.give_back(replace(slice_, failures=slice_.failures + 1))
            return
        if not landing.finite:
            self._queue.lose(number)
            self._give_up(slice_, "a gradient holds numbers that are not finite")
            yield DropGradient(landing, "it holds numbers that are not finite", "numbers")
            return
        late = self._queue.land(number, launched.version, landing.payload, self.version)
        if late is not None:
            reason = f"it was {self.version - launched.version} versions late"
            yield DropGradient(landing, reason, late)
            if landing.last:
                self._give_up(slice_, f"a gradient was dropped: {reason}")
        else:
            self._queue.enqueue()
            self._known[number] = _Known(landing.name, landing.samples)
            self.queue_most = max(self.queue_most, self.queued)
            self._fresh = 1
        if landing.last:
            self._last_of_slice.pop(slice_.number, None)
        else:
            prepared = slice_.prepared or landing.prepared
            self.slices.put(replace(slice_, passes=slice_.passes + 1, prepared=prepared, failures=0))

    def _give_up(self, slice_: ReplaySlice, reason: str) -> None:
        self._failed(reason)
        self._last_of_slice.pop(slice_.number, None)
        self.contributions_lost += len(slice_.contributions)
        self.lost_in_a_row += len(slice_.contributions)

    def release(
        self, round_no: int, after: tuple[str, ...], *, all_of_round: bool, wanted: float
    ) -> Iterator[Step]:
        """Send what waits to be applied, if it may be and no other is. The version ends a round if it counts at least
        `wanted` samples, or with `all_of_round` if nothing of the round is left after it.
        """
        fresh, self._fresh = self._fresh, 0
        if self._applying:
            return
        release = self._queue.release(self.version, self.bound(round_no), self._distances)
        if release is None:
            self._held |= {gradient.number for gradient in self._queue.queued}
            return
        counted = sum(self._known[gradient.number].samples for gradient in release.gradients)
        ends_round = not (self._launched or self.slices) if all_of_round else counted >= wanted
        self._awaiting, self._applied = fresh, release.gradients
        self._staleness += release.staleness
        # Gradients that land until the next version were computed with one of these.
        behind = {*self._queue.versions_in_flight, self.version} if self._loop.distance == "kl" else set()
        names = [self._known[gradient.number].name for gradient in release.gradients]
        self._applying = self._name("apply")
        yield ApplyGradients(
            self._applying,
            (*names, self._learned_last, *after),
            release,
            ends_round,
            tuple(sorted(behind & self.versions)),
            sum(gradient.number in self._held for gradient in release.gradients),
        )

    def applies(self, name: str) -> bool:
        return bool(self._applying) and name == self._applying

    def land_version(self, landing: Landing) -> MakeVersion:
        """Advance to the version that was made."""
        self.version += 1
        self.versions.add(self.version)
        if self._loop.distance == "kl":
            self._distances = landing.distances
        self._learned_last = landing.name
        for gradient in self._applied:
            del self._known[gradient.number]
            self._held.discard(gradient.number)
        self._applying, self._applied, self._awaiting = "", (), 0
        self.lost_in_a_row = 0
        return MakeVersion(landing.name)

    def take_back(self) -> None:
        """Put the gradients of a version that was not made into the queue again, when none is in flight any more."""
        queued = (*self._applied, *self._queue.queued)
        self._queue = GradientQueue(
            self.most, self._loop.weights, launched=self._queue.launched, queued=queued
        )
        self._applying, self._applied, self._awaiting = "", (), 0

    def forget_versions(self, sampled: Iterable[int]) -> None:
        """Drop the versions that no gradient in flight, slice or fragment needs: one in flight or in no slice yet
        (`sampled`, by version).
        """
        needed = {self.version, *self._queue.versions_in_flight}
        if self._job.keeps_sampling_policy:
            needed |= {
                contribution.version for one in self.unfinished_slices for contribution in one.contributions
            }
            needed.update(sampled)
        self.versions &= needed

    def allow(self, most: int) -> None:
        """Let so many learners run at once from now on, between two rounds."""
        self.most = self._queue.learners = most

    def calibrate(self, round_no: int) -> None:
        """Take the bound from a round that held nothing, if it was one."""
        staleness, self._staleness = self._staleness, []
        if self._loop.hold and self._loop.largest_staleness is None and self._largest is None and staleness:
            self._largest = calibrated(staleness, self._loop.calibration)
            self._calibrated_round = round_no

    def unfinished(self) -> Unfinished:
        """Return what a checkpoint holds of all this. A pass in flight counts as not done. Its policies are empty: the
        driver has them.
        """
        gradients = sorted((*self._queue.queued, *self._applied), key=lambda gradient: gradient.number)
        slices = (*(launched.slice for launched in self._launched.values()), *self.slices.waiting)
        versions = {contribution.version for slice_ in slices for contribution in slice_.contributions}
        keeps = self._job.keeps_sampling_policy
        return Unfinished(
            slices=slices,
            gradients=tuple(
                WaitingGradient(one.payload, one.version, one.number, self._known[one.number].name)
                for one in gradients
            ),
            policies={version: b"" for version in sorted(versions & self.versions) if keeps},
            slices_made=self._slices_made,
            launched=self._queue.launched,
            largest_staleness=self._largest,
            calibrated_round=self._calibrated_round,
            measured_with=self._measured_with if self._largest is not None else (),
        )
