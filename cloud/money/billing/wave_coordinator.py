"""Each lane's coordinator: its line to actors, its line back, and its time for each outcome.

The same as `cloud/timing/simulation/network.py` for all lanes and calls of a wave at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloud.money.billing.lane_arrays import Bools, doubles, ints, one_by_one, transfer_ns
from cloud.money.billing.waves import Wave
from cloud.timing.numbers.profile import NetworkProfile
from cloud.timing.simulation.network import Transfers
from cloud.timing.simulation.speed import Ints, Speeds


@dataclass(frozen=True, eq=False)
class AnswerTimes:
    """The way back of calls: when they ended, how long they keep the coordinator's line and their own, and how long
    the rest of the way is.
    """

    end_ns: Ints
    line_ns: Ints
    own_ns: Ints
    way_ns: Ints

    def of_lane(self, lane: int) -> AnswerTimes:
        return AnswerTimes(
            *(one[lane : lane + 1] for one in (self.end_ns, self.line_ns, self.own_ns, self.way_ns))
        )

    def and_one(self, *more: int) -> AnswerTimes:
        kept = self.end_ns, self.line_ns, self.own_ns, self.way_ns
        return AnswerTimes(
            *(np.append(one, [[value]], axis=1) for one, value in zip(kept, more, strict=True))
        )


@dataclass(frozen=True, eq=False)
class Landings:
    """When calls landed, and when the coordinator's line and the coordinator are free again."""

    at_ns: Ints
    line_free_ns: Ints
    free_ns: Ints


class Coordinators:
    """The coordinators of all lanes."""

    def __init__(self, networks: Sequence[NetworkProfile], speeds: Sequence[Speeds], most_bytes: int) -> None:
        transfers = [Transfers(network) for network in networks]
        self.left_out = np.array([one.is_detour(most_bytes) for one in transfers])
        self._lanes = len(transfers)
        self._line = doubles(one.line_ns_per_byte for one in transfers)
        self._own_line = doubles(one.actor_ns_per_byte for one in transfers)
        self._round_trip_ns = ints(one.round_trip_ns for one in transfers)
        self._outcome_ns = ints(one.coordinator_ns for one in speeds)
        self._out_free_ns, self._back_free_ns, self._free_ns = np.zeros((3, self._lanes), np.int64)

    def send(self, begin_ns: Ints, byte_count: int) -> Ints:
        """Send a message in each lane, and return when it arrives."""
        self._out_free_ns = np.maximum(self._out_free_ns, begin_ns) + transfer_ns(byte_count, self._line)
        arrived_ns: Ints = np.maximum(begin_ns + transfer_ns(byte_count, self._own_line), self._out_free_ns)
        return arrived_ns

    def send_wave(self, wave: Wave, now_ns: Ints) -> Ints:
        """Send the messages of a wave one after the other, all of them now, and return when they arrive."""
        begin_ns = np.broadcast_to(now_ns[:, None], (self._lanes, len(wave.tasks)))
        passed_ns = one_by_one(begin_ns, transfer_ns(wave.bytes_in, self._line[:, None]), self._out_free_ns)
        self._out_free_ns = passed_ns[:, -1]
        own_ns: Ints = begin_ns + transfer_ns(wave.bytes_in, self._own_line[:, None])
        return np.maximum(own_ns, passed_ns)

    def send_in(self, lane: int, begin_ns: int, byte_count: int) -> int:
        """Send a message in one lane, and return when it arrives."""
        passed_ns = max(int(self._out_free_ns[lane]), begin_ns) + round(byte_count * self._line[lane])
        self._out_free_ns[lane] = passed_ns
        arrived_ns: int = max(begin_ns + round(byte_count * self._own_line[lane]), passed_ns)
        return arrived_ns

    def receive(self, end_ns: Ints, byte_count: int, late_ns: Ints) -> Ints:
        """Receive an outcome in each lane, and return when it arrives."""
        own_ns = end_ns + transfer_ns(byte_count, self._own_line)
        self._back_free_ns = np.maximum(self._back_free_ns, end_ns) + transfer_ns(byte_count, self._line)
        back_ns: Ints = np.maximum(own_ns, self._back_free_ns) + self._round_trip_ns + late_ns
        return back_ns

    def take_in(self, back_ns: Ints, decision_ns: Ints) -> Ints:
        """Take in an outcome that arrived in each lane, decide, and return when that is done."""
        done_ns: Ints = np.maximum(back_ns, self._free_ns) + self._outcome_ns + decision_ns
        self._free_ns = done_ns
        return done_ns

    def answers(self, wave: Wave, end_ns: Ints, failed: Bools, late_ns: Ints) -> AnswerTimes:
        """Return the way back of a wave's calls. One that failed brings nothing."""
        line_ns = np.where(failed, 0, transfer_ns(wave.bytes_out, self._line[:, None]))
        own_ns = np.where(failed, 0, transfer_ns(wave.bytes_out, self._own_line[:, None]))
        return AnswerTimes(end_ns, line_ns, own_ns, self._round_trip_ns[:, None] + late_ns)

    def with_one(
        self, answers: AnswerTimes, lane: int, end_ns: int, byte_count: int, late_ns: int
    ) -> AnswerTimes:
        """Return the ways back of one lane with that of another call."""
        return answers.and_one(
            end_ns,
            round(byte_count * self._line[lane]),
            round(byte_count * self._own_line[lane]),
            int(self._round_trip_ns[lane]) + late_ns,
        )

    def land(self, answers: AnswerTimes, lane: int | None = None) -> Landings:
        """Return when outcomes land: they pass the line in the order of their ends, then are taken in one by one. The
        line and the coordinator stay as free as they were until `keep_busy`.
        """
        lanes = slice(None) if lane is None else slice(lane, lane + 1)
        order = answers.end_ns.argsort(axis=1, kind="stable")
        end_ns, line_ns, own_ns, way_ns = (
            np.take_along_axis(one, order, axis=1)
            for one in (answers.end_ns, answers.line_ns, answers.own_ns, answers.way_ns)
        )
        passed_ns = one_by_one(end_ns, line_ns, self._back_free_ns[lanes])
        back_ns = np.maximum(end_ns + own_ns, passed_ns) + way_ns
        turn = back_ns.argsort(axis=1, kind="stable")
        busy_ns = np.broadcast_to(self._outcome_ns[lanes, None], order.shape)
        taken_ns = one_by_one(np.take_along_axis(back_ns, turn, axis=1), busy_ns, self._free_ns[lanes])
        at_ns = np.empty_like(taken_ns)
        np.put_along_axis(at_ns, np.take_along_axis(order, turn, axis=1), taken_ns, axis=1)
        return Landings(at_ns, passed_ns[:, -1].copy(), taken_ns[:, -1].copy())

    def keep_busy(self, landings: Landings) -> None:
        """Keep the lines back and the coordinators busy until all outcomes of a wave have landed."""
        self._back_free_ns, self._free_ns = landings.line_free_ns, landings.free_ns
