"""A run that goes by waves, replayed on many clouds at once: arrays with a row for each lane, a place with a seed.

In a synchronous run all calls of a wave are sent when the last one of the wave before has landed, so that no event of
one wave touches another, and each step of a wave is one expression over all lanes and calls. What comes out is equal to
what `retime` finds event by event, to the nanosecond and the picodollar. Lanes in which something rare happens (a call
near its deadline, too few functions at once) are left out: those have to be replayed event by event.

Where calls run is in `wave_actors.py`, how messages pass in `wave_coordinator.py`, what calls cost in `wave_prices.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloud.money.billing.lane_arrays import LONG_AGO_NS, NEVER_NS, Bools, doubles, ints
from cloud.money.billing.wave_actors import FunctionLanes, PoolLanes
from cloud.money.billing.wave_coordinator import AnswerTimes, Coordinators, Landings
from cloud.money.billing.wave_prices import BilledCalls, price_calls
from cloud.money.billing.waves import Wave, WaveRun
from cloud.money.pricing import Tariff
from cloud.money.rents.slices import rent_used
from cloud.timing.numbers.profile import Functions, Pool
from cloud.timing.place import TimingPlace
from cloud.timing.simulation.draws import draw
from cloud.timing.simulation.speed import Ints, Speeds
from cloud.timing.virtual_time import NS, to_ns
from training.calls import KINDS
from training.calls.kind import LONGEST_CALL_S
from training.engine.deadlines import LEAST_S, MARGIN, REMEMBERED


@dataclass(frozen=True, eq=False)
class WaveTimes:
    """By lane and wave: when its calls were sent, when the last had landed, what they cost, and how long the first to
    land had waited and started. `run_ns` holds for each wave the run times of the calls' successful attempts.
    """

    run: WaveRun
    tariffs: Sequence[Tariff]
    left_out: Bools
    sent_ns: Ints
    landed_ns: Ints
    picodollars: Ints
    startup_ns: Ints
    run_ns: Sequence[Ints]

    def rents(self, lane: int, waves: int) -> dict[str, int]:
        """Return the rent of each resource until so many waves have landed."""
        end_ns = int(self.landed_ns[lane, waves - 1])
        return {one.resource: rent_used(one, end_ns) for one in self.tariffs[lane].rents}

    def time_and_cost(self, lane: int) -> tuple[float, int]:
        """Return the seconds and picodollars of the whole run."""
        rent = sum(self.rents(lane, len(self.run.waves)).values())
        return int(self.landed_ns[lane, -1]) / NS, rent + int(self.picodollars[lane].sum())


def replay_waves(run: WaveRun, places: Sequence[TimingPlace], seeds: Sequence[int]) -> WaveTimes | None:
    """Return the run's times and costs in each lane; None where they cannot be found by waves. All places are one
    cloud with different numbers.
    """
    tariffs = [place.tariff(run.actor_memory_mb) for place in places]
    one, actors = places[0], places[0].profile.actors
    kept = isinstance(actors, Functions) or actors.units is not None
    kinds = [
        (tariff.actor, tariff.learner, place.options, type(place.profile.actors))
        for tariff, place in zip(tariffs, places, strict=True)
    ]
    if not kept or any(kind != kinds[0] for kind in kinds) or one.options.provisioned or tariffs[0].pool:
        return None
    return _Replay(run, places, seeds, tariffs).replay()


class _Replay:
    def __init__(
        self, run: WaveRun, places: Sequence[TimingPlace], seeds: Sequence[int], tariffs: Sequence[Tariff]
    ) -> None:
        self._run, self._seeds, self._tariffs = run, seeds, tariffs
        profiles = [place.profile for place in places]
        settings = [place.setting(seed) for place, seed in zip(places, seeds, strict=True)]
        self._speeds = [
            Speeds(place.profile, place.stack, gpu=setting.learner_gpu)
            for place, setting in zip(places, settings, strict=True)
        ]
        self._warm_ns = ints(one.warm_ns for one in self._speeds)
        self._late_share = doubles(one.late_share for one in self._speeds)
        self._late_ns = ints(one.late_ns for one in self._speeds)

        lanes = len(places)
        self._lanes = range(lanes)
        self._now_ns = np.zeros(lanes, np.int64)
        self._sent_ns, self._landed_ns, self._startup_ns = np.zeros((3, lanes, len(run.waves)), np.int64)
        self._billed: list[BilledCalls] = []
        self._run_ns: list[Ints] = []

        self._server = settings[0].learner == "server"
        learners = [profile.learner for profile in profiles]
        self._server_ready_ns = ints(to_ns(one.server_start_s.value) for one in learners)
        self._learner_start_ns = ints(to_ns(one.function_start_s.value) for one in learners)
        self._learner_kept_ns = ints(to_ns(one.function_keep_warm_s.value) for one in learners)
        self._learner_idle_ns = np.full(lanes, LONG_AGO_NS)

        networks = [profile.network for profile in profiles]
        self._coordinators = Coordinators(networks, self._speeds, run.most_bytes)
        self._deadlines = _Deadlines(run.longest_s, lanes)
        self._left_out = np.full(lanes, False)
        self._actors = self._actors_of([profile.actors for profile in profiles])
        self._time_actors()

    def _actors_of(self, actors: Sequence[Functions | Pool]) -> FunctionLanes | PoolLanes:
        fleets = [one for one in actors if isinstance(one, Functions)]
        pools = [one for one in actors if isinstance(one, Pool)]
        if pools:
            return PoolLanes(pools, self._speeds, self._seeds, self._coordinators)
        self._left_out |= self._run.lacks_memory
        return FunctionLanes(fleets, self._speeds, self._seeds, self._coordinators)

    def _time_actors(self) -> None:
        """Find the run times of all calls of actors, and which of them fail or come late."""
        shape = len(self._lanes), self._run.actors
        usual_ns, straggling, failed_at = np.empty((3, *shape))
        self._failed, self._late = np.empty((2, *shape), np.bool_)
        for lane, speeds in enumerate(self._speeds):
            for columns, works in self._run.columns:
                usual_ns[lane, columns] = speeds.usual_run_ns(works)
            drawn = self._run.drawn(self._seeds[lane])
            normal = (speeds.straggler_sigma * drawn.straggler_normal).tolist()
            # Not numpy's, whose last digit may be another.
            straggling[lane] = [math.exp(one) for one in normal]
            self._failed[lane] = drawn.failure < speeds.failure_share
            self._late[lane] = drawn.late < speeds.late_share
            failed_at[lane] = drawn.failure_at
        full_ns = np.rint(usual_ns * straggling)
        self._actor_run_ns = np.where(self._failed, np.rint(full_ns * failed_at), full_ns).astype(np.int64)

    def replay(self) -> WaveTimes:
        for number, wave in enumerate(self._run.waves):
            self._sent_ns[:, number] = self._now_ns
            if wave.where == "learner":
                self._learn(number, wave)
            else:
                self._sample(number, wave)
            self._landed_ns[:, number] = self._now_ns
        parts = self._coordinators, self._actors, self._deadlines
        return WaveTimes(
            self._run,
            self._tariffs,
            np.logical_or.reduce([self._left_out, *(part.left_out for part in parts)]),
            self._sent_ns,
            self._landed_ns,
            price_calls(self._run, self._tariffs[0], self._billed, len(self._lanes)),
            self._startup_ns,
            self._run_ns,
        )

    def _learn(self, number: int, wave: Wave) -> None:
        (work,) = wave.works
        run_ns = ints(speeds.update_ns(work) for speeds in self._speeds)
        decision_ns = ints(speeds.decision_ns(work) for speeds in self._speeds)
        self._deadlines.check(wave, run_ns[:, None])
        if self._server:
            arrived_ns = np.maximum(self._now_ns, self._server_ready_ns)
            starting_ns, startup_ns = np.zeros_like(arrived_ns), arrived_ns - self._now_ns
        else:
            arrived_ns = self._coordinators.send(self._now_ns, work.bytes_in)
            cold = self._learner_idle_ns < self._now_ns - self._learner_kept_ns
            starting_ns = startup_ns = np.where(cold, self._learner_start_ns, self._warm_ns)
        back_ns = end_ns = self._learner_idle_ns = arrived_ns + starting_ns + run_ns
        if not self._server:
            late = doubles(draw(seed, work.id).late for seed in self._seeds) < self._late_share
            late_ns = np.where(late, self._late_ns, 0)
            back_ns = self._coordinators.receive(end_ns, work.bytes_out, late_ns)
        self._now_ns = self._coordinators.take_in(back_ns, decision_ns)
        self._startup_ns[:, number] = startup_ns
        self._run_ns.append(run_ns[:, None])
        self._billed.append(BilledCalls.of(number, np.array(self._lanes), end_ns - arrived_ns))
        self._deadlines.record_done(wave, run_ns[:, None])

    def _sample(self, number: int, wave: Wave) -> None:
        """Run a wave of actors: first attempts in all lanes together, then further ones in the lanes that need some."""
        run_ns = self._actor_run_ns[:, wave.slice].copy()
        failed = self._failed[:, wave.slice] | wave.broken
        self._deadlines.check(wave, run_ns)
        calls = self._actors.begin(wave, self._now_ns, run_ns, failed)
        late = ~failed & self._late[:, wave.slice]
        late_ns = np.where(late, self._late_ns[:, None], 0)
        answers = self._coordinators.answers(wave, calls.end_ns, failed, late_ns)
        landings = self._coordinators.land(answers)
        first = np.where(failed, NEVER_NS, landings.at_ns).argmin(axis=1)
        self._startup_ns[:, number] = calls.startup_ns[self._lanes, first]
        lanes = np.repeat(self._lanes, len(wave.tasks))
        self._billed.append(BilledCalls.of(number, lanes, (calls.end_ns - calls.arrived_ns).ravel()))
        self._now_ns = landings.at_ns.max(axis=1)
        for lane in np.flatnonzero(failed.any(axis=1)).tolist():
            startup_ns = calls.startup_ns[lane]
            again = self._try_again(
                number, wave, lane, answers.of_lane(lane), startup_ns, failed[lane], run_ns
            )
            self._now_ns[lane] = again.at_ns.max()
            landings.line_free_ns[lane], landings.free_ns[lane] = again.line_free_ns[0], again.free_ns[0]
        self._coordinators.keep_busy(landings)
        self._deadlines.record_done(wave, run_ns)
        self._run_ns.append(run_ns)

    def _try_again(
        self,
        number: int,
        wave: Wave,
        lane: int,
        answers: AnswerTimes,
        startup_ns: Ints,
        failed: Bools,
        run_ns: Ints,
    ) -> Landings:
        """Send calls of one lane that failed again, one after the other as they land, until none has failed."""
        speeds, seed = self._speeds[lane], self._seeds[lane]
        landings = self._coordinators.land(answers, lane)
        works, places, startups_ns = list(wave.works), list(range(len(wave.works))), startup_ns.tolist()
        waiting = np.flatnonzero(failed).tolist()
        succeeded = np.flatnonzero(~failed).tolist()
        while waiting:
            sent_ns, again = min((int(landings.at_ns[0, one]), one) for one in waiting)
            waiting.remove(again)
            place, attempt = places[again], works[again].attempt + 1
            if attempt > wave.tasks[place].allowed:
                self._left_out[lane] = True
                break
            work = wave.tasks[place].work(attempt)
            chance = draw(seed, work.id)
            begin_ns, starting_ns = self._actors.begin_again(lane, sent_ns, chance)
            arrived_ns = self._coordinators.send_in(lane, begin_ns, work.bytes_in)
            took_ns, fails = speeds.run_ns(work, chance), chance.failure < speeds.failure_share
            if fails:
                took_ns = round(took_ns * chance.failure_at)
            self._deadlines.check_in(lane, took_ns)
            end_ns = arrived_ns + starting_ns + took_ns
            self._billed.append(BilledCalls.of(number, np.array([lane]), np.array([end_ns - arrived_ns])))
            fails |= work.broken
            (waiting if fails else succeeded).append(len(works))
            if not fails:
                run_ns[lane, place] = took_ns
            self._actors.free_again(lane, len(wave.tasks), place, end_ns, survives=not fails)
            byte_count = 0 if fails else work.bytes_out
            late_ns = speeds.late_ns if not fails and chance.late < speeds.late_share else 0
            answers = self._coordinators.with_one(answers, lane, end_ns, byte_count, late_ns)
            works.append(work)
            places.append(place)
            startups_ns.append(begin_ns - sent_ns + starting_ns)
            landings = self._coordinators.land(answers, lane)
        if succeeded:
            first = min(succeeded, key=landings.at_ns[0].__getitem__)
            self._startup_ns[lane, number] = startups_ns[first]
        return landings


class _Deadlines:
    """Leaves out lanes in which a call may reach its deadline (`training/engine/deadlines.py`). A deadline is at
    least the limit here: what a call took is more than what its body ran.
    """

    def __init__(self, longest_s: float, lanes: int) -> None:
        self._longest_s = longest_s
        self.left_out = np.zeros(lanes, np.bool_)
        self._limit_ns = np.zeros(lanes, np.int64)
        self._slowest_ns: dict[str, Ints] = {}
        self._seen: set[str] = set()

    def check(self, wave: Wave, run_ns: Ints) -> None:
        """Check the first attempts of a wave, and set the limit of its further ones."""
        fixed_s = KINDS[wave.kind].deadline_s
        longest_s = min(LONGEST_CALL_S, self._longest_s) if fixed_s is None else fixed_s
        slowest_ns = self._slowest_ns.get(wave.kind)
        self._limit_ns = np.full(len(self.left_out), to_ns(longest_s))
        if fixed_s is None and slowest_ns is not None:
            self._limit_ns = np.minimum(
                to_ns(longest_s), np.maximum(to_ns(LEAST_S), int(MARGIN) * slowest_ns)
            )
        elif wave.kind in self._seen:
            self._limit_ns = np.minimum(self._limit_ns, to_ns(LEAST_S))
        self._seen.add(wave.kind)
        self.left_out |= (run_ns >= self._limit_ns[:, None]).any(axis=1)

    def check_in(self, lane: int, run_ns: int) -> None:
        """Check another attempt in one lane."""
        self.left_out[lane] |= run_ns >= self._limit_ns[lane]

    def record_done(self, wave: Wave, run_ns: Ints) -> None:
        # Of more calls only the last are remembered.
        if len(wave.tasks) <= REMEMBERED:
            self._slowest_ns[wave.kind] = run_ns.max(axis=1)
        else:
            self._slowest_ns.pop(wave.kind, None)
