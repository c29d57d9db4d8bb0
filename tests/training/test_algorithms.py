"""Relations between algorithms that have to hold, and bad data that must not be learned from."""

from dataclasses import replace

import numpy as np
import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import updates_of
from tests.training.specs import tiny
from training.engine.codec import decode, encode
from training.rl.algorithms.impact import Impact
from training.rl.algorithms.impala import Impala
from training.rl.algorithms.ppo import PPO
from training.rl.batch import BadTrajectory, Batch
from training.rl.learner import LearnerState
from training.rl.networks import MLP

ONE_STEP = {"epochs": 1, "minibatch_size": 100_000, "learning_rate_decay": False, "learning_rate": 1e-3}


@pytest.fixture(scope="module", params=["CartPole-v1", "Hopper-v5"])
def sampled(request):
    """A learner's state after some rounds, and a batch sampled with exactly that version."""
    spec = tiny(request.param, stop={"rounds": 4})
    _, inputs = list(updates_of(spec, InlinePlatform()))[-1]
    state = LearnerState.decode(inputs[0])
    return state, inputs[1:], Batch.of(inputs[1:], range(state.version, state.version + 1), state.spaces)


def learned(algorithm, state, batch):
    return algorithm.learn(state, batch, MLP(), 0.0, 1).state.parameters


def assert_same_step(one, other, start):
    """Equal up to rounding, and not for want of a step."""
    moved = max(float(np.abs(one[name] - start[name]).max()) for name in one)
    assert moved > 1e-4
    for name in one:
        np.testing.assert_allclose(one[name], other[name], atol=2e-5)


def test_the_decoupled_objective_on_fresh_data_is_ppo(sampled):
    state, _, batch = sampled
    plain = learned(PPO(**ONE_STEP), state, batch)
    assert_same_step(plain, learned(PPO(**ONE_STEP, objective="decoupled"), state, batch), state.parameters)


def test_the_decoupled_objective_weighs_old_data_and_ppo_does_not(sampled):
    """Data whose recorded log-probabilities are lower by a constant: decoupled steps are weighed, clipped at twice."""
    state, _, batch = sampled
    older = replace(batch, log_probs=batch.log_probs - 5.0)
    stuck = learned(PPO(**ONE_STEP, value_coefficient=0.0, normalise_advantages=False), state, older)
    moved = learned(
        PPO(**ONE_STEP, value_coefficient=0.0, normalise_advantages=False, objective="decoupled"),
        state,
        older,
    )
    assert max(float(np.abs(moved[n] - state.parameters[n]).max()) for n in moved) > 1e-5
    assert any((moved[n] != stuck[n]).any() for n in moved)


def test_impact_on_fresh_data_with_a_fresh_target_steps_as_ppo_does(sampled):
    """Target = behaviour = policy: w = 1, and V-trace's targets and advantages are GAE's."""
    state, _, batch = sampled
    state = replace(state, target_parameters=state.parameters)
    impact = learned(Impact(**ONE_STEP), state, batch)
    assert_same_step(impact, learned(PPO(**ONE_STEP), state, batch), state.parameters)


def test_advantages_as_printed_are_others_unless_lambda_is_one(sampled):
    """Only the policy steps otherwise, as the critic's targets are the same."""
    state, _, batch = sampled
    state = replace(state, target_parameters=state.parameters)
    unclipped = ONE_STEP | {"gradient_clip": "none"}
    for algorithm in (Impact, Impala):
        for decay, alike in ((1.0, True), (0.8, False)):
            plain = learned(algorithm(**unclipped, trace_decay=decay), state, batch)
            printed = learned(algorithm(**unclipped, trace_decay=decay, advantage_trace="full"), state, batch)
            changed = {name for name in plain if (plain[name] != printed[name]).any()}
            assert bool(changed) is not alike
            assert not any(name.startswith("value.") for name in changed)


def test_an_action_that_is_all_but_impossible_by_now_stops_no_update(sampled):
    """Its ratio is 0 in single precision: no gain, no step, and a distance without the logarithm of 0."""
    state, _, batch = sampled
    state = replace(state, target_parameters=state.parameters)
    given = batch.log_probs.copy()
    given[0, 0] += 200.0
    found = Impact(**ONE_STEP).learn(state, replace(batch, log_probs=given), MLP(), 0.0, 1)
    assert 100.0 / batch.size < found.report.approximate_kl < 300.0 / batch.size + 1.0
    assert any((found.state.parameters[name] != state.parameters[name]).any() for name in state.parameters)


def test_a_kl_penalty_adapts_its_weight(sampled):
    state, _, batch = sampled
    state = replace(state, kl_coefficient=0.2)
    wide = PPO(**ONE_STEP | {"epochs": 20, "minibatch_size": 16}, kl_coefficient=0.2, kl_target=1e-6)
    assert wide.learn(state, batch, MLP(), 0.0, 1).state.kl_coefficient == pytest.approx(0.3)
    narrow = PPO(**ONE_STEP, kl_coefficient=0.2, kl_target=10.0)
    assert narrow.learn(state, batch, MLP(), 0.0, 1).state.kl_coefficient == pytest.approx(0.1)


def test_a_kl_limit_ends_the_passes_early(sampled):
    state, _, batch = sampled
    eager = PPO(epochs=50, minibatch_size=16, learning_rate=1e-2, target_kl=1e-4)
    assert eager.learn(state, batch, MLP(), 0.0, 1).samples < 50 * batch.size


def test_the_target_follows_every_few_updates(sampled):
    state, _, batch = sampled
    state = replace(state, target_parameters=state.parameters, version=1)
    slow = Impact(**ONE_STEP, target_every_updates=2)
    first = slow.learn(state, batch, MLP(), 0.0, 1).state
    assert first.target_parameters is first.parameters
    second = slow.learn(first, batch, MLP(), 0.0, 1).state
    assert second.target_parameters is first.target_parameters


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": None}, "lacks rewards"),
        ({"version": 99}, "sampled with version 99"),
        ({"observations": lambda a: a.astype(np.float64)}, "observations as float64"),
        ({"observations": lambda a: a[:, :, :-1]}, "observations of shape"),
        ({"rewards": lambda a: a * np.nan}, "rewards .* not finite"),
        ({"log_probs": lambda a: a - np.inf}, "log_probs .* not finite"),
        ({"final_index": lambda a: np.array([[999, 0]], dtype=np.int32)}, "final_observations of shape"),
        (
            {
                "final_index": np.array([[0, 0]], dtype=np.int32),
                "final_observations": lambda a: np.full((1, *a.shape[1:]), np.nan, dtype=np.float32),
            },
            "final_observations .* not finite",
        ),
        ({"actions": lambda a: a[:-1]}, "actions of shape"),
    ],
)
def test_a_trajectory_that_is_not_what_was_requested_is_refused(sampled, change, message):
    state, payloads, _ = sampled
    document = decode(payloads[0])
    for name, how in change.items():
        if how is None:
            del document[name]
        else:
            document[name] = how(document[name]) if callable(how) else how
    with pytest.raises(BadTrajectory, match=f"^trajectory 1 .*{message}"):
        Batch.of([payloads[1], encode(document)], range(state.version, state.version + 1), state.spaces)


def test_unknown_actions_are_refused(sampled):
    state, payloads, _ = sampled
    if not state.spaces.discrete:
        return
    document = decode(payloads[0])
    document["actions"] = document["actions"] + 7
    with pytest.raises(BadTrajectory, match="actions"):
        Batch.of([encode(document)], range(state.version, state.version + 1), state.spaces)


def test_identity_environment_is_learned_in_two_thousand_steps():
    """Reward for repeating what was seen: the simplest thing that a broken gradient cannot learn."""
    import gymnasium

    from tests.training.runs import events_of

    class Identity(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
        action_space = gymnasium.spaces.MultiDiscrete([3, 2])

        def _seen(self):
            self._wanted = int(self.np_random.integers(3))
            return np.eye(3, dtype=np.float32)[self._wanted]

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self._left = 20
            return self._seen(), {}

        def step(self, action):
            reward = float(action[0] == self._wanted and action[1] == (self._wanted > 0))
            self._left -= 1
            return self._seen(), reward, False, self._left == 0, {}

    gymnasium.register("Identity-v0", entry_point=Identity)
    try:
        spec = tiny(
            "Identity-v0",
            rollout={"steps_per_call": 40},
            scaling={"actors": 2},
            algorithm={"epochs": 10, "minibatch_size": 40, "learning_rate": 3e-3, "normalise_rewards": False},
            stop={"rounds": 25},
            evaluation={"every_rounds": 25, "episodes": 5},
        )
        last = events_of(spec, InlinePlatform())[-1]
    finally:
        gymnasium.registry.pop("Identity-v0")
    assert last.progress == 2000
    assert last.evaluated_score >= 19
