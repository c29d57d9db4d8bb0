"""Loss terms that the algorithms share, each with its derivative. The same code runs in numpy and in torch.

`arrays` is the module that the arrays belong to; it is needed for functions that arrays do not have as methods.
"""

from __future__ import annotations

from typing import Any

from training.rl.algorithms.descent import Array, Slopes
from training.rl.truncation import Truncation, capped_ratios, truncated_ratios


def mean(samples: Array) -> Array:
    # numpy's method `mean` takes four times as long on a minibatch.
    return samples.sum() / len(samples)


def standardise(arrays: Any, samples: Array) -> Array:
    """Return the samples with mean 0 and deviation 1. There must be more than one."""
    deviations = samples - mean(samples)
    variance = (deviations * deviations).sum() / (len(samples) - 1)
    return deviations / (arrays.sqrt(variance) + 1e-8)


def clipped_gains(arrays: Any, ratios: Array, advantages: Array, clip: float) -> tuple[Array, Array]:
    """Return PPO's min(r A, clip(r, 1−ε, 1+ε) A) of each sample, and its derivative by log r.

    As dr / d log r = r, the derivative is r A itself, or 0 where the clipped side is the smaller one.
    """
    free = ratios * advantages
    gains = arrays.minimum(free, ratios.clip(1.0 - clip, 1.0 + clip) * advantages)
    return gains, arrays.where(free <= gains, free, 0.0)


def truncated_gains(
    arrays: Any,
    truncation: Truncation,
    ratios: Array,
    others: Array | None,
    moved: Array,
    advantages: Array,
    clip: float,
) -> tuple[Array, Array]:
    """Return PPO's gains with truncated ratios, and their derivative by log π. `ratios` are a learner's own π/μ,
    `others` the least of the other learners, `moved` the ratios that PPO clips.

    A constant weight is 0 only where PPO's own clip says so. Inside the surrogate, a ratio that was replaced does not
    depend on the policy, so its derivative is 0.
    """
    if truncation.rule == "constant":
        kept = moved * advantages <= moved.clip(1.0 - clip, 1.0 + clip) * advantages
        gains = truncated_ratios(arrays, ratios, others, truncation.limit) * advantages
        return gains, arrays.where(kept, gains, 0.0)
    replaced = capped_ratios if truncation.rule == "released" else truncated_ratios
    used = replaced(arrays, ratios, others, truncation.limit)
    gains, rising = clipped_gains(arrays, used, advantages, clip)
    return gains, arrays.where(used < ratios, 0.0, rising)


def squared_error(values: Array, targets: Array) -> tuple[Array, Array]:
    """Return ½ E[(V − R)²], and its derivative by each value."""
    errors = values - targets
    return 0.5 * mean(errors * errors), errors * (1.0 / len(errors))


def clamped_square(arrays: Any, values: Array, targets: Array, limit: float | None) -> tuple[Array, Array]:
    """Return E[min((V − R)², limit)], and its derivative by each value: 0 where the square is above the limit."""
    errors = values - targets
    squares, slopes = errors * errors, errors * (2.0 / len(errors))
    if limit is None:
        return mean(squares), slopes
    return mean(squares.clip(max=limit)), arrays.where(squares <= limit, slopes, 0.0)


def actor_critic(
    advantages: Array, targets: Array, value_coefficient: float, log_probs: Array, values: Array
) -> Slopes:
    """Return the derivatives of −E[A log π] + c_v · ½ E[(V − R)²]."""
    value_loss, by_value = squared_error(values, targets)
    measured = {"policy_loss": -mean(advantages * log_probs), "value_loss": value_loss}
    return Slopes(advantages * (-1.0 / len(advantages)), by_value * value_coefficient, measured)
