"""The staleness-aware loop (Stellaris, Yu et al., SC 2024): learners are functions too, and none waits for another.

Actors sample. Some contributions make a slice, which a learner takes in several passes: each pass is a call that
returns a gradient, computed with the newest version. Gradients wait in a queue until they are recent enough on average;
then one call makes the next version of all of them. No data, no learner, no pay. A round is a
number of samples that were learned from in all their passes, however many versions that makes.

With waiting actors a round is what all of them sampled once. If its gradients are taken in the order of launch, between
two versions, then nothing depends on timing: the same seed gives the same weights everywhere.

A checkpoint holds slices with their passes left, the queue, and the bound. A run that stops first receives what is in
flight and keeps what was done; what was not done is the only thing lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from training.engine.checkpoints import Progress
from training.engine.replay import Contribution
from training.loops.aggregation import fitting_learners
from training.loops.learners import Learners
from training.loops.state import Busy, EndRound, Landing, LoopJob, LoopState, NothingWorks, Sample, Step
from training.loops.synchronous import BARREN_ROUNDS_ALLOWED
from training.scaling.plan import Plan


class StalenessAwareState(LoopState):
    """All that is in flight, and the rounds that come of it.

    `_sampling` are fragments in flight by task, with slot and version. Contributions that are in no slice yet: those
    `_left_over` from earlier waves, which come first, and those of this one that `_landed`, by slot.
    """

    def __init__(
        self, loop: Any, job: LoopJob, progress: Progress, plan: Plan, name: Callable[[str], str]
    ) -> None:
        super().__init__(loop, job, progress, plan, name)
        self.learners = Learners(loop, job, progress.unfinished, self.version, name, self._fail)
        self._serials = dict(progress.serials)
        self._sampling: dict[str, tuple[int, int]] = {}
        self._sampled_last: dict[int, str] = {}
        self._left_over: list[Contribution] = list(progress.waiting)
        self._landed: list[tuple[int, Contribution]] = []
        self._failures_in_a_row = 0
        self._barren_waves = 0
        self._before_wave = self._gained
        self._kept = True

    def _fail(self, reason: str) -> None:
        self.last_failure = reason or self.last_failure

    @property
    def waiting_for(self) -> str:
        return "actors and learners"

    @property
    def busy(self) -> Busy:
        learners = self.learners
        return Busy(
            learners.in_flight,
            len(self._sampling),
            learners.queued,
            learners.idle,
            learners.in_flight > 0 or learners.applying,
        )

    @property
    def _waiting(self) -> list[Contribution]:
        landed = sorted(self._landed, key=lambda numbered: numbered[0])
        return [*self._left_over, *(contribution for _, contribution in landed)]

    @property
    def _a_round(self) -> int:
        return self.loop.samples_per_round or self.plan.actors * self.job.progress_a_call

    @property
    def _under_way(self) -> int:
        """The samples that are not counted yet: in flight, waiting, or in passes."""
        contributions = sum(len(slice_.contributions) for slice_ in self.learners.unfinished_slices)
        contributions += len(self._waiting) + len(self._sampling)
        return contributions * self.job.progress_a_call + self.learners.uncounted_samples

    @property
    def _enough(self) -> bool:
        """Whether what is under way is all that the run will still learn from."""
        limit, rounds = self.job.progress_limit, self.job.rounds
        if limit is not None and self.total + self._under_way >= limit:
            return True
        if rounds is None:
            return False
        if self.loop.goes_by_waves:
            return self.round_no + 1 >= rounds
        return self.learned + self._under_way >= (rounds - self.round_no) * self._a_round

    @property
    def _gained(self) -> tuple[int, int]:
        """What a wave that was not in vain has changed: the version, or how much data waits."""
        return self.version, len(self._waiting)

    @property
    def _quiet(self) -> bool:
        return not (self._sampling or self.learners.busy)

    @property
    def judges_alone(self) -> bool:
        return self._quiet and not self.judging

    def send(self) -> Iterator[Step]:
        """Send all that can be sent now. A wave that brought nothing is followed by the next, for a few times."""
        self._cut_slices()
        yield from self._learn()
        if not self.loop.actors_wait:
            yield from self._sample(0 if self._enough else self._room)
        elif self._quiet:
            self._barren_waves = 1 + (self._barren_waves if self._gained == self._before_wave else 0)
            if self._barren_waves > BARREN_ROUNDS_ALLOWED:
                raise NothingWorks(self.last_failure)
            self._before_wave = self._gained
            yield from self._wave()

    def _wave(self) -> Iterator[Sample]:
        """Let every actor sample once. All fragments of a wave have one number."""
        self._left_over, self._landed = self._waiting, []
        wave = max(self._serials.values(), default=0) + 1
        for slot in range(self.plan.actors):
            yield self._send(slot, wave, wave)

    def _sample(self, room: int) -> Iterator[Sample]:
        """Let idle actors sample, so many at most."""
        busy = {slot for slot, _ in self._sampling.values()}
        idle = [slot for slot in range(self.plan.actors) if slot not in busy]
        for slot in idle[: max(0, room)]:
            serial = self._serials.get(slot, 0) + 1
            yield self._send(slot, serial, self.version * 1_000_000 + serial)

    def _send(self, slot: int, serial: int, number: int) -> Sample:
        self._serials[slot] = serial
        name = self.name(f"s{slot}-{number}")
        self._sampling[name] = slot, self.version
        return Sample(name, (self._sampled_last.get(slot, ""), *self.after), slot, number)

    @property
    def _room(self) -> int:
        """How many more fragments learners can use soon: two slices each, and no more than a round is large."""
        size = self.loop.trajectories_per_gradient
        begun = len(self.learners.unfinished_slices) * size
        return int(2 * size * self.learners.most - begun - len(self._waiting) - len(self._sampling))

    def _cut_slices(self) -> None:
        """Make slices of what waits; of all of it, if no more will come, so that the last one may be smaller."""
        waiting, size = self._waiting, self.loop.trajectories_per_gradient
        everything_landed = not self._sampling
        in_turn = self.loop.actors_wait and self.loop.order == "launch"
        if not waiting or (in_turn and not everything_landed):
            return
        all_of_it = everything_landed and self._enough
        whole = len(waiting) if all_of_it else len(waiting) - len(waiting) % size
        if whole:
            self._left_over, self._landed = waiting[whole:], []
        for begin in range(0, whole, size):
            self.learners.cut(tuple(waiting[begin : min(begin + size, whole)]))

    def _learn(self) -> Iterator[Step]:
        waves = self.loop.goes_by_waves
        yield from self.learners.release(
            self.round_no + 1,
            self.after,
            all_of_round=waves and not self._sampling,
            wanted=inf if waves else self._a_round - self.learned,
        )
        yield from self.learners.launch(self.after)

    def land(self, landing: Landing) -> Iterator[Step]:
        before, self.after = self.after, (landing.name,)
        if landing.name in self._sampling:
            self._land_sample(landing)
        elif self.learners.expects(landing.name):
            self.learners.land(landing)
        elif landing.done:
            yield self._land_version(landing)
            if not (landing.stopping or self.loop.goes_by_waves) and self.learned >= self._a_round:
                yield from self._end_round()
        elif not landing.stopping:
            raise NothingWorks(f"a version was not made: {landing.reason}")
        if not landing.stopping:
            yield from self._go_on(before)

    def judged(self) -> Iterator[Step]:
        yield from self._go_on(self.after)

    def _go_on(self, before: tuple[str, ...]) -> Iterator[Step]:
        """Take the gradients whose turn it is, and end the round if nothing of it is left. `before` are the tasks that
        had landed before the newest.
        """
        yield from self._take_gradients(before)
        if self._quiet and self.versions and (self.loop.goes_by_waves or self._enough):
            yield from self._end_round()
        self._require_hope()

    def _land_sample(self, landing: Landing) -> None:
        slot, version = self._sampling.pop(landing.name)
        self._sampled_last[slot] = landing.name
        self._kept = False
        if not landing.done:
            self._failures_in_a_row += 1
            self._fail(landing.reason)
            return
        self._failures_in_a_row = 0
        self._landed.append((slot, Contribution(landing.payload, version, landing.name)))

    def _land_version(self, landing: Landing) -> Step:
        self._made(landing.samples)
        made = self.learners.land_version(landing)
        sampled = [version for _, version in self._sampling.values()]
        self.learners.forget_versions(sampled + [contribution.version for contribution in self._waiting])
        return made

    def _take_gradients(self, before: tuple[str, ...]) -> Iterator[Step]:
        while True:
            self._cut_slices()
            yield from self._learn()
            held_up = self.loop.order == "launch" and self.judging
            landing = None if held_up else self.learners.next_landed()
            if landing is None:
                return
            queued = self.learners.queued
            yield from self.learners.take(landing)
            dropped = landing.done and self.learners.queued == queued
            if dropped and self.after == (landing.name,):
                # Nothing that is sent now was made of it.
                self.after = before
            self._kept = False

    def _require_hope(self) -> None:
        """Raise NothingWorks if actors or learners have failed too often one after another."""
        if self.loop.actors_wait:
            return
        if self._failures_in_a_row > BARREN_ROUNDS_ALLOWED * self.plan.actors:
            raise NothingWorks(f"no actor returns a result any more: {self.last_failure}")
        lost = self.learners.lost_in_a_row * self.job.progress_a_call
        if lost >= BARREN_ROUNDS_ALLOWED * self._a_round:
            raise NothingWorks(f"no learner returns a gradient any more: {self.last_failure}")

    def _end_round(self) -> Iterator[Step]:
        learners, bound = self.learners, self.learners.bound(self.round_no + 1)
        learners.calibrate(self.round_no + 1)
        self._round_ended()
        self._kept = True
        lost, learners.contributions_lost = learners.contributions_lost, 0
        most, learners.queue_most = learners.queue_most, 0
        yield EndRound(lost, None if bound == inf else bound, most)

    def fit_learners(self, gradient_s: float, sampling_s: float, allowed: int) -> None:
        self.learners.allow(fitting_learners(gradient_s, sampling_s / self.plan.actors, allowed))

    def stop(self, *, out_of_money: bool) -> Iterator[Step]:
        """Take the gradients that have landed. If the run is only out of money, make a last version of what waits."""
        learners = self.learners
        for landing in learners.landed_in_order():
            yield from learners.take(landing, stopping=True)
            self._kept = False
        learners.take_back()
        if out_of_money and learners.queued:
            yield from learners.release(self.round_no + 1, self.after, all_of_round=False, wanted=inf)

    def close(self) -> Iterator[Step]:
        self.learners.take_back()
        if self.versions:
            yield from self._end_round()

    @property
    def keeps_data(self) -> bool:
        return not self._kept

    def kept(self) -> dict[str, Any]:
        return {
            "serials": dict(self._serials),
            "waiting": tuple(self._waiting),
            "unfinished": self.learners.unfinished(),
        }
