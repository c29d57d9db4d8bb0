"""How many actors each round will have: the scaling policy itself decides, on a history that was never measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from training.engine.reports import Figures, RoundReport
from training.engine.seeds import derive
from training.loops.run import HISTORY_KEPT
from training.scaling.plan import Bounds
from training.tasks.training import Training

_ONE_BY_ONE = 256
_GROWTH = 1.02


class Unforeseeable(Exception):
    """The policy read something from the history that only training shows; the message names it."""


class _FutureReport:
    """A round's report of which only the facts known before the run can be read."""

    def __init__(self, round_no: int, actors: int) -> None:
        self.round_no = self.version = round_no
        self.actors = actors

    def __getattr__(self, name: str) -> Any:
        if name in RoundReport.model_fields:
            raise Unforeseeable(name)
        raise AttributeError(name)

    def figures_of(self, kind: type[Figures]) -> Any:
        return _FutureFigures()

    @property
    def score(self) -> float:
        raise Unforeseeable("score")


class _FutureFigures:
    """Figures of which nothing can be read."""

    def __getattr__(self, name: str) -> Any:
        raise Unforeseeable(name)


class _History(Sequence[Any]):
    """The last rounds before `round_no`, created on access."""

    def __init__(self, round_no: int, actors: int) -> None:
        self._round_no = round_no
        self._actors = actors

    def __len__(self) -> int:
        return min(HISTORY_KEPT, self._round_no - 1)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return _FutureReport(self._round_no - (len(self) - at if at >= 0 else -at), self._actors)

    def __iter__(self) -> Iterator[Any]:
        return (self[at] for at in range(len(self)))


class ActorPlan:
    """Actors by stretches of rounds: stretch i has `actors[i]` in the rounds from `begins[i]` on, counted from 0."""

    def __init__(self, begins: Sequence[int], actors: Sequence[int]) -> None:
        self.begins: npt.NDArray[np.float64] = np.array(begins, dtype=np.float64)
        self.actors: npt.NDArray[np.float64] = np.array(actors, dtype=np.float64)

    @staticmethod
    def always(actors: int) -> ActorPlan:
        return ActorPlan([0], [actors])

    @property
    def anchors(self) -> list[int]:
        """Numbers of actors to simulate, smallest first: those of other rounds lie between them."""
        least, most = int(self.actors.min()), int(self.actors.max())
        if least == most:
            return [least]
        return sorted({least, (least + most + 1) // 2, most})

    @property
    def rises(self) -> npt.NDArray[np.float64]:
        """How many more actors than ever before each stretch begins with; the first, than the fewest of all."""
        return np.diff(np.maximum.accumulate(self.actors), prepend=self.actors.min())


def plan_of(training: Training, most_rounds: float) -> ActorPlan:
    """Return the plan: every round by itself at first, later stretches of growing length. Raises Unforeseeable."""
    begins: list[int] = []
    actors: list[int] = []
    at, last = 0, 1
    while at < most_rounds:
        seed = derive(training.seed, "scaling", at + 1)
        history = _History(at + 1, last)
        decided = training.scaling.decide(history, Bounds(), seed, training.score).actors
        if not actors or decided != last:
            begins.append(at)
            actors.append(decided)
        last = decided
        at = at + 1 if at < _ONE_BY_ONE else max(at + 1, int(at * _GROWTH))
    return ActorPlan(begins, actors)


def possible_actors(training: Training) -> tuple[int, int]:
    """Return the fewest and the most actors that the policy can request in the first rounds, where its range is
    widest.
    """
    bounds = Bounds()
    least = min(training.scaling.actor_range(round_no)[0] for round_no in (1, 2))
    return least, max(least, min(bounds.actors_max, training.scaling.largest))


def shrinking(training: Training) -> bool:
    """Whether the range of actors that the policy can request narrows with the rounds."""
    return training.scaling.actor_range(_ONE_BY_ONE)[1] < training.scaling.actor_range(2)[1]


def assumed_plan(training: Training, most_rounds: float, quantile: float) -> ActorPlan:
    """Return a plan for a policy that cannot be foreseen: each round has the number at this quantile of its range."""
    begins: list[int] = []
    actors: list[int] = []
    at = 0
    while at < most_rounds:
        least, most = training.scaling.actor_range(at + 1)
        most = min(Bounds().actors_max, most)
        number = round(least * (max(least, most) / least) ** quantile)
        if not actors or number != actors[-1]:
            begins.append(at)
            actors.append(number)
        at = at + 1 if at < _ONE_BY_ONE else max(at + 1, int(at * _GROWTH))
    return ActorPlan(begins, actors)
