"""A stored run as waves: calls that were sent together, each wave when the last call of the one before had landed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from cloud.money.billing.replay_schedule import ReplaySchedule, ReplayTask
from cloud.money.billing.work import CallRecord
from cloud.timing.simulation.draws import DrawColumns, draw_columns
from cloud.timing.simulation.speed import Ints, columns_of

_KEPT_SEEDS = 4


@dataclass(frozen=True, eq=False)
class Wave:
    """Calls of one kind. `first` is the place of its first call among those of all waves of actors."""

    tasks: tuple[ReplayTask, ...]
    works: tuple[CallRecord, ...]
    first: int

    @property
    def kind(self) -> str:
        return self.tasks[0].kind

    @property
    def where(self) -> str:
        return self.tasks[0].where

    @property
    def round_no(self) -> int:
        return self.tasks[0].round_no

    @property
    def slice(self) -> slice:
        return slice(self.first, self.first + len(self.tasks))

    @cached_property
    def bytes_in(self) -> Ints:
        return np.array([work.bytes_in for work in self.works])

    @cached_property
    def bytes_out(self) -> Ints:
        return np.array([work.bytes_out for work in self.works])

    @cached_property
    def broken(self) -> npt.NDArray[np.bool_]:
        return np.array([work.broken for work in self.works])


class WaveRun:
    """A stored run by waves. `columns`: the works of all its actors by what they have in common, with their places."""

    def __init__(self, schedule: ReplaySchedule, waves: Sequence[Wave]) -> None:
        self.waves = waves
        self.longest_s = schedule.longest_s
        works = [work for wave in waves for work in wave.works]
        actors = [work for work in works if work.where == "actor"]
        self.actors = len(actors)
        self.actor_memory_mb = actors[0].memory_mb
        self.columns = columns_of(actors)
        self.most_bytes = max(max(work.bytes_in, work.bytes_out) for work in works)
        self.lacks_memory = any(0 < work.memory_mb < work.most_memory_mb for work in actors)
        self._names = [work.id for work in actors]
        self._drawn: dict[int, DrawColumns] = {}

    @staticmethod
    def of(schedule: ReplaySchedule) -> WaveRun | None:
        """Return the run; None if it does not go by waves."""
        waves = _waves_of(schedule)
        return None if waves is None else WaveRun(schedule, waves)

    def drawn(self, seed: int) -> DrawColumns:
        """Return the chance of all calls of actors. That of a few seeds is kept for the next place."""
        if seed not in self._drawn:
            if len(self._drawn) == _KEPT_SEEDS:
                self._drawn.clear()
            self._drawn[seed] = draw_columns(seed, self._names)
        return self._drawn[seed]


def _waves_of(schedule: ReplaySchedule) -> list[Wave] | None:
    """Return the run's waves in their order, each of actors or of one call of the learner; None if it has others."""
    waves: list[Wave] = []
    numbers, before, first = schedule.first, set[int](), 0
    while numbers and not schedule.cuts:
        tasks = tuple(schedule.tasks[number] for number in numbers)
        following = schedule.followers[numbers[0]]
        wave = Wave(tasks, tuple(task.work(1) for task in tasks), first)
        alike = {(task.kind, task.where, task.round_no) for task in tasks}
        together = all(schedule.followers[number] == following for number in numbers)
        if len(alike) > 1 or not together or any(set(task.after) != before for task in tasks):
            return None
        if wave.where == "learner" and (len(tasks) > 1 or wave.works[0].broken):
            return None
        if wave.where == "actor" and any(work.decision_macs for work in wave.works):
            return None
        first += len(tasks) if wave.where == "actor" else 0
        waves.append(wave)
        before, numbers = set(numbers), following
    sizes = {work.memory_mb for wave in waves for work in wave.works if wave.where == "actor"}
    whole = sum(len(wave.tasks) for wave in waves) == len(schedule.tasks)
    return waves if waves and whole and len(sizes) == 1 else None
