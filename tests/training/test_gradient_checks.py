"""Gradients and aggregations that no honest body returns are refused with a reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.training.gradient_calls import (
    BIAS,
    WEIGHT,
    answered,
    apply_call,
    gradient_call,
    make_gradient,
    sampled,
    spec_of,
    with_changes,
)
from training.calls import KINDS
from training.calls.apply import ApplyRequest
from training.calls.gradient import GradientRequest
from training.calls.kind import BadAnswer
from training.engine.codec import decode, encode
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.learner import LearnerState
from training.rl.truncation import Truncation

HOSTILE = [
    pytest.param("not finite", lambda d: {WEIGHT: np.full_like(d[WEIGHT], np.nan)}, id="not a number"),
    pytest.param("not finite", lambda d: {BIAS: np.full_like(d[BIAS], np.inf)}, id="infinite"),
    pytest.param("another shape", lambda d: {WEIGHT: np.ascontiguousarray(d[WEIGHT].T)}, id="another shape"),
    pytest.param("another shape", lambda d: {WEIGHT: d[WEIGHT].astype(np.float64)}, id="another type"),
    pytest.param("another shape", lambda d: {BIAS: d[BIAS].astype(np.int32)}, id="whole numbers"),
    pytest.param("another shape", lambda d: {BIAS: [0.0]}, id="no array"),
    pytest.param("lacks or adds", lambda d: {WEIGHT: None}, id="one too few"),
    pytest.param("lacks or adds", lambda d: {"g:policy.9.weight": d[WEIGHT]}, id="one too many"),
    pytest.param("of version 1, not", lambda d: {"version": 1}, id="another version"),
    pytest.param("of version", lambda d: {"version": False}, id="a version that is true"),
    pytest.param("of another pass", lambda d: {"pass_no": 2}, id="another pass"),
    pytest.param("samples is", lambda d: {"samples": d["samples"] + 1}, id="more samples"),
    pytest.param("env_steps is", lambda d: {"env_steps": d["samples"]}, id="samples counted twice"),
    pytest.param(
        "of another pass", lambda d: {"last": True, "env_steps": d["samples"]}, id="the last pass too early"
    ),
    pytest.param(
        "moments of other",
        lambda d: {
            "observation_count": 120.0,
            "observation_mean": np.zeros(4),
            "observation_variance": np.ones(4),
        },
        id="moments too early",
    ),
    pytest.param("for a step", lambda d: {"length": 2.0}, id="a longer step"),
    pytest.param(
        "not finite",
        lambda d: {"report": {**d["report"], "entropy": np.inf}},
        id="a report that is not finite",
    ),
    pytest.param("one of ours", lambda d: {"report": {**d["report"], "x": 1.0}}, id="a report of more"),
    pytest.param("one of ours", lambda d: {"importance": {}}, id="importance of less"),
    pytest.param("is no divergence", lambda d: {"divergence": np.inf}, id="no divergence"),
    pytest.param(
        "above 1e\\+15", lambda d: {BIAS: np.full_like(d[BIAS], 1e16)}, id="a number beyond all sense"
    ),
    pytest.param(
        "too large", lambda d: {"report": {**d["report"], "entropy": 1e300}}, id="a report beyond all sense"
    ),
    pytest.param("is no divergence", lambda d: {"divergence": 1e300}, id="a divergence beyond all sense"),
    pytest.param(
        "samples count -1.0 times",
        lambda d: {"importance": {**d["importance"], "weight": -1.0}},
        id="samples that count less than nothing",
    ),
    pytest.param(
        "samples count 0.0 times",
        lambda d: {"importance": {**d["importance"], "weight": 0.0}},
        id="samples that count nothing",
    ),
    pytest.param(
        "at most 4.85165e\\+08 is possible",
        lambda d: {"importance": {**d["importance"], "weight": 1e9}},
        id="samples that count more than any ratio",
    ),
    pytest.param(
        "shares",
        lambda d: {"importance": {**d["importance"], "truncated": 1.5}},
        id="a share of more than all",
    ),
    pytest.param("of another pass", lambda d: {"pass_no": True}, id="a pass that is true"),
    pytest.param("names no device", lambda d: {"device": "x" * 100}, id="words for a device"),
    pytest.param("cannot be read", lambda d: {"x": np.zeros(10**6)}, id="more bytes"),
]


@pytest.mark.parametrize(("words", "change"), HOSTILE)
def test_a_gradient_that_is_not_what_was_requested_is_refused_with_a_reason(words, change):
    call, result = make_gradient()
    KINDS["gradient"].check(call, call.request, result)
    with pytest.raises(BadAnswer, match=words):
        KINDS["gradient"].check(call, call.request, with_changes(result, change(decode(result.payload))))


def test_a_step_is_no_longer_than_the_truncation_lets_it_be():
    call, result = make_gradient("ppo, 1 pass", truncation=Truncation(rule="mean_step", limit=1.1))
    KINDS["gradient"].check(call, call.request, result)
    document = decode(result.payload)
    assert 0 < document["length"] <= 1.1 * (1 + 1e-6)
    for length in (-1.0, 0.0, 1.2, 1e300):
        changed = {"length": length, "importance": {**document["importance"], "weight": length}}
        with pytest.raises(BadAnswer, match=r"samples count|too large"):
            KINDS["gradient"].check(call, call.request, with_changes(result, changed))


def test_work_and_what_later_passes_need_are_checked():
    call, result = make_gradient()
    check = KINDS["gradient"].check
    samples = result.usage.samples
    for work in ({"samples": samples + 1}, {"minibatches": 2}, {"macs": 1}, {"pictures": True}):
        with pytest.raises(BadAnswer, match="are reported"):
            check(call, call.request, replace(result, usage=result.usage.model_copy(update=work)))
    with pytest.raises(BadAnswer, match="later passes need"):
        check(call, call.request, replace(result, slot_state=None))
    start = decode(result.slot_state)
    for wrong, words in (
        ({**start, "values": start["values"] * np.nan}, "not finite"),
        ({**start, "values": start["values"][1:]}, "another shape"),
        ({"values": start["values"]}, "lacks or adds"),
    ):
        with pytest.raises(BadAnswer, match=words):
            check(call, call.request, replace(result, slot_state=encode(wrong)))
    with pytest.raises(BadAnswer, match="cannot be read"):
        check(call, call.request, replace(result, payload=b"nonsense"))


def test_an_aggregation_that_is_not_one_of_its_gradients_is_refused():
    spec = spec_of("ppo, 1 pass")
    state = spec.algorithm.initial_state(spec.network, LearnerState.decode(sampled()[1][0][0]).spaces, 3)
    gradients = [make_gradient("ppo, 1 pass", seed=seed)[1].payload for seed in (1, 2)]
    call = apply_call(spec, state, gradients, weights=(1.0, 0.5))
    result = execute(call, None, WarmCache())
    check = KINDS["apply"].check
    check(call, call.request, result)
    document = decode(result.payload)
    assert (document["gradients"], document["step_length"]) == (2, 0.75)
    after = LearnerState.decode(document["state"])
    seen = after.observation_moments
    assert seen is not None
    for wrong, words in (
        ({"version": 5}, "of version 5"),
        ({"env_steps": 1}, "env_steps is 1"),
        ({"step_length": 1.0}, "step_length is"),
        ({"weights": b"other"}, "weights are not those of the learner's state"),
        ({"parameters": b"other"}, "parameters are not those of the learner's state"),
        ({"state": b"other"}, "cannot be read"),
        ({"state": replace(after, version=9).encode()}, "version 9, not 1"),
        ({"state": replace(after, optimiser_steps=9).encode()}, "optimiser_steps 9, not 1"),
        ({"state": replace(after, kl_coefficient=2.0).encode()}, "weight of its KL penalty"),
        ({"state": replace(after, version=1.0).encode(), "version": 1}, "version 1.0, not 1"),
        ({"state": replace(after, step_divergence=0.5).encode()}, "as the way of a usual step"),
        ({"state": replace(after, step_divergence="far").encode()}, "as the way of a usual step"),
        (
            {
                "state": replace(
                    after, second_moments={name: array - 1 for name, array in after.second_moments.items()}
                ).encode()
            },
            "below 0, which is a mean of squares",
        ),
        (
            {"state": replace(after, observation_moments=replace(seen, count=seen.count + 1)).encode()},
            "observation_moments are not those",
        ),
    ):
        with pytest.raises(BadAnswer, match=words):
            check(call, call.request, with_changes(result, wrong))
    steps = result.usage.model_copy(update={"minibatches": 2})
    with pytest.raises(BadAnswer, match="2 steps are reported"):
        check(call, call.request, replace(result, usage=steps))
    for weights in ((1.0, 0.0), (1.0, float("nan")), ()):
        with pytest.raises(ValueError, match=r"weights|positive"):
            ApplyRequest(algorithm=spec.algorithm, network=spec.network, progress=0.0, weights=weights)


def test_a_pass_that_there_is_not_is_refused():
    request = make_gradient()[0].request
    with pytest.raises(ValueError, match=r"pass 11 .* 10"):
        GradientRequest.model_validate({**request.model_dump(), "pass_no": 11})


def test_distances_that_are_not_those_of_the_policies_are_refused():
    spec, (_, *trajectories) = spec_of("ppo, 1 pass"), sampled()[1][0]
    state = spec.algorithm.initial_state(spec.network, LearnerState.decode(sampled()[1][0][0]).spaces, 3)
    call, blob = gradient_call(spec, state, tuple(trajectories), states=4)
    gradient = answered(call, blob)
    own = state.actor_weights(spec.network)
    call = apply_call(spec, state, [gradient.payload], policies=(own,))
    result = execute(call, None, WarmCache())
    for wrong, words in (
        ([[1, 1.0]], "of other policies"),
        ([[0, float("nan")]], "not a finite number"),
        ([[0, -1.0]], "not a finite number"),
        ([0], "not pairs"),
        ([], "of other policies"),
    ):
        with pytest.raises(BadAnswer, match=words):
            KINDS["apply"].check(call, call.request, with_changes(result, {"distances": wrong}))
    states = decode(gradient.payload)["states"]
    call, _ = gradient_call(spec, state, tuple(trajectories), states=4)
    with pytest.raises(BadAnswer, match="what was seen"):
        KINDS["gradient"].check(call, call.request, with_changes(gradient, {"states": states[:3]}))
