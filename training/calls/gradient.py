"""Gradients: a learner passes over a slice of trajectories with one version's parameters and returns the gradient.

It needs no optimiser and makes no version, so many may run at once, on any place. `apply` makes versions of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import exp, inf, prod
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from training.calls.kind import (
    FIGURE_LIMIT,
    SLACK_BYTES,
    BadAnswer,
    BillPart,
    CallKind,
    PlannedCall,
    read_document,
)
from training.engine.codec import Document, decode
from training.engine.messages import Call, CallRequest
from training.engine.reports import Usage
from training.functions.body import Result
from training.rl.algorithms import AnyAlgorithm
from training.rl.environments.making import known_spaces
from training.rl.environments.model import EnvironmentSpec
from training.rl.networks import AnyNetwork
from training.rl.networks.network import parameter_shapes
from training.rl.truncation import Truncation

PREFIX = "g:"
"""Before the names of a gradient's arrays in its document."""
IMPORTANCE = ("weight", "effective", "truncated")
MEASURED = (
    "policy_loss",
    "value_loss",
    "entropy",
    "approximate_kl",
    "clip_fraction",
    "explained_variance",
)
MOMENTS = ("observation", "return")
EPISODE_MEANS = ("episode_return_mean", "episode_length_mean")
NUMBER_LIMIT = 1e15
"""A gradient with a larger number has left all sense, and its square would leave float32."""
_MEAN_LIMIT, _VARIANCE_LIMIT = 1e39, 1e78
"""Moments of float32 are below them."""
_RATIO_LIMIT = exp(20.0)
"""Ratios are clipped there (`training.rl.truncation`)."""
_ROUNDING = 1.0 + 1e-6
_HEADER_BYTES = 1200
_PLAIN = {
    "version",
    "pass_no",
    "last",
    "samples",
    "env_steps",
    "staleness_mean",
    "episodes",
    *EPISODE_MEANS,
    "length",
    "importance",
    "report",
    "divergence",
    "device",
}


class GradientRequest(CallRequest):
    """The gradient of one pass over a slice.

    The call's weights are the learner's parameters of one version (`LearnerState.for_gradients`). Its inputs are the
    trajectories in order of slot, then as many `policies` as learners fly, as actors have them, and `anchors`, those
    of older versions that sampled the slice. `slot_state` is what the first pass returned as its own.
    `states` are returned with the gradient, to measure on them how far policies are apart; 0 for none.
    """

    kind: Literal["gradient"] = "gradient"
    environment: EnvironmentSpec
    algorithm: AnyAlgorithm
    network: AnyNetwork
    progress: float = Field(ge=0.0, le=1.0)
    pass_no: int = Field(1, ge=1)
    passes: int = Field(1, ge=1)
    policies: int = Field(0, ge=0)
    anchors: int = Field(0, ge=0)
    truncation: Truncation = Truncation()
    states: int = Field(0, ge=0)

    @model_validator(mode="after")
    def _is_one_of_its_passes(self) -> GradientRequest:
        if self.pass_no > self.passes:
            raise ValueError(f"pass {self.pass_no} is not one of {self.passes}")
        return self


class Gradient(CallKind[GradientRequest]):
    name = "gradient"
    request = GradientRequest
    role = "learning"
    timed_as = "learning"
    where = "actor"
    part = BillPart("gradients", "Gradients", "Learners that computed gradients")
    title = "Gradient"
    who = "Learner"
    subject = "A gradient"

    def answer_limit_bytes(self, call: Call, request: GradientRequest) -> int:
        sizes = [4 * prod(shape) for shape in _shapes(request).values()]
        # Observations have a mean and a variance of eight bytes each, and a slice keeps a few numbers of each sample.
        kept = 0 if request.passes == 1 else sum(map(len, call.inputs))
        size = known_spaces(request.environment).observation_size
        return sum(sizes) + (16 + 4 * request.states) * size + kept + SLACK_BYTES

    def check(self, call: Call, request: GradientRequest, result: Result) -> None:
        shapes = _shapes(request)
        document = read_document(result.payload, self.answer_limit_bytes(call, request), None, "gradient")
        moments = [name for name in MOMENTS if f"{name}_count" in document]
        wanted = _PLAIN | {f"{PREFIX}{name}" for name in shapes}
        wanted |= {f"{name}_{part}" for name in moments for part in ("count", "mean", "variance")}
        if request.states:
            wanted.add("states")
        if set(document) != wanted:
            odd = sorted(map(str, set(document) ^ wanted))[:5]
            raise BadAnswer("gradient", f"the gradient lacks or adds: {', '.join(odd)}")
        for name, shape in shapes.items():
            _check_array(f"the gradient of {name}", document[f"{PREFIX}{name}"], "<f4", shape, NUMBER_LIMIT)
        size = known_spaces(request.environment).observation_size
        for name in moments:
            length = size if name == "observation" else 1
            for part, most in (("mean", _MEAN_LIMIT), ("variance", _VARIANCE_LIMIT)):
                _check_array(f"the {part} of {name}s", document[f"{name}_{part}"], "<f8", (length,), most)
            if (document[f"{name}_variance"] < 0).any():
                raise BadAnswer("gradient", f"a variance of {name}s is below 0")
        facts = slice_facts(call, request, _read_once)
        if request.states:
            spaces = known_spaces(request.environment)
            shape = (min(request.states, facts["samples"]), *spaces.observation_shape)
            _check_array("what was seen", document["states"], "|u1" if spaces.pictures else "<f4", shape)
        _check_plain(call, request, document, facts, moments)
        _check_start(result.slot_state, request, document["last"], facts["shape"])
        work = result.usage.minibatches, result.usage.samples, result.usage.macs, result.usage.pictures
        spaces = known_spaces(request.environment)
        if work != (1, facts["samples"], request.network.learner_macs(spaces), spaces.pictures):
            raise BadAnswer(
                "work", f"{result.usage.samples} samples are reported; {facts['samples']} came in"
            )

    def expected_work(self, planned: PlannedCall) -> Usage:
        rollout, sizes = planned.training.rollout, planned.sizes
        samples = max(1, planned.contributions * rollout.steps_per_call * rollout.environments_per_actor)
        return Usage(
            minibatches=1,
            samples=samples,
            macs=sizes.learner_macs,
            pictures=sizes.pictures,
            bytes_in=sizes.parameters
            + planned.contributions * sizes.trajectory
            + planned.policies * sizes.weights,
            bytes_out=sizes.gradient + _HEADER_BYTES,
        )


def trajectories_of(call: Call, request: GradientRequest) -> tuple[bytes, ...]:
    """Return the trajectories among a call's inputs."""
    return call.inputs[: len(call.inputs) - request.policies - request.anchors]


class _Sampled(NamedTuple):
    version: int
    shape: tuple[int, int]
    returns: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.int32]


def _read(trajectory: bytes) -> _Sampled:
    """Return the report on a trajectory."""
    document = decode(trajectory)
    returns, lengths = document["episode_returns"].copy(), document["episode_lengths"].copy()
    return _Sampled(document["version"], document["rewards"].shape, returns, lengths)


# A coordinator checks all passes over the same few slices, which it holds anyway.
_read_once = lru_cache(maxsize=32)(_read)


def slice_facts(
    call: Call, request: GradientRequest, read: Callable[[bytes], _Sampled] = _read
) -> dict[str, Any]:
    """Return what a gradient must report of its trajectories, which are read but not joined."""
    version = call.weights.version if call.weights is not None else 0
    sampled = [read(trajectory) for trajectory in trajectories_of(call, request)]
    steps = sampled[0].shape[0]
    columns = [fragment.shape[1] for fragment in sampled]
    returns = np.concatenate([fragment.returns for fragment in sampled])
    lengths = np.concatenate([fragment.lengths for fragment in sampled])
    versions = np.repeat([fragment.version for fragment in sampled], columns)
    return {
        "shape": (steps, sum(columns)),
        "samples": steps * sum(columns),
        "staleness_mean": float(np.mean(version - versions)),
        "episodes": len(returns),
        "episode_return_mean": float(np.mean(returns)) if len(returns) else None,
        "episode_length_mean": float(np.mean(lengths)) if len(lengths) else None,
    }


def reported_facts(facts: dict[str, Any], *, last: bool) -> dict[str, Any]:
    """Return the report of a pass over its slice. Facts about the samples are counted once, with its last pass."""
    return {
        "samples": facts["samples"],
        "staleness_mean": facts["staleness_mean"],
        "env_steps": facts["samples"] if last else 0,
        "episodes": facts["episodes"] if last else 0,
        **{name: facts[name] if last else None for name in EPISODE_MEANS},
    }


def joined_facts(version: int, gradients: list[Document]) -> dict[str, Any]:
    """Return the report of the version after `version` on its gradients."""
    samples = [gradient["samples"] for gradient in gradients]
    ended = [gradient for gradient in gradients if gradient["episodes"]]
    episodes = [gradient["episodes"] for gradient in ended]
    late = [version - gradient["version"] + gradient["staleness_mean"] for gradient in gradients]
    return {
        "env_steps": sum(gradient["env_steps"] for gradient in gradients),
        "staleness_mean": float(np.average(late, weights=samples)),
        "episodes": sum(episodes),
        **{
            name: float(np.average([gradient[name] for gradient in ended], weights=episodes))
            if ended
            else None
            for name in EPISODE_MEANS
        },
        "gradients": len(gradients),
        "importance": mean_figures(gradients, "importance", IMPORTANCE, samples),
    }


def mean_figures(
    gradients: list[Document], part: str, names: Iterable[str], weights: Sequence[float] | None = None
) -> dict[str, float]:
    """Return the means of what gradients have measured."""
    return {
        name: float(np.average([gradient[part][name] for gradient in gradients], weights=weights))
        for name in names
    }


def _shapes(request: GradientRequest) -> dict[str, tuple[int, ...]]:
    return parameter_shapes(request.network, known_spaces(request.environment))


def _check_array(
    what: str, array: Any, dtype: str, shape: tuple[int, ...], most: float | None = None
) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.str != dtype or array.shape != shape:
        raise BadAnswer("gradient", f"{what} has another shape or type than the parameters ask for")
    if not np.isfinite(array).all():
        raise BadAnswer("gradient", f"{what} has numbers that are not finite")
    if most is not None and array.size and max(array.max(), -array.min()) > most:
        raise BadAnswer("gradient", f"{what} has numbers above {most:g}")


def _check_plain(
    call: Call,
    request: GradientRequest,
    document: Document,
    facts: dict[str, Any],
    moments: list[str],
) -> None:
    """Check all that is no array."""
    version = call.weights.version if call.weights is not None else 0
    if type(document["version"]) is not int or document["version"] != version:
        raise BadAnswer("version", f"a gradient of version {document['version']!r}, not of {version}")
    last = document["last"]
    may_be_last = request.pass_no == request.passes or request.algorithm.is_enough(inf)
    if last is not True and (last is not False or request.pass_no == request.passes):
        raise BadAnswer("gradient", f"whether it is the last pass is {last!r}")
    if (
        type(document["pass_no"]) is not int
        or document["pass_no"] != request.pass_no
        or (last and not may_be_last)
    ):
        raise BadAnswer("gradient", "the gradient is of another pass")
    seen = request.algorithm.normalise_observations and not known_spaces(request.environment).pictures
    wanted = [
        name
        for name, is_kept in zip(MOMENTS, (seen, request.algorithm.normalise_rewards), strict=True)
        if last and is_kept
    ]
    counts = [document[f"{name}_count"] for name in moments]
    if moments != wanted or any(type(count) is not float or count != facts["samples"] for count in counts):
        raise BadAnswer("gradient", "the gradient has moments of other samples than its own")
    for name, value in reported_facts(facts, last=last).items():
        if type(document[name]) is not type(value) or document[name] != value:
            raise BadAnswer("gradient", f"{name} is {document[name]!r}; the trajectories have {value!r}")
    _check_figures("importance", document["importance"], IMPORTANCE)
    _check_importance(request.truncation, document["importance"])
    _check_figures("report", document["report"], MEASURED)
    if not isinstance(document["device"], str) or len(document["device"]) > 20:
        raise BadAnswer("gradient", "the gradient names no device")
    step = document["importance"]["weight"] if request.truncation.rule == "mean_step" else 1.0
    if type(document["length"]) is not float or document["length"] != step:
        raise BadAnswer("gradient", f"the gradient asks for a step {document['length']!r} times as long")
    divergence = document["divergence"]
    if divergence is not None and not _is_figure(divergence):
        raise BadAnswer("gradient", f"{divergence!r} is no divergence")


def _check_figures(what: str, figures: Any, names: tuple[str, ...]) -> None:
    if not isinstance(figures, dict) or set(figures) != set(names):
        raise BadAnswer("gradient", f"the gradient's {what} is not one of ours")
    if not all(map(_is_figure, figures.values())):
        raise BadAnswer("gradient", f"the gradient's {what} has numbers that are not finite, or too large")


def _is_figure(value: Any) -> bool:
    return type(value) is float and abs(value) <= FIGURE_LIMIT


def _check_importance(truncation: Truncation, importance: dict[str, float]) -> None:
    """Check means that are shares, and a weight that no ratio exceeds: a step may be as long as it."""
    most = min(truncation.limit, _RATIO_LIMIT) if truncation.reads_policies else _RATIO_LIMIT
    if not 0.0 < importance["weight"] <= most * _ROUNDING:
        raise BadAnswer(
            "gradient", f"samples count {importance['weight']!r} times; at most {most:g} is possible"
        )
    if not all(0.0 <= importance[name] <= _ROUNDING for name in ("effective", "truncated")):
        raise BadAnswer("gradient", "the gradient's importance has shares that are none")


def _check_start(state: bytes | None, request: GradientRequest, last: bool, shape: tuple[int, int]) -> None:
    """Check what the first pass kept for the later ones."""
    wanted = request.algorithm.kept_of_first_pass if request.pass_no == 1 and not last else ()
    if (state is None) != (not wanted):
        raise BadAnswer("gradient", "the pass lacks or adds what later passes need")
    if state is None:
        return
    limit = 4 * shape[0] * shape[1] * len(wanted) + SLACK_BYTES
    document = read_document(state, limit, set(wanted), "gradient")
    for name, array in document.items():
        _check_array(name, array, "<f4", shape, NUMBER_LIMIT)
