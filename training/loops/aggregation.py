"""Staleness-aware aggregation (Stellaris, SC 2024): when gradients of many learners become one step, and how long.

Versions count aggregates. A gradient's staleness δ is the newest version minus that of the parameters that it was
computed with. Gradients wait in a queue until their mean staleness is within a bound, which shrinks with the rounds:

    mean δ ≤ max(1, δ_max d^k)

or until as many wait as learners may run, or until none is in flight. Each weighs 1/√max(1, δ). The paper steps by
α/H Σ g_i/√δ_i. Adam makes a common factor of all gradients disappear, so the weighted mean Σ w g / Σ w is the direction
and the mean weight is the length of the step, which is the paper's formula exactly where the optimiser is SGD.

Everything here is pure: no call, no clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

WeightRule = Literal["sqrt", "inverse", "threshold", "none", "released"]
AggregationRule = Literal["mean", "weigh_gradients", "sequential"]
CalibrationRule = Literal["largest", "mean"]
ReleaseReason = Literal["bound", "full", "idle"]
DropReason = Literal["duplicate", "unknown_version", "too_old"]
AGE_LIMIT = 100
"""A gradient that is more versions late than this is dropped."""
Gradient = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Weighting:
    """How a gradient's weight follows from its staleness.

    `sqrt` is the paper's. `threshold`: the same, but only above `threshold`. `released`: the third root, but 1 where
    that is below `decay`, as the released code resets it.
    """

    rule: WeightRule = "sqrt"
    threshold: float = 1.0
    decay: float = 0.9

    def weight(self, staleness: float) -> float:
        late = max(1.0, staleness)
        if self.rule == "none" or (self.rule == "threshold" and staleness <= self.threshold):
            return 1.0
        if self.rule == "inverse":
            return 1.0 / late
        if self.rule == "released":
            factor = float(late ** (-1.0 / 3.0))
            return factor if factor >= self.decay else 1.0
        return float(late**-0.5)


@dataclass(frozen=True)
class QueuedGradient:
    """A landed gradient: the number of its launch, the version of its parameters, and what its call returned."""

    number: int
    version: int
    payload: bytes


class Release(NamedTuple):
    """Gradients that become one aggregate, in order of launch, why now, and the staleness and weight of each."""

    gradients: tuple[QueuedGradient, ...]
    reason: ReleaseReason
    staleness: tuple[float, ...]
    weights: tuple[float, ...]


class GradientQueue:
    """Gradients from their launch to their release.

    Each launch ends once: released, dropped with a reason, or lost. A gradient that has landed is queued in the order
    of landing or, if `in_order_of_launch`, when all launched before it were queued or lost.
    """

    def __init__(
        self,
        learners: int,
        weighting: Weighting,
        *,
        in_order_of_launch: bool = False,
        launched: int = 0,
        queued: Iterable[QueuedGradient] = (),
    ) -> None:
        """`launched` is the number of the last launch, `queued` what is in the queue, both from a checkpoint."""
        self.learners = learners
        self._weighting = weighting
        self._in_order_of_launch = in_order_of_launch
        self._launched = launched
        self._in_flight: dict[int, int] = {}  # versions of parameters by number, in order of launch
        self._landed: dict[int, QueuedGradient] = {}
        self._queued: list[QueuedGradient] = list(queued)

    @property
    def queued(self) -> tuple[QueuedGradient, ...]:
        """What is in the queue, in the order in which it was queued."""
        return tuple(self._queued)

    @property
    def launched(self) -> int:
        """The number of the last launch."""
        return self._launched

    @property
    def in_flight(self) -> int:
        """How many gradients were launched and are not yet queued, dropped or lost."""
        return len(self._in_flight)

    @property
    def versions_in_flight(self) -> tuple[int, ...]:
        """The distinct versions of the parameters of those, oldest first."""
        return tuple(sorted(set(self._in_flight.values())))

    def launch(self, version: int) -> int:
        """Return the number of a new launch with the parameters of `version`."""
        self._launched += 1
        self._in_flight[self._launched] = version
        return self._launched

    def land(self, number: int, version: int, payload: bytes, newest: int) -> DropReason | None:
        """Take a gradient that has landed. Return why it is dropped, None if it is to be queued."""
        if number not in self._in_flight or number in self._landed:
            return "duplicate"
        if version != self._in_flight[number]:
            del self._in_flight[number]
            return "unknown_version"
        if newest - version > AGE_LIMIT:
            del self._in_flight[number]
            return "too_old"
        self._landed[number] = QueuedGradient(number, version, payload)
        return None

    def lose(self, number: int) -> None:
        """Forget a launch that failed. Unknown numbers are ignored."""
        if number not in self._landed:
            self._in_flight.pop(number, None)

    def enqueue(self) -> QueuedGradient | None:
        """Move the next gradient that has landed into the queue and return it; None if none may be now."""
        if self._in_order_of_launch:
            number = next(iter(self._in_flight), None)
        else:
            number = next(iter(self._landed), None)
        if number is None or number not in self._landed:
            return None
        del self._in_flight[number]
        gradient = self._landed.pop(number)
        self._queued.append(gradient)
        return gradient

    def release(
        self, newest: int, bound: float, distances: Mapping[int, float] | None = None
    ) -> Release | None:
        """Return the whole queue if it may become an aggregate now, and empty it; None if it is held or empty.

        `distances` take the place of staleness: how far older versions are from the newest, where it was measured.
        """
        gradients = tuple(sorted(self._queued, key=lambda gradient: gradient.number))
        if not gradients:
            return None
        staleness = tuple(
            float(newest - gradient.version)
            if distances is None or gradient.version not in distances
            else distances[gradient.version]
            for gradient in gradients
        )
        reason: ReleaseReason
        if sum(staleness) / len(staleness) <= bound:
            reason = "bound"
        elif len(gradients) >= self.learners:
            reason = "full"
        elif not self._in_flight:
            reason = "idle"
        else:
            return None
        self._queued.clear()
        return Release(gradients, reason, staleness, tuple(map(self._weighting.weight, staleness)))


USUAL_STEP_MEMORY = 0.9
"""How much of the usual step's divergence each further step leaves as it was."""


def usual_step(before: float, divergence: float) -> float:
    """Return how far a step usually moves the policy, after one more; 0 means that none was measured before."""
    return USUAL_STEP_MEMORY * before + (1.0 - USUAL_STEP_MEMORY) * divergence if before else divergence


def policy_distance(divergence: float, usual: float) -> float:
    """Return how many usual steps lie between two policies with this divergence. A divergence grows with the square of
    the way, so this is staleness itself where each version moves as far as usual in one direction.
    """
    return float(np.sqrt(max(0.0, divergence) / usual)) if usual > 0 else 0.0


def calibrated(staleness: Sequence[float], rule: CalibrationRule) -> float:
    """Return δ_max from the staleness of a round that held nothing: the largest (paper) or the mean, rounded down,
    plus 1 (released code). At least 1.
    """
    if not staleness:
        return 1.0
    if rule == "mean":
        return float(int(sum(staleness) / len(staleness)) + 1)
    return max(1.0, *staleness)


def bound_after(rounds: int, largest: float, decay: float) -> float:
    """Return the bound of mean staleness after `rounds` bounded rounds. It never falls below 1: a queue held until
    its gradients are fresh would be held for ever.
    """
    return max(1.0, largest * decay**rounds)


def fitting_learners(gradient_s: float, collecting_s: float, most: int) -> int:
    """Return how many learners keep up with the actors: the seconds of a round's gradients over those in which its
    data is sampled, rounded up. `most` where nothing was sampled.
    """
    if collecting_s <= 0.0:
        return most
    return max(1, min(most, ceil(gradient_s / collecting_s)))


class Step(NamedTuple):
    """One step of the optimiser: down `direction`, `length` times as long as usual."""

    direction: Gradient
    length: float


def steps_of(gradients: Sequence[Gradient], weights: Sequence[float], rule: AggregationRule) -> list[Step]:
    """Return the steps that gradients in order of launch become.

    `mean`: one step down the weighted mean, as long as the mean weight. `weigh_gradients`: one step down Σ w g / H, as
    the paper prints it. `sequential`: a step each, as long as its weight, as the released code steps.
    """
    if rule == "sequential":
        return [Step(gradient, weight) for gradient, weight in zip(gradients, weights, strict=True)]
    total = sum(weights)
    divisor = total if rule == "mean" else float(len(gradients))
    direction = {
        name: (_weighted_sum([one[name] for one in gradients], weights) / divisor).astype(first.dtype)
        for name, first in gradients[0].items()
    }
    return [Step(direction, total / len(gradients) if rule == "mean" else 1.0)]


def _weighted_sum(arrays: Sequence[npt.NDArray[Any]], weights: Sequence[float]) -> npt.NDArray[np.float64]:
    total = arrays[0].astype(np.float64)
    total *= weights[0]
    for array, weight in zip(arrays[1:], weights[1:], strict=True):
        total += array.astype(np.float64) * weight
    return total
