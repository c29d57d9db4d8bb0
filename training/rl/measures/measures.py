"""Measurements of an update that scaling policies use. Only those that the policy requests are taken.

They run inside the update's own call, on the samples that it has just learned from, so their time and money are that
call's, and their work is in that call's usage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from training.rl.figures import CurvatureReport, NoiseScaleReport
from training.rl.measures import curvature, noise_scale, policy_shift
from training.rl.measures.curvature import CurvatureSpec
from training.rl.measures.noise_scale import NoiseScaleSpec
from training.rl.measures.policy_shift import PolicyShiftSpec
from training.rl.networks import Network

if TYPE_CHECKING:
    from training.rl.algorithms.algorithm import Algorithm, UpdateResult
    from training.rl.learner import LearnerState

AnyMeasure = Annotated[CurvatureSpec | NoiseScaleSpec | PolicyShiftSpec, Field(discriminator="kind")]


class Measurements(NamedTuple):
    """The measurements of one update. `hessian_products` are counted in minibatches of the update, rounded up."""

    curvature: CurvatureReport | None = None
    noise_scale: NoiseScaleReport | None = None
    policy_shift: float | None = None
    hessian_products: int = 0


def take_measurements(
    measures: Sequence[AnyMeasure],
    algorithm: Algorithm,
    network: Network,
    before: LearnerState,
    learned: UpdateResult,
    actors: int,
    seed: int,
) -> Measurements:
    """Take each measurement of an update by `actors`: noise at the parameters before it, curvature at
    those after it.
    """
    taken = Measurements()
    update_samples = learned.update_samples
    a_minibatch = learned.samples / max(learned.minibatches, 1)
    for measure in measures:
        if isinstance(measure, CurvatureSpec):
            parameters = learned.state.parameters
            curved = curvature.measure_curvature(
                measure,
                network,
                before.spaces,
                parameters,
                update_samples,
                clip=algorithm.surrogate_clip,
                weights=algorithm.loss_weights,
                seed=seed,
            )
            work = curved.products * curved.samples / a_minibatch
            taken = taken._replace(curvature=curved)
        elif isinstance(measure, PolicyShiftSpec):
            parameters = learned.state.parameters
            moved, states = policy_shift.measure_policy_shift(
                network, before.spaces, before.parameters, parameters, update_samples
            )
            # Two forward passes cost a third of two gradients, which are one product.
            work = states / a_minibatch / 3
            taken = taken._replace(policy_shift=moved)
        else:
            noisy = noise_scale.measure_noise_scale(
                network,
                before.spaces,
                before.parameters,
                update_samples,
                actors,
                clip=algorithm.surrogate_clip,
            )
            # A gradient over all samples costs half of a product.
            work = 0.5 * update_samples.size / a_minibatch
            taken = taken._replace(noise_scale=noisy)
        taken = taken._replace(hessian_products=taken.hessian_products + math.ceil(work))
    return taken
