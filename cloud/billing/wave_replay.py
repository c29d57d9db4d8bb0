"""A run that goes by waves, replayed on many clouds at once: arrays with a row for each lane, a place with a seed.

In a synchronous run all calls of a wave are sent when the last one of the wave before has landed, so that no event of
one wave touches another, and each step of a wave is one expression over all lanes and calls. What comes out is equal to
what `retime` finds event by event, to the nanosecond and the picodollar. Lanes in which something rare happens (a call
near its deadline, too few functions at once) are left out: those have to be replayed event by event.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cloud.billing.bill import lines_of_call
from cloud.billing.waves import Wave, WaveRun
from cloud.numbers.profile import Functions, Pool
from cloud.place import Place
from cloud.pricing import CallPrice, Tariff, total
from cloud.rents.slices import rent_used
from cloud.simulation.draws import Draws, draw
from cloud.simulation.network import StartLimit, Transfers
from cloud.simulation.speed import Doubles, Ints, Speeds
from cloud.timing import NS, to_ns
from training.calls import KINDS
from training.calls.kind import LONGEST_CALL_S
from training.deadlines import LEAST_S, MARGIN, REMEMBERED

Bools = npt.NDArray[np.bool_]
_LONG_AGO, _NEVER = -(2**61), 2**61
_NS_PER_MS = 10**6


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


def replay_waves(run: WaveRun, places: Sequence[Place], seeds: Sequence[int]) -> WaveTimes | None:
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
        self, run: WaveRun, places: Sequence[Place], seeds: Sequence[int], tariffs: Sequence[Tariff]
    ) -> None:
        self._run, self._seeds, self._tariffs = run, seeds, tariffs
        profiles = [place.profile for place in places]
        settings = [place.setting(seed) for place, seed in zip(places, seeds, strict=True)]
        self._speeds = [
            Speeds(place.profile, place.stack, gpu=setting.learner_gpu)
            for place, setting in zip(places, settings, strict=True)
        ]
        transfers = [Transfers(profile.network) for profile in profiles]
        self._line = _doubles(one.line_ns_per_byte for one in transfers)
        self._own_line = _doubles(one.actor_ns_per_byte for one in transfers)
        self._round_trip_ns = _ints(one.round_trip_ns for one in transfers)
        self._warm_ns = _ints(one.warm_ns for one in self._speeds)
        self._late_share = _doubles(one.late_share for one in self._speeds)
        self._late_ns = _ints(one.late_ns for one in self._speeds)
        self._coordinator_ns = _ints(one.coordinator_ns for one in self._speeds)

        lanes = len(places)
        self._lanes = range(lanes)
        self._left_out = np.array([one.is_detour(run.most_bytes) for one in transfers])
        self._now_ns, self._out_ns, self._back_ns, self._coordinated_ns = np.zeros((4, lanes), np.int64)
        self._slowest_ns: dict[str, Ints] = {}
        self._sent_ns, self._landed_ns, self._startup_ns = np.zeros((3, lanes, len(run.waves)), np.int64)
        self._seen: set[str] = set()
        self._billed: list[tuple[int, Ints, Ints]] = []
        self._run_ns: list[Ints] = []

        self._server = settings[0].learner == "server"
        learners = [profile.learner for profile in profiles]
        self._server_ready_ns = _ints(to_ns(one.server_start_s.value) for one in learners)
        self._learner_start_ns = _ints(to_ns(one.function_start_s.value) for one in learners)
        self._learner_kept_ns = _ints(to_ns(one.function_keep_warm_s.value) for one in learners)
        self._learner_idle_ns = np.full(lanes, _LONG_AGO)

        actors = [profile.actors for profile in profiles]
        fleets = [one for one in actors if isinstance(one, Functions)]
        pools = [one for one in actors if isinstance(one, Pool)]
        self._functions = bool(fleets)
        if fleets:
            self._left_out |= run.lacks_memory
            self._concurrent = _ints(int(one.concurrent.value) for one in fleets)
            self._kept_ns = _ints(to_ns(one.keep_warm_s.value) for one in fleets)
            self._at_once = _ints(max(1, int(one.starts_at_once.value)) for one in fleets)
            self._ns_per_start = _doubles(1e9 / one.starts_per_s.value for one in fleets)
            self._starts_full_ns = np.zeros(lanes)
            self._idle_ns = np.zeros((lanes, 0), np.int64)
        else:
            self._free_ns = np.array(
                [_ready_ns(*one) for one in zip(pools, self._speeds, seeds, strict=True)]
            )
        self._time_actors()

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
        return WaveTimes(
            self._run,
            self._tariffs,
            self._left_out,
            self._sent_ns,
            self._landed_ns,
            self._priced(),
            self._startup_ns,
            self._run_ns,
        )

    def _learn(self, number: int, wave: Wave) -> None:
        (work,) = wave.works
        run_ns = _ints(speeds.update_ns(work) for speeds in self._speeds)
        decision_ns = _ints(speeds.decision_ns(work) for speeds in self._speeds)
        self._check_deadline(wave, run_ns[:, None])
        if self._server:
            arrived_ns = np.maximum(self._now_ns, self._server_ready_ns)
            starting_ns, startup_ns = np.zeros_like(arrived_ns), arrived_ns - self._now_ns
        else:
            arrived_ns = self._arrive(self._now_ns, work.bytes_in)
            cold = self._learner_idle_ns < self._now_ns - self._learner_kept_ns
            starting_ns = startup_ns = np.where(cold, self._learner_start_ns, self._warm_ns)
        back_ns = end_ns = self._learner_idle_ns = arrived_ns + starting_ns + run_ns
        if not self._server:
            late = _doubles(draw(seed, work.id).late for seed in self._seeds) < self._late_share
            own_ns = end_ns + _scaled(work.bytes_out, self._own_line)
            self._back_ns = np.maximum(self._back_ns, end_ns) + _scaled(work.bytes_out, self._line)
            back_ns = np.maximum(own_ns, self._back_ns) + self._round_trip_ns
            back_ns = back_ns + np.where(late, self._late_ns, 0)
        self._now_ns = np.maximum(back_ns, self._coordinated_ns) + self._coordinator_ns + decision_ns
        self._coordinated_ns = self._now_ns
        self._startup_ns[:, number] = startup_ns
        self._run_ns.append(run_ns[:, None])
        self._bill(number, np.array(self._lanes), end_ns - arrived_ns)
        self._note_slowest(wave, run_ns[:, None])

    def _sample(self, number: int, wave: Wave) -> None:
        """Run a wave of actors: first attempts in all lanes together, then further ones in the lanes that need some."""
        run_ns = self._actor_run_ns[:, wave.slice].copy()
        failed = self._failed[:, wave.slice] | wave.broken
        self._check_deadline(wave, run_ns)
        calls = self._start_instances(wave, run_ns, failed) if self._functions else self._queue(wave, run_ns)
        line_ns = np.where(failed, 0, _scaled(wave.bytes_out, self._line[:, None]))
        own_ns = np.where(failed, 0, _scaled(wave.bytes_out, self._own_line[:, None]))
        late = ~failed & self._late[:, wave.slice]
        way_ns = self._round_trip_ns[:, None] + np.where(late, self._late_ns[:, None], 0)
        back = _Back(calls.end_ns, line_ns, own_ns, way_ns)
        landed = self._land(back)
        first = np.where(failed, _NEVER, landed.at_ns).argmin(axis=1)
        self._startup_ns[:, number] = calls.startup_ns[self._lanes, first]
        self._bill(number, np.repeat(self._lanes, len(wave.tasks)), (calls.end_ns - calls.arrived_ns).ravel())
        now_ns = landed.at_ns.max(axis=1)
        for lane in np.flatnonzero(failed.any(axis=1)).tolist():
            again = self._try_again(number, wave, lane, back, calls.startup_ns[lane], failed[lane], run_ns)
            now_ns[lane] = again.at_ns.max()
            landed.back_ns[lane], landed.coordinated_ns[lane] = again.back_ns[0], again.coordinated_ns[0]
        self._now_ns, self._back_ns, self._coordinated_ns = now_ns, landed.back_ns, landed.coordinated_ns
        self._note_slowest(wave, run_ns)
        self._run_ns.append(run_ns)

    def _try_again(
        self,
        number: int,
        wave: Wave,
        lane: int,
        back: _Back,
        startup_ns: Ints,
        failed: Bools,
        run_ns: Ints,
    ) -> _Landed:
        """Send calls of one lane that failed again, one after the other as they land, until none has failed."""
        speeds, seed = self._speeds[lane], self._seeds[lane]
        line, own_line = self._line[lane], self._own_line[lane]
        back = _Back(*(one[lane : lane + 1] for one in (back.end_ns, back.line_ns, back.own_ns, back.way_ns)))
        landed = self._land(back, lane)
        works, places, startups_ns = list(wave.works), list(range(len(wave.works))), startup_ns.tolist()
        waiting = np.flatnonzero(failed).tolist()
        succeeded = np.flatnonzero(~failed).tolist()
        while waiting:
            sent_ns, again = min((int(landed.at_ns[0, one]), one) for one in waiting)
            waiting.remove(again)
            place, attempt = places[again], works[again].attempt + 1
            if attempt > wave.tasks[place].allowed:
                self._left_out[lane] = True
                break
            work = wave.tasks[place].work(attempt)
            chance = draw(seed, work.id)
            begin_ns, starting_ns = self._place_again(lane, sent_ns, chance)
            self._out_ns[lane] = max(self._out_ns[lane], begin_ns) + round(work.bytes_in * line)
            arrived_ns = max(begin_ns + round(work.bytes_in * own_line), int(self._out_ns[lane]))
            took_ns, fails = speeds.run_ns(work, chance), chance.failure < speeds.failure_share
            if fails:
                took_ns = round(took_ns * chance.failure_at)
            self._left_out[lane] |= took_ns >= self._limit_ns[lane]
            end_ns = arrived_ns + starting_ns + took_ns
            self._bill(number, np.array([lane]), np.array([end_ns - arrived_ns]))
            fails |= work.broken
            (waiting if fails else succeeded).append(len(works))
            if not fails:
                run_ns[lane, place] = took_ns
            self._free_again(lane, len(wave.tasks), place, end_ns, survives=not fails)
            byte_count = 0 if fails else work.bytes_out
            late_ns = speeds.late_ns if not fails and chance.late < speeds.late_share else 0
            way_ns = int(self._round_trip_ns[lane]) + late_ns
            back = back.and_one(end_ns, round(byte_count * line), round(byte_count * own_line), way_ns)
            works.append(work)
            places.append(place)
            startups_ns.append(begin_ns - sent_ns + starting_ns)
            landed = self._land(back, lane)
        if succeeded:
            first = min(succeeded, key=landed.at_ns[0].__getitem__)
            self._startup_ns[lane, number] = startups_ns[first]
        return landed

    def _start_instances(self, wave: Wave, run_ns: Ints, failed: Bools) -> _Begun:
        """Give each call the instance that was freed last, or a cold one where none is warm."""
        count, now_ns = len(wave.tasks), self._now_ns
        self._left_out |= count > self._concurrent
        idle_ns = np.sort(self._idle_ns, axis=1)
        warm = (idle_ns >= (now_ns - self._kept_ns)[:, None]).sum(axis=1)
        used = np.minimum(warm, count)
        idle_ns[np.arange(idle_ns.shape[1]) >= idle_ns.shape[1] - used[:, None]] = _LONG_AGO
        starting_ns = np.repeat(self._warm_ns[:, None], count, axis=1)
        for lane in np.flatnonzero(used < count).tolist():
            for place in range(int(used[lane]), count):
                chance = draw(self._seeds[lane], wave.works[place].id)
                starting_ns[lane, place] = self._speeds[lane].cold_ns(chance)
        self._start_cold(slice(None), now_ns, count - used)
        arrived_ns = self._arrive_together(wave)
        end_ns = arrived_ns + starting_ns + run_ns
        known = idle_ns[:, (idle_ns > _LONG_AGO).any(axis=0)]
        self._idle_ns = np.concatenate([known, np.where(failed, _LONG_AGO, end_ns)], axis=1)
        return _Begun(arrived_ns, end_ns, starting_ns)

    def _start_cold(self, lanes: slice, now_ns: Ints, count: Ints) -> None:
        """Count cold starts against the cloud's limit; a lane in which one would have to wait is left out."""
        ns = self._ns_per_start[lanes]
        full_ns = np.maximum(self._starts_full_ns[lanes], now_ns) + count * ns
        self._left_out[lanes] |= (count > 0) & (full_ns - now_ns - self._at_once[lanes] * ns > 0.25)
        self._starts_full_ns[lanes] = np.where(count > 0, full_ns, self._starts_full_ns[lanes])

    def _queue(self, wave: Wave, run_ns: Ints) -> _Begun:
        """Give each call the kept actor that is free first."""
        count, now_ns, warm_ns = len(wave.tasks), self._now_ns, self._warm_ns
        if count <= self._free_ns.shape[1] and (self._free_ns <= now_ns[:, None]).all():
            arrived_ns = self._arrive_together(wave)
            self._free_ns[:, :count] = end_ns = arrived_ns + warm_ns[:, None] + run_ns
            return _Begun(arrived_ns, end_ns, np.repeat(warm_ns[:, None], count, axis=1))
        arrived_ns, end_ns, startup_ns = np.empty((3, *run_ns.shape), np.int64)
        for place, work in enumerate(wave.works):
            actor = self._free_ns.argmin(axis=1)
            begin_ns = np.maximum(now_ns, self._free_ns[self._lanes, actor])
            arrived_ns[:, place] = self._arrive(begin_ns, work.bytes_in)
            end_ns[:, place] = arrived_ns[:, place] + warm_ns + run_ns[:, place]
            self._free_ns[self._lanes, actor] = end_ns[:, place]
            startup_ns[:, place] = begin_ns - now_ns + warm_ns
        return _Begun(arrived_ns, end_ns, startup_ns)

    def _place_again(self, lane: int, sent_ns: int, chance: Draws) -> tuple[int, int]:
        """Return when another attempt begins, and how long its place takes to start."""
        if not self._functions:
            return max(sent_ns, int(self._free_ns[lane].min())), int(self._warm_ns[lane])
        idle_ns = self._idle_ns[lane]
        free = np.where(idle_ns <= sent_ns, idle_ns, _LONG_AGO)
        last = free.argmax()
        if free[last] >= sent_ns - self._kept_ns[lane]:
            idle_ns[last] = _LONG_AGO
            return sent_ns, int(self._warm_ns[lane])
        self._start_cold(slice(lane, lane + 1), np.array([sent_ns]), np.array([1]))
        return sent_ns, self._speeds[lane].cold_ns(chance)

    def _free_again(self, lane: int, count: int, place: int, end_ns: int, *, survives: bool) -> None:
        """Free the place of another attempt; the instance of the one before it is gone, so that its column is free."""
        if not self._functions:
            self._free_ns[lane, self._free_ns[lane].argmin()] = end_ns
        elif survives:
            self._idle_ns[lane, self._idle_ns.shape[1] - count + place] = end_ns

    def _arrive(self, begin_ns: Ints, byte_count: int) -> Ints:
        """Send a message in each lane, and return when it arrives."""
        self._out_ns = np.maximum(self._out_ns, begin_ns) + _scaled(byte_count, self._line)
        arrived_ns: Ints = np.maximum(begin_ns + _scaled(byte_count, self._own_line), self._out_ns)
        return arrived_ns

    def _arrive_together(self, wave: Wave) -> Ints:
        """Send the messages of a wave one after the other, all of them now, and return when they arrive."""
        begin_ns = np.broadcast_to(self._now_ns[:, None], (len(self._lanes), len(wave.tasks)))
        passed_ns = _one_by_one(begin_ns, _scaled(wave.bytes_in, self._line[:, None]), self._out_ns)
        self._out_ns = passed_ns[:, -1]
        own_ns: Ints = begin_ns + _scaled(wave.bytes_in, self._own_line[:, None])
        return np.maximum(own_ns, passed_ns)

    def _land(self, back: _Back, lane: int | None = None) -> _Landed:
        """Take outcomes in: over the coordinator's line in the order of their ends, then one after the other."""
        lanes = slice(None) if lane is None else slice(lane, lane + 1)
        order = back.end_ns.argsort(axis=1, kind="stable")
        end_ns, line_ns, own_ns, way_ns = (
            np.take_along_axis(one, order, axis=1)
            for one in (back.end_ns, back.line_ns, back.own_ns, back.way_ns)
        )
        passed_ns = _one_by_one(end_ns, line_ns, self._back_ns[lanes])
        back_ns = np.maximum(end_ns + own_ns, passed_ns) + way_ns
        turn = back_ns.argsort(axis=1, kind="stable")
        busy_ns = np.broadcast_to(self._coordinator_ns[lanes, None], order.shape)
        taken_ns = _one_by_one(
            np.take_along_axis(back_ns, turn, axis=1), busy_ns, self._coordinated_ns[lanes]
        )
        at_ns = np.empty_like(taken_ns)
        np.put_along_axis(at_ns, np.take_along_axis(order, turn, axis=1), taken_ns, axis=1)
        return _Landed(at_ns, passed_ns[:, -1].copy(), taken_ns[:, -1].copy())

    def _check_deadline(self, wave: Wave, run_ns: Ints) -> None:
        """Leave out lanes in which a call may reach its deadline. It is at least this long: what a call took is more
        than what its body ran.
        """
        fixed_s = KINDS[wave.kind].deadline_s
        longest_s = min(LONGEST_CALL_S, self._run.longest_s) if fixed_s is None else fixed_s
        slowest_ns = self._slowest_ns.get(wave.kind)
        self._limit_ns = np.full(len(self._lanes), to_ns(longest_s))
        if fixed_s is None and slowest_ns is not None:
            self._limit_ns = np.minimum(
                to_ns(longest_s), np.maximum(to_ns(LEAST_S), int(MARGIN) * slowest_ns)
            )
        elif wave.kind in self._seen:
            self._limit_ns = np.minimum(self._limit_ns, to_ns(LEAST_S))
        self._seen.add(wave.kind)
        self._left_out |= (run_ns >= self._limit_ns[:, None]).any(axis=1)

    def _note_slowest(self, wave: Wave, run_ns: Ints) -> None:
        # Of more calls only the last are remembered.
        if len(wave.tasks) <= REMEMBERED:
            self._slowest_ns[wave.kind] = run_ns.max(axis=1)
        else:
            self._slowest_ns.pop(wave.kind, None)

    def _bill(self, number: int, lanes: Ints, billed_ns: Ints) -> None:
        self._billed.append((number, lanes, -(-billed_ns // _NS_PER_MS)))

    def _priced(self) -> Ints:
        """Price all calls. Each length of a call is priced once."""
        found = np.zeros(self._sent_ns.shape, np.int64)
        tariff = self._tariffs[0]
        for where, price in (("actor", tariff.actor), ("learner", tariff.learner)):
            billed = [one for one in self._billed if self._run.waves[one[0]].where == where]
            if price is None or not billed:
                continue
            lengths, which = np.unique(np.concatenate([ms for _, _, ms in billed]), return_inverse=True)
            amounts = _amounts_of(price, where, self._run.actor_memory_mb, lengths.tolist())
            numbers = np.concatenate([np.full(len(lanes), number) for number, lanes, _ in billed])
            lanes = np.concatenate([lanes for _, lanes, _ in billed])
            np.add.at(found, (lanes, numbers), np.array(amounts, np.int64)[which])
        return found


@dataclass(frozen=True)
class _Begun:
    """Of a wave's calls: when they arrived and ended, and how long they had waited and started."""

    arrived_ns: Ints
    end_ns: Ints
    startup_ns: Ints


@dataclass(frozen=True)
class _Back:
    """Of calls on their way back: when they ended, how long they keep the coordinator's line and their own, and how
    long the rest of the way is.
    """

    end_ns: Ints
    line_ns: Ints
    own_ns: Ints
    way_ns: Ints

    def and_one(self, *more: int) -> _Back:
        kept = self.end_ns, self.line_ns, self.own_ns, self.way_ns
        return _Back(*(np.append(one, [[value]], axis=1) for one, value in zip(kept, more, strict=True)))


@dataclass(frozen=True)
class _Landed:
    """When calls landed, and when the coordinator's line and the coordinator are free again."""

    at_ns: Ints
    back_ns: Ints
    coordinated_ns: Ints


def _one_by_one(at_ns: Ints, took_ns: Ints, free_ns: Ints) -> Ints:
    """Return when each is done, if each begins when it comes and the one before it is done."""
    done_ns = took_ns.cumsum(axis=1)
    begin_ns = np.maximum(at_ns - (done_ns - took_ns), free_ns[:, None])
    ended_ns: Ints = np.maximum.accumulate(begin_ns, axis=1) + done_ns
    return ended_ns


def _amounts_of(price: CallPrice, where: str, memory_mb: int, lengths_ms: Sequence[int]) -> list[int]:
    """Return what calls of these lengths cost. Other runs have calls of the same lengths."""
    known = _known_amounts(price, where, memory_mb)
    for ms in lengths_ms:
        if ms not in known:
            known[ms] = total(lines_of_call(price, where, memory_mb, ms))
    return [known[ms] for ms in lengths_ms]


@lru_cache(maxsize=16)
def _known_amounts(price: CallPrice, where: str, memory_mb: int) -> dict[int, int]:
    return {}


def _ready_ns(pool: Pool, speeds: Speeds, seed: int) -> list[int]:
    """Return when each kept actor is ready. All actors of a unit start together."""
    limit = StartLimit(pool.creates_at_once.value, pool.creates_per_s.value)
    ready_ns: list[int] = []
    for _ in range(pool.units or 0):
        start_ns = speeds.cold_ns(draw(seed, f"actor-{len(ready_ns)}"))
        ready_ns += [limit.begin_ns(0) + start_ns] * pool.actors_per_unit
    return ready_ns


def _scaled(byte_count: int | Ints, ns_per_byte: Doubles) -> Ints:
    return np.rint(byte_count * ns_per_byte).astype(np.int64)


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def _doubles(values: Iterable[float]) -> Doubles:
    return np.fromiter(values, np.float64)
