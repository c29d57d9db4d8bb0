"""Learners that compute gradients: slices go to idle ones, what comes back waits in a queue, one call at a time makes
the next version of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from training.aggregation import GradientQueue, QueuedGradient, Release, calibrated, fitting_learners
from training.codec import Document, decode
from training.loops.flight import Landed
from training.loops.model import StalenessAware
from training.loops.occupancy import Occupancy
from training.loops.run import Run
from training.messages import FAULTS_NOT_RETRIED, CallFailed, Event, Outcome
from training.replay import Slice, Slices, Trajectory
from training.reports import GradientsReport
from training.seeds import derive
from training.unfinished import Unfinished, WaitingGradient


@dataclass(frozen=True)
class _Sent:
    """A gradient in flight: its number in the order of launch, its slice, and the version of its parameters."""

    number: int
    slice: Slice
    version: int


@dataclass(frozen=True)
class _Known:
    """What is known of a gradient in the queue: its task, its cost, and the progress that counts with it."""

    name: str
    cost_picodollars: int
    env_steps: int


class Learners:
    """Slices, gradients in flight and in the queue, and the call that applies them. `clock` counts the versions.

    A learner whose gradient is held goes on at once; one whose gradient is being applied waits for the version that is
    made of it, unless the job says that learners do not wait. `trajectories_lost` and `lost_in_a_row` count
    trajectories that were given up, since the last round and since the last version.
    """

    def __init__(self, run: Run, loop: StalenessAware) -> None:
        kept = run.progress.unfinished
        self._run = run
        self._loop = loop
        self._most = loop.learners
        self.slices = Slices(kept.slices)
        self._slices_made = kept.slices_made
        waiting = [QueuedGradient(one.order, one.version, one.payload) for one in kept.gradients]
        self._queue = GradientQueue(self._most, loop.weights, launched=kept.launched, waiting=waiting)
        self._known = {one.order: _Known(one.name, 0, _env_steps(one.payload)) for one in kept.gradients}
        self._held: set[int] = set()
        self._flying: dict[str, _Sent] = {}
        self._arrived: dict[str, Landed] = {}
        self._applying = ""
        self._applied: tuple[QueuedGradient, ...] = ()
        self._awaiting = self._fresh = 0
        self._last_of_slice: dict[int, str] = {}
        self._learned_last: tuple[str, ...] = ()
        self._policies = dict(kept.policies)
        self._distances: dict[int, float] | None = None
        self._parameters = run.publish(run.task.parameters(run.progress.learner))
        self._policies[self.clock] = run.progress.weights
        # The same for all calls of a round, as for one update of the synchronous loop.
        self.fraction_done = run.fraction_done()
        self._measured_with = (self._most, run.actors_at_most)
        alike = kept.measured_with == self._measured_with
        self._largest = kept.largest_staleness if alike else None
        self._calibrated_round = kept.calibrated_round if alike else 0
        self.occupancy = Occupancy(self._most, run.now_s())
        self.trajectories_lost = self.lost_in_a_row = 0

    @property
    def clock(self) -> int:
        return self._run.progress.version

    @property
    def busy(self) -> bool:
        """Whether a learner or the call that applies has work, or a gradient waits for it."""
        return bool(self._flying or self._applying or self._queue.waiting or self.slices)

    @property
    def flying(self) -> int:
        """How many gradients are being computed. One that has landed and waits for its turn is not."""
        return len(self._flying) - len(self._arrived)

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
        return max(0, self._most - len(self._flying) - taken)

    @property
    def queued(self) -> int:
        return len(self._queue.waiting)

    @property
    def unfinished_slices(self) -> list[Slice]:
        return [*self.slices.waiting, *(sent.slice for sent in self._flying.values())]

    @property
    def uncounted_steps(self) -> int:
        """The progress of gradients that are not applied yet, but were the last of their slices."""
        gradients = (*self._queue.waiting, *self._applied)
        return sum(self._known[one.number].env_steps for one in gradients)

    @property
    def bound(self) -> float:
        """What the mean staleness of a release must not exceed in this round; infinite while it is being measured."""
        return self._loop.bound(self._run.progress.round_no + 1, self._largest, self._calibrated_round)

    def cut(self, trajectories: tuple[Trajectory, ...]) -> None:
        """Make a slice of these, for all its passes."""
        self._slices_made += 1
        self.slices.put(Slice(self._slices_made, trajectories))

    def send(self) -> None:
        """Send a slice to every idle learner, with the newest version."""
        while self.idle and (one := self.slices.take()) is not None:
            self._launch(one)

    def _launch(self, one: Slice) -> None:
        run, task = self._run, self._run.task
        number = self._queue.launch(self.clock)
        others = (
            [self._policies[version] for version in self._queue.flying_versions if version != self.clock]
            if self._loop.truncated.reads_policies
            else []
        )
        sampled = {trajectory.version for trajectory in one.trajectories} & self._older_policies
        anchors = (
            [self._policies[version] for version in sorted(sampled)] if task.keeps_sampling_policy else []
        )
        call = run.call(
            f"gradient{number}",
            task.gradient(self.fraction_done, one.passes + 1, len(others), anchors=len(anchors)),
            where=self._loop.where,
            seed=derive(run.spec.seed, "update", one.number),
            weights=self._parameters,
            env_state=one.prepared,
            inputs=(*(trajectory.payload for trajectory in one.trajectories), *others, *anchors),
        )
        before = [trajectory.name for trajectory in one.trajectories if trajectory.name]
        if one.number in self._last_of_slice:
            before = [self._last_of_slice[one.number]]
        name = run.flight.launch(call, run.attempts(call), [*before, *self._learned_last])
        self._last_of_slice[one.number] = name
        self._flying[name] = _Sent(number, one, self.clock)

    @property
    def _older_policies(self) -> set[int]:
        return set(self._policies) - {self.clock}

    def expects(self, landed: Landed) -> bool:
        return landed.name in self._flying

    def arrive(self, landed: Landed) -> None:
        """A gradient has landed. It is taken when its turn comes."""
        self._arrived[landed.name] = landed

    def turn(self) -> Landed | None:
        """Return the next gradient to take, if there is one: in the order of launch if the job asks for that, and then
        only between versions.
        """
        if self._loop.order == "launch":
            first = next(iter(self._flying), "")
            return None if self._applying else self._arrived.pop(first, None)
        return self._arrived.pop(next(iter(self._arrived)), None) if self._arrived else None

    def arrived_in_order(self) -> list[Landed]:
        """Return all that have landed and were not taken: those that are done, and then the others, the last first, so
        that their slices wait in the order of launch.
        """
        landed = [self._arrived.pop(name) for name in self._flying if name in self._arrived]
        failed = [one for one in landed if one.outcome is None]
        return [*(one for one in landed if one.outcome is not None), *reversed(failed)]

    def take(self, landed: Landed, *, stopping: bool = False) -> Iterator[Event]:
        """Put a gradient that has landed into the queue, and its slice back if passes are left. A failed one's slice
        goes to the next learner, at most so many times and not where that is in vain; `stopping` counts no failure.
        """
        sent = self._flying.pop(landed.name)
        one, number = sent.slice, sent.number
        if landed.outcome is None:
            self._queue.lose(number)
            if stopping:
                self.slices.give_back(one)
            elif (
                self._loop.order == "launch"
                or landed.reason_code in FAULTS_NOT_RETRIED
                or one.failures + 1 >= self._run.spec.attempts
            ):
                self._give_up(one, landed.reason)
            else:
                self.slices.give_back(replace(one, failures=one.failures + 1))
            return
        cost = landed.outcome.cost_picodollars or 0
        document = decode(landed.outcome.payload)
        if not _is_finite(document):
            self._queue.lose(number)
            self.occupancy.drop("numbers", cost)
            self._give_up(one, "a gradient holds numbers that are not finite")
            yield _dropped(landed, "it holds numbers that are not finite", "numbers")
            return
        late = self._queue.land(number, sent.version, landed.outcome.payload, self.clock)
        if late is not None:
            self.occupancy.drop(late, cost)
            reason = f"it was {self.clock - sent.version} versions late"
            yield _dropped(landed, reason, late)
            if document["last"]:
                self._give_up(one, f"a gradient was dropped: {reason}")
        else:
            self._queue.admit()
            self._known[number] = _Known(landed.name, cost, document["env_steps"])
            self.occupancy.count_queue(self.queued)
            self._fresh = 1
        if document["last"]:
            self._last_of_slice.pop(one.number, None)
        else:
            prepared = one.prepared or landed.outcome.env_state
            self.slices.put(replace(one, passes=one.passes + 1, prepared=prepared, failures=0))

    def _give_up(self, one: Slice, reason: str) -> None:
        self._run.last_failure = reason
        self._last_of_slice.pop(one.number, None)
        self.trajectories_lost += len(one.trajectories)
        self.lost_in_a_row += len(one.trajectories)

    def release(self, *, all_of_round: bool, wanted_steps: float) -> None:
        """Send what waits to be applied, if it may be and no other is. The version ends a round if it counts at least
        `wanted_steps`, or with `all_of_round` if nothing of the round is left after it.
        """
        fresh, self._fresh = self._fresh, 0
        if self._applying:
            return
        found = self._queue.release(self.clock, self.bound, self._distances)
        if found is None:
            self._held |= {one.number for one in self._queue.waiting}
        else:
            counted = sum(self._known[one.number].env_steps for one in found.gradients)
            ends = not (self._flying or self.slices) if all_of_round else counted >= wanted_steps
            self._apply(found, ends_round=ends)
            self._awaiting = fresh

    def _apply(self, release: Release, *, ends_round: bool) -> None:
        run = self._run
        # Gradients that land until the next version were computed with one of these.
        behind = {*self._queue.flying_versions, self.clock} if self._loop.distance == "kl" else set()
        policies = [self._policies[version] for version in sorted(behind & set(self._policies))]
        request = run.task.apply(
            self.fraction_done, release.weights, ends_round=ends_round, policies=len(policies)
        )
        call = run.decided_call(
            "apply",
            request,
            where="learner",
            seed=derive(run.spec.seed, "apply", self.clock + 1),
            inputs=(run.progress.learner, *(one.payload for one in release.gradients), *policies),
        )
        names = [self._known[one.number].name for one in release.gradients]
        after = [*(name for name in names if name), *self._learned_last]
        self._applying = run.flight.launch(call, run.attempts(call), after)
        self._applied = release.gradients
        self.occupancy.release(release, sum(one.number in self._held for one in release.gradients))

    def applies(self, landed: Landed) -> bool:
        return bool(self._applying) and landed.name == self._applying

    def land_version(self, name: str, outcome: Outcome) -> None:
        """Advance to the version that was made, and publish it for actors and learners."""
        self._run.new_version(outcome)
        if self._loop.distance == "kl":
            self._distances = dict(self._run.last_learned.get("distances", ()))
        self._parameters = self._run.publish(self._run.last_learned.pop("parameters"))
        self._policies[self.clock] = self._run.progress.weights
        self.occupancy.step(self._run.last_learned)
        self._learned_last = (name,)
        for one in self._applied:
            del self._known[one.number]
            self._held.discard(one.number)
        self._applying, self._applied, self._awaiting = "", (), 0
        self.lost_in_a_row = 0

    def take_back(self) -> None:
        """Put the gradients of a version that was not made into the queue again, when nothing flies any more."""
        waiting = (*self._applied, *self._queue.waiting)
        self._queue = GradientQueue(
            self._most, self._loop.weights, launched=self._queue.launched, waiting=waiting
        )
        self._applying, self._applied, self._awaiting = "", (), 0

    def forget_policies(self, sampled: Iterable[int]) -> None:
        """Drop the weights that no gradient in flight, slice or fragment needs: one in flight or in no slice yet
        (`sampled`, by version).
        """
        needed = {self.clock, *self._queue.flying_versions}
        if self._run.task.keeps_sampling_policy:
            needed |= {
                trajectory.version for one in self.unfinished_slices for trajectory in one.trajectories
            }
            needed.update(sampled)
        self._policies = {version: one for version, one in self._policies.items() if version in needed}

    @property
    def most(self) -> int:
        """How many learners may run at once in this round."""
        return self._most

    def fit(self, report: GradientsReport, lasted_s: float, actors: int) -> None:
        """Decide how many learners may run at once in the next round, if that follows from the round before."""
        if not self._loop.fit_learners:
            return
        gradient_s = report.learners_busy * lasted_s
        collecting_s = report.actors_busy * lasted_s / actors
        bounds = self._run.bounds
        allowed = max(1, ceil(self._loop.learners * bounds.learners_share))
        self._most = fitting_learners(gradient_s, collecting_s, allowed)
        self._queue.learners = self._most
        why = f"{gradient_s:.3g} s of gradients a round for {collecting_s:.3g} s of sampling"
        because = f" {bounds.because}" if allowed < self._loop.learners else ""
        self.occupancy.allow(self._most, f"{why}, at most {allowed}{because}")

    def calibrate(self) -> None:
        """Take the bound from a round that held nothing, if it was one."""
        staleness = self.occupancy.staleness
        if self._loop.hold and self._loop.largest_staleness is None and self._largest is None and staleness:
            self._largest = calibrated(staleness, self._loop.calibration)
            self._calibrated_round = self._run.progress.round_no + 1

    def unfinished(self) -> Unfinished:
        """Return what a checkpoint holds of all this. A pass in flight counts as not done."""
        gradients = sorted((*self._queue.waiting, *self._applied), key=lambda one: one.number)
        slices = (*(sent.slice for sent in self._flying.values()), *self.slices.waiting)
        versions = {trajectory.version for one in slices for trajectory in one.trajectories}
        return Unfinished(
            slices=slices,
            gradients=tuple(
                WaitingGradient(one.payload, one.version, one.number, self._known[one.number].name)
                for one in gradients
            ),
            policies={
                version: self._policies[version]
                for version in sorted(versions & set(self._policies))
                if self._run.task.keeps_sampling_policy
            },
            slices_made=self._slices_made,
            launched=self._queue.launched,
            largest_staleness=self._largest,
            calibrated_round=self._calibrated_round,
            measured_with=self._measured_with if self._largest is not None else (),
        )


def _env_steps(payload: bytes) -> int:
    return int(decode(payload)["env_steps"])


def _is_finite(document: Document) -> bool:
    """Whether all arrays are. Platforms whose actors are not trusted have checked all the rest."""
    arrays = [value for value in document.values() if isinstance(value, np.ndarray)]
    return all(bool(np.isfinite(array).all()) for array in arrays)


def _dropped(landed: Landed, reason: str, code: str) -> CallFailed:
    call = landed.call
    return CallFailed(
        call_id=call.id,
        call_kind=call.kind,
        round_no=call.round_no,
        slot=call.slot,
        attempt=call.attempt,
        reason=f"dropped: {reason}",
        reason_code=code,
        will_retry=False,
    )
