"""Learning divided into gradients and their application: the same weights as an update, wherever they are computed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.training.batches import traced
from tests.training.gradient_calls import (
    ALGORITHMS,
    WEIGHT,
    WHOLE,
    answered,
    apply_call,
    gradient_call,
    learned_by_calls,
    make_gradient,
    sampled,
    spec_of,
)
from tests.training.specs import tiny
from training.engine import torch_loading
from training.engine.codec import decode, encode
from training.loops.aggregation import usual_step
from training.rl.batch import Batch
from training.rl.learner import LearnerState
from training.rl.measures.policy_shift import divergence, measure_policy_shift
from training.rl.surfaces.update_samples import UpdateSamples
from training.rl.truncation import Truncation


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
    monkeypatch.setattr(torch_loading, "_GPU_FILES", ())
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


def test_autograds_gradients_become_what_its_updates_become():
    spec = traced(spec_of("ppo, 10 passes"))
    _, ((learner, *trajectories), _) = sampled()
    spaces = LearnerState.decode(learner).spaces
    state = spec.algorithm.initial_state(spec.network, spaces, 3)
    learned = spec.algorithm.learn(state, Batch.of(trajectories, range(1), spaces), spec.network, 0.25, 8)
    by_calls, _ = learned_by_calls(spec, state, tuple(trajectories), 1, 8)
    assert_same_learner(by_calls, learned.state)


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
                anchors=() if pass_no == 1 else (first,),
            )
            found = answered(call, blob)
            starts[at] = starts[at] or found.slot_state
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


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
@pytest.mark.parametrize("by_torch", [False, True])
def test_each_sample_is_held_to_the_policy_that_sampled_it(environment, by_torch):
    """A slice of three versions: the newest is the learner's own, from which nothing has moved. The penalty is a mean,
    so what it adds to the whole slice's gradient is the mean of what it adds to those of its thirds.
    """
    spec, plain = (
        tiny(
            environment,
            algorithm={"kind": "ppo", "epochs": 2, "kl_coefficient": coefficient, **WHOLE},
            rollout={"steps_per_call": 40},
        )
        for coefficient in (0.2, 0.0)
    )
    if by_torch:
        spec, plain = traced(spec), traced(plain)
    _, (inputs, _) = sampled(environment)
    spaces = LearnerState.decode(inputs[0]).spaces
    state, without = (
        replace(one.algorithm.initial_state(one.network, spaces, 3), version=7) for one in (spec, plain)
    )
    rng = np.random.Generator(np.random.PCG64(5))
    older = {
        version: replace(
            state,
            version=version,
            parameters={
                name: array + rng.normal(0, 0.2, array.shape).astype(np.float32)
                for name, array in state.parameters.items()
            },
        ).actor_weights(spec.network)
        for version in (2, 4)
    }
    thirds = [with_version(inputs[1], version) for version in (4, 2, 7)]

    def added(trajectories, anchors):
        """What the penalty adds to the gradient, and the divergence."""
        held, free = (
            decode(answered(*gradient_call(one, begun, tuple(trajectories), anchors=used)).payload)
            for one, begun, used in ((spec, state, anchors), (plain, without, ()))
        )
        names = [name for name in held if name.startswith("g:")]
        assert names
        return {name: held[name] - free[name] for name in names}, held["divergence"]

    whole, divergence = added(thirds, (older[2], older[4]))
    parts = [
        added([one], anchors) for one, anchors in zip(thirds, ((older[4],), (older[2],), ()), strict=True)
    ]
    assert parts[2][1] == 0.0
    assert min(parts[0][1], parts[1][1]) > 1e-4
    assert divergence == pytest.approx(np.mean([part[1] for part in parts]), rel=1e-5)
    for name, array in whole.items():
        expected = np.mean([part[0][name] for part in parts], axis=0)
        np.testing.assert_allclose(array, expected, rtol=1e-3, atol=1e-6, err_msg=name)


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
    payload = make_gradient("ppo, 1 pass")[1].payload

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
