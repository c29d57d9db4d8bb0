"""Learning divided into gradients and their application: the same weights as an update, wherever they are computed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import updates_of
from tests.training.specs import tiny
from training.aggregation import usual_step
from training.algorithms import optimisation
from training.batch import Batch
from training.calls import KINDS
from training.calls.apply import ApplyRequest
from training.calls.gradient import GradientRequest
from training.calls.kind import BadAnswer
from training.codec import decode, encode
from training.functions.body import Result, WarmCache
from training.functions.run import execute
from training.learner import LearnerState
from training.messages import BlobRef, Call
from training.policy_shift import divergence, measure_policy_shift
from training.spec import TrainingSpec
from training.truncation import Truncation
from training.update_samples import UpdateSamples

OFF = Truncation(rule="off")
WHOLE = {
    "minibatch_size": 1_000_000,
    "normalise_observations": True,
    "normalise_rewards": True,
    "learning_rate": 1e-3,
}
NO_MINIBATCHES = {name: value for name, value in WHOLE.items() if name != "minibatch_size"}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo, 1 pass": {"kind": "ppo", "epochs": 1, **WHOLE},
    "ppo, 10 passes": {"kind": "ppo", "epochs": 10, "value_clip": 0.2, "kl_coefficient": 0.2, **WHOLE},
    "ppo, decoupled": {"kind": "ppo", "epochs": 3, "objective": "decoupled", "clip_decay": True, **WHOLE},
    "ppo, recomputed": {"kind": "ppo", "epochs": 3, "recompute_advantages": True, **WHOLE},
    "ppo, KL limit": {"kind": "ppo", "epochs": 10, "target_kl": 1e-4, **WHOLE},
    "a2c": {"kind": "a2c", "normalise_advantages": True, **NO_MINIBATCHES},
    "impala": {"kind": "impala", "epochs": 3, **WHOLE},
    "impact": {"kind": "impact", "epochs": 3, "kl_coefficient": 0.1, "target_every_updates": 2, **WHOLE},
}


@cache
def sampled(environment: str = "CartPole-v1") -> tuple[TrainingSpec, list[tuple[bytes, ...]]]:
    """Two rounds' inputs of updates: the learner's state, then trajectories."""
    spec = tiny(environment, rollout={"steps_per_call": 40}, stop={"rounds": 2})
    return spec, [inputs for _, inputs in updates_of(spec, InlinePlatform())]


def spec_of(name: str, environment: str = "CartPole-v1") -> TrainingSpec:
    return tiny(environment, algorithm=ALGORITHMS[name], rollout={"steps_per_call": 40})


def named(version: int, blob: bytes) -> BlobRef:
    return BlobRef(version=version, sha256=hashlib.sha256(blob).hexdigest(), byte_count=len(blob))


def gradient_call(
    spec: TrainingSpec,
    state: LearnerState,
    trajectories: tuple[bytes, ...],
    *,
    pass_no: int = 1,
    start: bytes | None = None,
    policies: tuple[bytes, ...] = (),
    anchor: bytes | None = None,
    truncation: Truncation = OFF,
    seed: int = 7,
    progress: float = 0.25,
    states: int = 0,
) -> tuple[Call, bytes]:
    """A call for a gradient, and the parameters that it names."""
    blob = state.for_gradients().encode()
    request = GradientRequest(
        environment=spec.environment,
        algorithm=spec.algorithm,
        network=spec.network,
        progress=progress,
        pass_no=pass_no,
        passes=spec.algorithm.passes,
        policies=len(policies),
        anchored=anchor is not None,
        truncation=truncation,
        states=states,
    )
    call = Call(
        id="r1-gradient-n1-a1",
        request=request,
        where="actor",
        round_no=1,
        seed=seed,
        deadline_s=60,
        memory_mb=1024,
        weights=named(state.version, blob),
        env_state=start,
        inputs=(*trajectories, *policies, *([] if anchor is None else [anchor])),
    )
    return call, blob


def apply_call(
    spec: TrainingSpec,
    state: LearnerState,
    payloads: list[bytes],
    *,
    weights: tuple[float, ...] | None = None,
    policies: tuple[bytes, ...] = (),
    round_no: int = 1,
    **changes: Any,
) -> Call:
    request = ApplyRequest(
        algorithm=spec.algorithm,
        network=spec.network,
        progress=changes.pop("progress", 0.25),
        weights=weights or (1.0,) * len(payloads),
        policies=len(policies),
        **changes,
    )
    return Call(
        id="r1-apply-n2-a1",
        request=request,
        where="learner",
        round_no=round_no,
        seed=0,
        deadline_s=60,
        memory_mb=1024,
        inputs=(state.encode(), *payloads, *policies),
    )


def answered(call: Call, weights: bytes | None = None) -> Result:
    """The result of a call, checked as one that came from an actor."""
    result = execute(call, weights, WarmCache())
    KINDS[call.kind].check(call, call.request, result)
    return result


def learned_by_calls(
    spec: TrainingSpec, state: LearnerState, trajectories: tuple[bytes, ...], round_no: int, seed: int
) -> tuple[LearnerState, list[Result]]:
    """One learner makes all passes over the whole of a round, and each gradient is applied by itself."""
    start, results, first = None, [], state.actor_weights(spec.network)
    for pass_no in range(1, spec.algorithm.passes + 1):
        anchored = pass_no > 1 and spec.algorithm.anchors_to_sampling
        call, blob = gradient_call(
            spec,
            state,
            trajectories,
            pass_no=pass_no,
            start=start,
            seed=seed,
            anchor=first if anchored else None,
        )
        found = answered(call, blob)
        last = decode(found.payload)["last"]
        start = start or found.env_state
        applied = answered(apply_call(spec, state, [found.payload], round_no=round_no, ends_round=last))
        results += [found, applied]
        state = LearnerState.decode(decode(applied.payload)["state"])
        if last:
            break
    return state, results


def with_version(trajectory: bytes, version: int) -> bytes:
    return encode({**decode(trajectory), "version": version})


def assert_same_learner(one: LearnerState, other: LearnerState) -> None:
    for group in ("parameters", "first_moments", "second_moments", "target_parameters"):
        found, expected = getattr(one, group), getattr(other, group)
        assert list(found) == list(expected)
        for name in found:
            assert found[name].dtype == expected[name].dtype
            assert (found[name] == expected[name]).all(), (group, name)
    for group in ("observation_moments", "return_moments"):
        found, expected = getattr(one, group), getattr(other, group)
        assert found.count == expected.count
        assert (found.mean == expected.mean).all()
        assert (found.variance == expected.variance).all()
    assert one.optimiser_steps == other.optimiser_steps
    assert one.kl_coefficient == other.kl_coefficient


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_learner_with_whole_rounds_learns_what_updates_learn(name, environment, monkeypatch):
    """Bit for bit, over two rounds: parameters, Adam's moments, normalisers, target, KL weight."""
    monkeypatch.setattr(optimisation, "has_gpu", lambda: False)
    spec = spec_of(name, environment)
    _, rounds = sampled(environment)
    spaces = LearnerState.decode(rounds[0][0]).spaces
    by_updates = by_calls = spec.algorithm.initial_state(spec.network, spaces, 3)
    passes = []
    for round_no, (_, *trajectories) in enumerate(rounds, 1):
        batch = Batch.of(
            [with_version(one, by_updates.version) for one in trajectories],
            range(by_updates.version, by_updates.version + 1),
            spaces,
        )
        learned = spec.algorithm.learn(by_updates, batch, spec.network, 0.25, 7 + round_no)
        stamped = tuple(with_version(one, by_calls.version) for one in trajectories)
        before = by_calls
        by_calls, results = learned_by_calls(spec, by_calls, stamped, round_no, 7 + round_no)
        by_updates = learned.state
        assert_same_learner(by_calls, by_updates)
        assert any((by_calls.parameters[n] != before.parameters[n]).any() for n in before.parameters)
        passes.append(len(results) // 2)
        assert sum(one.usage.samples for one in results[::2]) == learned.samples
        assert [decode(one.payload)["env_steps"] for one in results[1::2]] == [0] * (passes[-1] - 1) + [
            batch.size
        ]
    if name == "ppo, KL limit":
        assert passes[-1] < spec.algorithm.passes, "the KL limit must end the passes early"
    else:
        assert passes == [spec.algorithm.passes] * 2


def test_autograds_gradients_become_what_its_updates_become(monkeypatch):
    from training.algorithms.autograd import Autograd

    monkeypatch.setattr(optimisation, "descent_of", Autograd)
    spec = spec_of("ppo, 10 passes")
    _, ((learner, *trajectories), _) = sampled()
    spaces = LearnerState.decode(learner).spaces
    state = spec.algorithm.initial_state(spec.network, spaces, 3)
    learned = spec.algorithm.learn(state, Batch.of(trajectories, range(1), spaces), spec.network, 0.25, 8)
    by_calls, _ = learned_by_calls(spec, state, tuple(trajectories), 1, 8)
    assert_same_learner(by_calls, learned.state)


def a_gradient(name: str = "ppo, 10 passes", **options: Any) -> tuple[Call, Result]:
    """A call for a gradient of real samples, and the result of its body."""
    spec, (_, *trajectories) = spec_of(name), sampled()[1][0]
    spaces = LearnerState.decode(sampled()[1][0][0]).spaces
    state = spec.algorithm.initial_state(spec.network, spaces, 3)
    call, blob = gradient_call(spec, state, tuple(trajectories), **options)
    return call, execute(call, blob, WarmCache())


def with_changes(result: Result, changes: dict[str, Any]) -> Result:
    """The result with parts of its document replaced; None takes one away."""
    document = {**decode(result.payload), **changes}
    kept = {name: value for name, value in document.items() if value is not None or name not in changes}
    return replace(result, payload=encode(kept))


WEIGHT, BIAS = "g:policy.0.weight", "g:policy.0.bias"
HOSTILE: dict[str, tuple[str, Any]] = {
    "not a number": ("not finite", lambda d: {WEIGHT: np.full_like(d[WEIGHT], np.nan)}),
    "infinite": ("not finite", lambda d: {BIAS: np.full_like(d[BIAS], np.inf)}),
    "another shape": ("another shape", lambda d: {WEIGHT: np.ascontiguousarray(d[WEIGHT].T)}),
    "another type": ("another shape or type", lambda d: {WEIGHT: d[WEIGHT].astype(np.float64)}),
    "whole numbers": ("another shape or type", lambda d: {BIAS: d[BIAS].astype(np.int32)}),
    "no array": ("another shape or type", lambda d: {BIAS: [0.0]}),
    "one too few": ("lacks or adds", lambda d: {WEIGHT: None}),
    "one too many": ("lacks or adds", lambda d: {"g:policy.9.weight": d[WEIGHT]}),
    "another version": ("of version 1, not of 0", lambda d: {"version": 1}),
    "a version that is true": ("of version", lambda d: {"version": False}),
    "another pass": ("of another pass", lambda d: {"pass_no": 2}),
    "more samples": ("samples is", lambda d: {"samples": d["samples"] + 1}),
    "samples counted twice": ("env_steps is", lambda d: {"env_steps": d["samples"]}),
    "the last pass too early": ("of another pass", lambda d: {"last": True, "env_steps": d["samples"]}),
    "moments too early": (
        "moments of other samples",
        lambda d: {
            "observation_count": 120.0,
            "observation_mean": np.zeros(4),
            "observation_variance": np.ones(4),
        },
    ),
    "a longer step": ("asks for a step", lambda d: {"length": 2.0}),
    "a report that is not finite": ("not finite", lambda d: {"report": {**d["report"], "entropy": np.inf}}),
    "a report of more": ("not one of ours", lambda d: {"report": {**d["report"], "x": 1.0}}),
    "importance of less": ("not one of ours", lambda d: {"importance": {}}),
    "no divergence": ("is no divergence", lambda d: {"divergence": np.inf}),
    "a number beyond all sense": ("above 1e\\+15", lambda d: {BIAS: np.full_like(d[BIAS], 1e16)}),
    "a report beyond all sense": ("too large", lambda d: {"report": {**d["report"], "entropy": 1e300}}),
    "a divergence beyond all sense": ("is no divergence", lambda d: {"divergence": 1e300}),
    "samples that count less than nothing": (
        "samples count -1.0 times",
        lambda d: {"importance": {**d["importance"], "weight": -1.0}},
    ),
    "samples that count nothing": (
        "samples count 0.0 times",
        lambda d: {"importance": {**d["importance"], "weight": 0.0}},
    ),
    "samples that count more than any ratio": (
        "at most 4.85165e\\+08 is possible",
        lambda d: {"importance": {**d["importance"], "weight": 1e9}},
    ),
    "a share of more than all": (
        "shares that are none",
        lambda d: {"importance": {**d["importance"], "truncated": 1.5}},
    ),
    "a pass that is true": ("of another pass", lambda d: {"pass_no": True}),
    "words for a device": ("names no device", lambda d: {"device": "x" * 100}),
    "more bytes": ("cannot be read", lambda d: {"x": np.zeros(10**6)}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_gradient_that_is_not_what_was_asked_for_is_refused_with_a_reason(name):
    call, result = a_gradient()
    KINDS["gradient"].check(call, call.request, result)
    words, change = HOSTILE[name]
    with pytest.raises(BadAnswer, match=words):
        KINDS["gradient"].check(call, call.request, with_changes(result, change(decode(result.payload))))


def test_a_step_is_no_longer_than_the_truncation_lets_it_be():
    call, result = a_gradient("ppo, 1 pass", truncation=Truncation(rule="mean_step", limit=1.1))
    KINDS["gradient"].check(call, call.request, result)
    document = decode(result.payload)
    assert 0 < document["length"] <= 1.1 * (1 + 1e-6)
    for length in (-1.0, 0.0, 1.2, 1e300):
        changed = {"length": length, "importance": {**document["importance"], "weight": length}}
        with pytest.raises(BadAnswer, match=r"samples count|too large"):
            KINDS["gradient"].check(call, call.request, with_changes(result, changed))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"observation_variance": np.full(4, -1.0)}, "a variance of observations is below 0"),
        ({"observation_variance": np.full(4, 1e300)}, "has numbers above"),
        ({"observation_mean": np.full(4, 1e300)}, "has numbers above"),
        ({"return_variance": np.full(1, -1.0)}, "a variance of returns is below 0"),
        ({"observation_count": True}, "moments of other samples"),
        ({"return_count": 40}, "moments of other samples"),
    ],
)
def test_moments_that_no_normaliser_can_have_are_refused(changes, words):
    call, result = a_gradient("ppo, 1 pass")
    with pytest.raises(BadAnswer, match=words):
        KINDS["gradient"].check(call, call.request, with_changes(result, changes))


def test_work_and_what_later_passes_need_are_checked():
    call, result = a_gradient()
    check = KINDS["gradient"].check
    samples = result.usage.samples
    for work in ({"samples": samples + 1}, {"minibatches": 2}, {"macs": 1}, {"pictures": True}):
        with pytest.raises(BadAnswer, match="are reported"):
            check(call, call.request, replace(result, usage=result.usage.model_copy(update=work)))
    with pytest.raises(BadAnswer, match="lacks or adds what later passes need"):
        check(call, call.request, replace(result, env_state=None))
    start = decode(result.env_state)
    for wrong, words in (
        ({**start, "values": start["values"] * np.nan}, "not finite"),
        ({**start, "values": start["values"][1:]}, "another shape"),
        ({"values": start["values"]}, "lacks or adds"),
    ):
        with pytest.raises(BadAnswer, match=words):
            check(call, call.request, replace(result, env_state=encode(wrong)))
    with pytest.raises(BadAnswer, match="cannot be read"):
        check(call, call.request, replace(result, payload=b"nonsense"))


def test_an_aggregation_that_is_not_one_of_its_gradients_is_refused():
    spec = spec_of("ppo, 1 pass")
    state = spec.algorithm.initial_state(spec.network, LearnerState.decode(sampled()[1][0][0]).spaces, 3)
    gradients = [a_gradient("ppo, 1 pass", seed=seed)[1].payload for seed in (1, 2)]
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
    request = a_gradient()[0].request
    with pytest.raises(ValueError, match="pass 11 is not one of 10"):
        GradientRequest.model_validate({**request.model_dump(), "pass_no": 11})


def test_what_is_due_once_a_round_waits_for_its_last_version_and_counts_each_sample_once():
    """Two slices of three passes each, applied in pairs; the round ends with the last pair."""
    spec = tiny(
        algorithm={"kind": "ppo", "epochs": 3, "kl_coefficient": 0.2, **WHOLE}, rollout={"steps_per_call": 40}
    )
    _, (inputs, _) = sampled()
    state = spec.algorithm.initial_state(spec.network, LearnerState.decode(inputs[0]).spaces, 3)
    slices = [(inputs[1],), tuple(inputs[2:])]
    batch = Batch.of(inputs[1:], range(1), state.spaces)
    starts: list[bytes | None] = [None, None]
    first = state.actor_weights(spec.network)
    for pass_no in (1, 2, 3):
        payloads = []
        for at, trajectories in enumerate(slices):
            call, blob = gradient_call(
                spec,
                state,
                trajectories,
                pass_no=pass_no,
                start=starts[at],
                anchor=None if pass_no == 1 else first,
            )
            found = answered(call, blob)
            starts[at] = starts[at] or found.env_state
            payloads.append(found.payload)
        assert state.observation_moments.count == 0
        assert state.round_sums.divergences == 2 * (pass_no - 1)
        assert state.kl_coefficient == 0.2
        applied = answered(apply_call(spec, state, payloads, ends_round=pass_no == 3))
        # A checkpoint in the middle of a round holds its sums.
        state = LearnerState.decode(decode(applied.payload)["state"])
    assert decode(applied.payload)["env_steps"] == batch.size
    assert state.observation_moments.count == state.return_moments.count == batch.size
    seen = batch.observations.reshape(-1, 4)
    np.testing.assert_allclose(state.observation_moments.mean, seen.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(state.observation_moments.variance, seen.var(axis=0), rtol=1e-5)
    assert state.round_sums.observation_moments is None
    assert state.round_sums.divergences == 0
    assert state.kl_coefficient == 0.1, "so little a divergence halves the weight, once"


def test_another_learners_policy_lowers_what_a_sample_counts_and_one_own_policy_nothing():
    spec, (_, *trajectories) = spec_of("ppo, 1 pass"), sampled()[1][0]
    state = spec.algorithm.initial_state(spec.network, LearnerState.decode(sampled()[1][0][0]).spaces, 3)
    own = state.actor_weights(spec.network)
    moved = {name: array + np.float32(0.3) for name, array in state.parameters.items()}
    other = replace(state, version=1, parameters=moved).actor_weights(spec.network)
    found = {}
    for name, policies in {"alone": (), "own": (own,), "other": (own, other)}.items():
        call, blob = gradient_call(
            spec, state, tuple(trajectories), policies=policies, truncation=Truncation(limit=1.5)
        )
        found[name] = decode(answered(call, blob).payload)
    assert (found["alone"][WEIGHT] == found["own"][WEIGHT]).all()
    assert found["alone"]["importance"] == found["own"]["importance"]
    assert (found["alone"][WEIGHT] != found["other"][WEIGHT]).any()
    assert found["other"]["importance"]["weight"] < found["alone"]["importance"]["weight"]
    assert found["other"]["importance"]["effective"] == found["alone"]["importance"]["effective"]
    call, blob = gradient_call(
        spec,
        state,
        tuple(trajectories),
        policies=(own, other),
        truncation=Truncation(rule="mean_step", limit=1.5),
    )
    short = decode(answered(call, blob).payload)
    assert short["length"] == pytest.approx(found["other"]["importance"]["weight"])
    plain = decode(answered(*gradient_call(spec, state, tuple(trajectories))).payload)
    assert (short[WEIGHT] == plain[WEIGHT]).all()


@pytest.mark.parametrize("rule", ["mean", "weigh_gradients", "sequential"])
def test_the_steps_of_each_rule_are_those_of_their_gradients(rule):
    """Half the weight is half the step under Adam, but where it only scales the gradient, and steps follow another."""
    spec = spec_of("ppo, 1 pass")
    state = spec.algorithm.initial_state(spec.network, LearnerState.decode(sampled()[1][0][0]).spaces, 3)
    payload = a_gradient("ppo, 1 pass")[1].payload

    def moved(weights: tuple[float, ...]) -> tuple[Any, LearnerState]:
        call = apply_call(spec, state, [payload] * len(weights), weights=weights, rule=rule)
        after = LearnerState.decode(decode(answered(call).payload)["state"])
        name = "policy.0.weight"
        return after.parameters[name] - state.parameters[name], after

    (whole, _), (half, _), (two, after) = moved((1.0,)), moved((0.5,)), moved((1.0, 1.0))
    ratio = np.median(half / whole)
    assert ratio == pytest.approx(1.0 if rule == "weigh_gradients" else 0.5, rel=1e-2)
    assert after.optimiser_steps == (2 if rule == "sequential" else 1)
    assert np.median(two / whole) == pytest.approx(2.0 if rule == "sequential" else 1.0, rel=1e-2)


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
def test_distances_count_usual_steps_from_the_newest_policy(environment):
    """Four versions that each move on: the newest is not away from itself, and older ones are further and further."""
    spec, (_, *trajectories) = spec_of("ppo, 10 passes", environment), sampled(environment)[1][0]
    spaces = LearnerState.decode(sampled(environment)[1][0][0]).spaces
    state = spec.algorithm.initial_state(spec.network, spaces, 3)
    call, blob = gradient_call(spec, state, tuple(trajectories), states=32)
    found = answered(call, blob)
    states = decode(found.payload)["states"]
    assert states.shape == (32, *spaces.observation_shape)
    published, document = [], {}
    for _ in range(4):
        published.append(state.actor_weights(spec.network))
        applied = answered(
            apply_call(spec, state, [found.payload], policies=tuple(published), ends_round=False)
        )
        document = decode(applied.payload)
        before, state = state, LearnerState.decode(document["state"])
        own = divergence(spec.network, spaces, before.parameters, state.parameters, states)
        spec_shift = UpdateSamples(states, states, *(np.zeros(len(states), np.float32),) * 3)
        moved, _ = measure_policy_shift(spec.network, spaces, before.parameters, state.parameters, spec_shift)
        assert own == pytest.approx(moved, rel=1e-2)
        assert own > 0
        expected = usual_step(before.step_divergence, own)
        assert state.step_divergence == pytest.approx(expected)
        versions, far = zip(*document["distances"], strict=True)
        assert versions == tuple(range(len(published)))
        assert far[-1] == pytest.approx(np.sqrt(own / expected))
        assert list(far) == sorted(far, reverse=True)
    # Adam's first steps lead on in one direction, so four of them are about four steps away.
    assert 2.5 < document["distances"][0][1] < 5.5
    assert state.for_gradients().step_divergence == 0.0


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
