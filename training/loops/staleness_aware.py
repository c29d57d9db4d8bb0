"""The staleness-aware loop's settings (Stellaris): how learners compute gradients, and when those become a version."""

from __future__ import annotations

import math
from typing import Literal

from training.base_model import setting
from training.loops.aggregation import (
    AGE_LIMIT,
    AggregationRule,
    CalibrationRule,
    Weighting,
    WeightRule,
    bound_after,
)
from training.loops.loop import Loop
from training.loops.staleness_aware_state import StalenessAwareState
from training.rl.truncation import Truncation, TruncationRule


class StalenessAware(Loop):
    """Stellaris: many learners compute gradients, which wait in a queue until they are recent enough on average."""

    kind: Literal["staleness_aware"] = "staleness_aware"
    decides = StalenessAwareState
    collects = "beside gradients"
    decided_by_times = "which gradients a version is made of and how far behind they are"
    learners: int = setting(
        2,
        "Learners at most",
        "Gradients that are computed at once. A learner runs and costs only while there is data for it.",
        ge=1,
        le=1024,
    )
    fit_learners: bool = setting(
        False,
        "Fit the number of learners",
        "Each round has as many learners as kept up with the actors in the round before: the seconds of its"
        " gradients over the seconds in which its data was sampled, rounded up, at most the number above;"
        " fewer where a budget that is nearly spent asks for fewer actors.",
        advanced=True,
    )
    trajectories_per_gradient: int = setting(
        4,
        "Trajectories per gradient",
        "What one call of an actor samples is a trajectory. Each pass over these makes one gradient.",
        ge=1,
        le=4096,
    )
    where: Literal["actor", "learner"] = setting(
        "actor",
        "Learners' place",
        "Actor: gradients are computed by functions, workers or machines like those that sample. Learner: on"
        " the learner's machine, whose GPUs they share.",
    )
    staleness_decay: float = setting(
        0.9,
        "Decay of the staleness bound d",
        "In round k after calibration the bound is the largest staleness times d^k, at least 1.",
        gt=0,
        le=1,
    )
    calibration: CalibrationRule = setting(
        "largest",
        "Staleness measured as",
        "Of one round without a bound. Largest: the paper. Mean: rounded down, plus 1, the released code.",
        advanced=True,
    )
    largest_staleness: float | None = setting(
        None,
        "Largest staleness",
        "Empty: measured in the first round, which has no bound. A number is taken as it is.",
        ge=0,
        le=1e6,
        unit="versions",
        advanced=True,
    )
    hold: bool = setting(
        True,
        "Hold gradients",
        "Without: each gradient is applied as it comes, as purely asynchronous learners do.",
        advanced=True,
    )
    distance: Literal["versions", "kl"] = setting(
        "versions",
        "Staleness counted in",
        "Versions: how many were made since. KL: how far the policy has moved since, in usual steps; beyond"
        " the paper.",
        advanced=True,
    )
    weighting: WeightRule = setting(
        "sqrt",
        "Weight of a stale gradient",
        "Of a gradient δ versions behind. Sqrt: 1/√δ, the paper. Inverse: 1/δ. Threshold: 1/√δ above the"
        " threshold. Released: the third root with the released code's reset, which weighs nothing down.",
        advanced=True,
    )
    staleness_threshold: int = setting(
        1,
        "Staleness threshold v",
        "With the weight rule Threshold: up to here a gradient counts in full.",
        ge=0,
        le=1000,
        unit="versions",
        advanced=True,
    )
    aggregation: AggregationRule = setting(
        "mean",
        "Aggregation",
        "Mean: the weighted mean gives the direction, the mean weight the step's size. Weigh gradients: each"
        " is scaled by its weight, as printed. Sequential: a step for each, the released code.",
        advanced=True,
    )
    truncation: TruncationRule = setting(
        "constant",
        "Truncation of importance weights",
        "Constant: the smallest ratio of all learners in flight, at most ρ, weighs each sample. Off: none."
        " The others repeat the released code, differentiate the weight, or use its mean for the step's size"
        " only.",
        advanced=True,
    )
    ratio_limit: float = setting(1.0, "Limit ρ of importance weights", ge=1, le=100, advanced=True)
    actors_wait: bool = setting(
        True,
        "Actors wait",
        "For all passes over their data. Without: they go on sampling with the newest version.",
    )
    learners_wait: bool = setting(
        True,
        "Learners wait",
        "For the version that is made of their gradient, so that the next one is fresh. Without: they go on"
        " at once with the version that there is, as the released code's do.",
        advanced=True,
    )
    order: Literal["arrival", "launch"] = setting(
        "arrival",
        "Order of gradients",
        "Arrival: as they come, the paper. Launch: in the order in which they were sent. With waiting actors"
        " the same seed then gives the same weights on every platform.",
        advanced=True,
    )
    samples_per_round: int | None = setting(
        None,
        "Samples per round",
        "A round is over when so many were learned from in all their passes. Empty: what all actors sample"
        " in one call each.",
        ge=1,
        le=100_000_000,
        advanced=True,
    )

    @property
    def staleness_limit(self) -> int:
        return AGE_LIMIT

    @property
    def gradients(self) -> StalenessAware | None:
        return self

    @property
    def goes_by_waves(self) -> bool:
        """Whether a round is what all actors sampled once: they wait, and its samples are not numbered."""
        return self.actors_wait and self.samples_per_round is None

    @property
    def judges_beside(self) -> bool:
        return not self.goes_by_waves

    @property
    def depends_on_timing(self) -> bool:
        """Whether the weights depend on how long calls take."""
        return self.order == "arrival" or not self.actors_wait or self.fit_learners

    def bound(self, round_no: int, measured: float | None, calibrated_round: int) -> float:
        """Return what the mean staleness of a release must not exceed in that round; infinite where nothing is held.

        `measured` is the largest staleness of the round `calibrated_round`, None before it is over.
        """
        largest, since = (
            (measured, calibrated_round) if self.largest_staleness is None else (self.largest_staleness, 0)
        )
        if not self.hold or largest is None:
            return math.inf
        return bound_after(round_no - since, largest, self.staleness_decay)

    @property
    def weights(self) -> Weighting:
        return Weighting(self.weighting, float(self.staleness_threshold), self.staleness_decay)

    @property
    def truncated(self) -> Truncation:
        return Truncation(rule=self.truncation, limit=self.ratio_limit)
