"""Learning divided in two: the gradient of a slice, which needs no optimiser, and the step that gradients become.

A gradient is that of one pass over its slice, taken whole. One gradient after another, applied one by one, is what
`Algorithm.learn` does with minibatches as large as its batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from training.loops.aggregation import AggregationRule, steps_of
from training.rl.algorithms.algorithm import Algorithm, explained_variance
from training.rl.algorithms.descent import Array
from training.rl.algorithms.optimisation import Optimisation
from training.rl.batch import Batch
from training.rl.figures import UpdateReport
from training.rl.learner import NO_SUMS, LearnerState, PublishedPolicy
from training.rl.networks import Network, Parameters
from training.rl.networks.inference import normalise
from training.rl.normalisers import Moments
from training.rl.surfaces.update_samples import flatten_time
from training.rl.truncation import Truncating, Truncation, importance_figures, least_ratios

_LOG_LIMIT = 20.0


class Pass(NamedTuple):
    """One of `passes` over a slice. All passes over a slice have the same seed. `start` is what the first one kept."""

    number: int
    passes: int
    seed: int
    start: Mapping[str, npt.NDArray[Any]] | None = None


class SliceGradient(NamedTuple):
    """The gradient of one pass over a slice.

    `report` has what an `UpdateReport` says of it, `start` what later passes bring. With the last pass come the
    slice's own moments, for the normalisers. `divergence` is that of the KL penalty, None without one. `observations`
    are the slice's, [sample, …], as the network got them.
    """

    gradient: Parameters
    report: dict[str, float]
    importance: dict[str, float]
    divergence: float | None
    start: dict[str, npt.NDArray[Any]]
    is_last: bool
    observation_moments: Moments | None
    return_moments: Moments | None
    device: str
    observations: npt.NDArray[Any]


def gradient_of(
    algorithm: Algorithm,
    state: LearnerState,
    batch: Batch,
    network: Network,
    progress: float,
    pass_: Pass,
    truncation: Truncation,
    others: Sequence[PublishedPolicy] = (),
    sampling: Sequence[PublishedPolicy] = (),
) -> SliceGradient:
    """Return the gradient of a pass over `batch` at the parameters of `state`. `others` are the policies of the other
    learners in flight, `sampling` those that sampled the batch, where they are not the state's own.

    Raises BadLoss if a measurement or the gradient is not finite.
    """
    policies, numbers = _sampling_policies(state, batch, sampling)
    anchor = algorithm.anchor(state, policies)
    optimisation = Optimisation(state, network, algorithm, progress, batch.size, anchor)
    renormalised = state.with_moments_of(batch.observations, batch.discounted_returns)
    least = least_ratios(
        [_log_probs(optimisation, batch, other) for other in others if other.version != state.version],
        batch.log_probs,
    )
    truncating = Truncating(truncation, least) if truncation.weighs_samples else None
    prepared = algorithm.prepare(optimisation, batch, renormalised, pass_.start, truncating)
    samples = {"log_probs": batch.log_probs, **prepared.samples}
    if least is not None:
        samples["others"] = least
    if algorithm.anchors_to_sampling and len(policies) > 1:
        samples["anchors"] = numbers
    chosen = optimisation.to_device(samples)
    if algorithm.shuffles:
        chosen = _shuffled(optimisation, chosen, pass_)
    objective = algorithm.objective_of(
        optimisation.arrays, chosen, progress, truncation if truncation.weighs_samples else None
    )
    own: list[Array] = []

    def noted(log_probs: Array, values: Array) -> Any:
        own.append(log_probs)
        return objective(log_probs, values)

    gradient = optimisation.gradient(chosen["observations"], chosen["actions"], noted, chosen.get("anchors"))
    measured = {**optimisation.means(), **prepared.measured}
    is_last = pass_.number >= pass_.passes or algorithm.is_enough(measured["approximate_kl"])
    kept = algorithm.kept_of_first_pass if pass_.number == 1 and not is_last else ()
    limit = truncation.limit if truncation.reads_policies else np.inf
    return SliceGradient(
        gradient,
        {
            **{name: measured[name] for name in UpdateReport.model_fields if name in measured},
            "explained_variance": explained_variance(prepared.targets, prepared.values),
        },
        _importance(own[0], chosen, limit),
        measured.get("divergence"),
        {name: prepared.samples[name] for name in kept},
        is_last,
        *(_moments(state, batch) if is_last else (None, None)),
        optimisation.descent.device,
        flatten_time(prepared.samples["observations"]),
    )


def apply_gradients(
    algorithm: Algorithm,
    state: LearnerState,
    network: Network,
    progress: float,
    gradients: Sequence[Mapping[str, npt.NDArray[Any]]],
    weights: Sequence[float],
    rule: AggregationRule,
    measured: Mapping[str, float],
) -> tuple[LearnerState, UpdateReport]:
    """Return the next version after gradients in order of launch, and its report with what they `measured`.

    Raises BadLoss if a norm is not finite.
    """
    optimisation = Optimisation(state, network, algorithm, progress, samples=0)
    for step in steps_of(gradients, weights, rule):
        optimisation.move(step.direction, step.length)
    report = optimisation.report(**measured)
    length = sum(weights) / len(weights)
    report = report.model_copy(update={"learning_rate": report.learning_rate * length})
    return optimisation.next_state(state), report


def end_round(algorithm: Algorithm, state: LearnerState, rounds: int) -> LearnerState:
    """Return `state` after what is due at the end of each round: its samples enter the normalisers, and the algorithm
    does what it does once an update.
    """
    sums = state.round_sums
    state = algorithm.end_round(state, rounds)
    return replace(
        state,
        observation_moments=_merged(state.observation_moments, sums.observation_moments),
        return_moments=_merged(state.return_moments, sums.return_moments),
        round_sums=NO_SUMS,
    )


def _merged(before: Moments | None, more: Moments | None) -> Moments | None:
    return before if before is None or more is None else before.join(more)


def _log_probs(optimisation: Optimisation, batch: Batch, policy: PublishedPolicy) -> npt.NDArray[np.float32]:
    """Return the log-probabilities of the batch's actions under another policy, [time, copy]."""
    seen = normalise(batch.observations, policy.observation_mean, policy.observation_scale)
    return optimisation.log_probs(batch, seen, policy.parameters)


def _sampling_policies(
    state: LearnerState, batch: Batch, sampling: Sequence[PublishedPolicy]
) -> tuple[list[Parameters], npt.NDArray[np.int64]]:
    """Return the policies that sampled the batch, and the number of each sample's own, [time, copy]. Where
    that is not in `sampling`, it is the state's own.
    """
    known = {policy.version: policy.parameters for policy in sampling}
    sampled = [version if version in known else state.version for version in batch.versions.tolist()]
    versions = sorted(set(sampled))
    numbers = np.searchsorted(versions, sampled)
    return (
        [known.get(version, state.parameters) for version in versions],
        np.broadcast_to(numbers, batch.log_probs.shape),
    )


def _shuffled(optimisation: Optimisation, samples: dict[str, Array], pass_: Pass) -> dict[str, Array]:
    """Return the slice in the order that the pass of this number has in `Algorithm.learn`."""
    rng = np.random.Generator(np.random.PCG64(pass_.seed))
    n = len(samples["actions"])
    for _ in range(pass_.number - 1):
        rng.permutation(n)
    return next(optimisation.minibatches_of(samples, n, rng))


def _importance(log_probs: Array, chosen: dict[str, Array], limit: float) -> dict[str, float]:
    log_ratio = _numpy(log_probs) - _numpy(chosen["log_probs"])
    others = _numpy(chosen["others"]) if "others" in chosen else None
    return importance_figures(np.exp(np.clip(log_ratio, -_LOG_LIMIT, _LOG_LIMIT)), others, limit)


def _numpy(array: Array) -> npt.NDArray[Any]:
    copied: npt.NDArray[Any] = array if isinstance(array, np.ndarray) else array.cpu().numpy()
    return copied


def _moments(state: LearnerState, batch: Batch) -> tuple[Moments | None, Moments | None]:
    """Return the batch's own moments, where the state normalises by them."""
    seen = batch.observations.reshape(-1, state.spaces.observation_size)
    return (
        None if state.observation_moments is None else Moments.of(seen),
        None if state.return_moments is None else Moments.of(batch.discounted_returns.reshape(-1, 1)),
    )
