"""Fragments: warm or restored they are the same, and what ends, is cut off or loses a life is told apart."""

import hashlib
from time import perf_counter

import numpy as np
import pytest

from training.calls.evaluate import EvaluateRequest
from training.calls.rollout import RolloutRequest
from training.engine.codec import decode
from training.engine.messages import BlobRef, Call
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.environments.atari import Shrinking, _averaging
from training.rl.environments.making import make, spaces_of
from training.rl.environments.model import EnvironmentSpec
from training.rl.networks.inference import NumpyPolicy
from training.spec import TrainingSpec


def spec_of(name):
    network = {"kind": "cnn", "hidden": [32]} if "ALE" in name or "NoFrameskip" in name else {"kind": "mlp"}
    return TrainingSpec.model_validate({"environment": {"id": name}, "network": network})


def weights_of(name):
    spec = spec_of(name)
    return spec.algorithm.initial_state(spec.network, spaces_of(spec.environment), 1).actor_weights(
        spec.network
    )


def call_of(name, weights, *, serial=1, state=None, steps=40, copies=2, slot=0):
    request = RolloutRequest(
        environment=EnvironmentSpec(id=name), environments=copies, steps=steps, slot=slot, discount=0.99
    )
    ref = BlobRef(version=0, sha256=hashlib.sha256(weights).hexdigest(), byte_count=len(weights))
    settings = {"where": "actor", "round_no": serial, "deadline_s": 60, "memory_mb": 1024}
    return Call(id=f"{serial}", request=request, seed=serial, weights=ref, slot_state=state, **settings)


@pytest.mark.parametrize("name", ["CartPole-v1", "Hopper-v5", "ALE/Pong-v5"])
def test_warm_cold_and_elsewhere_are_the_same(name):
    """Three fragments in one process, against each in a process that has never seen the environment."""
    weights, warm = weights_of(name), WarmCache()
    state_here = state_there = None
    for serial in (1, 2, 3):
        here = execute(call_of(name, weights, serial=serial, state=state_here), weights, warm)
        there = execute(call_of(name, weights, serial=serial, state=state_there), weights, WarmCache())
        assert here.payload == there.payload
        assert here.slot_state == there.slot_state
        state_here, state_there = here.slot_state, there.slot_state


def test_what_went_to_environments_and_to_the_policy_is_distinguished():
    weights = weights_of("CartPole-v1")
    began_s = perf_counter()
    usage = execute(call_of("CartPole-v1", weights, steps=200), weights, WarmCache()).usage
    took_s = perf_counter() - began_s
    assert 0 < usage.inference_s < took_s
    assert 0 < usage.steps_s < took_s
    assert usage.steps_s + usage.inference_s < took_s


def test_many_slots_share_a_few_warm_environments():
    """A hundred slots through one process twice over: each goes on where it was."""
    weights, shared = weights_of("CartPole-v1"), WarmCache()
    states = {}
    for serial in (1, 2):
        for slot in range(100):
            call = call_of(
                "CartPole-v1", weights, serial=slot * 10 + serial, state=states.get(slot), slot=slot, copies=1
            )
            result = execute(call, weights, shared)
            assert result.payload == execute(call, weights, WarmCache()).payload
            states[slot] = result.slot_state
    (kept,) = shared.slots.values()
    assert len(kept) <= 32


def test_a_time_limit_keeps_the_state_it_cut_off_and_an_end_does_not():
    name = "MountainCar-v0"
    weights = weights_of(name)
    document = decode(execute(call_of(name, weights, steps=450, copies=1), weights, WarmCache()).payload)
    ends = np.flatnonzero(document["truncated"][:, 0])
    assert ends.tolist() == [199, 399]
    assert document["final_index"].tolist() == [[199, 0], [399, 0]]
    # What the cut-off step led to is the final observation; what the next step begins with is a fresh start.
    assert (document["final_observations"][0] != document["observations"][200, 0]).any()
    assert abs(float(document["observations"][200, 0, 1])) == 0.0
    assert document["episode_lengths"].tolist() == [200, 200]
    pole = weights_of("CartPole-v1")
    document = decode(execute(call_of("CartPole-v1", pole, steps=200, copies=1), pole, WarmCache()).payload)
    assert document["terminated"].any()
    assert len(document["final_index"]) == 0


def test_an_environment_that_changes_its_shape_is_named(monkeypatch):
    from gymnasium.envs.classic_control import CartPoleEnv

    step = CartPoleEnv.step
    monkeypatch.setattr(
        CartPoleEnv, "step", lambda self, action: (step(self, action)[0][:3], 1.0, False, False, {})
    )
    weights = weights_of("CartPole-v1")
    with pytest.raises(ValueError, match=r"CartPole-v1 showed \(3,\) at step 0 and \(4,\) before"):
        execute(call_of("CartPole-v1", weights), weights, WarmCache())


def test_observations_follow_each_other_over_calls():
    """The 257th step of 256-step calls: what one fragment ends with, the next begins with."""
    weights = weights_of("Hopper-v5")
    first = execute(call_of("Hopper-v5", weights, serial=1, copies=1), weights, WarmCache())
    second = execute(
        call_of("Hopper-v5", weights, serial=2, copies=1, state=first.slot_state), weights, WarmCache()
    )
    np.testing.assert_array_equal(
        decode(first.payload)["last_observations"], decode(second.payload)["observations"][0]
    )


def test_a_lost_life_ends_the_episode_for_the_learner_only():
    name = "BreakoutNoFrameskip-v4"
    weights = weights_of(name)
    document = decode(execute(call_of(name, weights, steps=250, copies=1), weights, WarmCache()).payload)
    assert document["terminated"].sum() > len(document["episode_returns"])
    policy = NumpyPolicy(weights)
    assert policy.outputs_size == 4


def test_evaluation_plays_whole_games_with_raw_rewards():
    """Seeds decide, and lives do not: an evaluation's episode ends with the game."""
    name = "PongNoFrameskip-v4"
    weights = weights_of(name)
    request = EvaluateRequest(environment=EnvironmentSpec(id=name), episode_seeds=(3,))
    call = call_of(name, weights).model_copy(update={"request": request})
    document = decode(execute(call, weights, WarmCache()).payload)
    assert document["returns"][0] <= -15  # an untrained policy loses 21 points, give or take
    assert document["lengths"][0] > 700
    again = decode(execute(call, weights, WarmCache()).payload)
    assert again["returns"].tolist() == document["returns"].tolist()


def test_atari_pictures_are_what_area_averaging_gives():
    """Oracle: averages computed pixel by pixel with fractions, for one picture."""
    environment = make(EnvironmentSpec(id="PongNoFrameskip-v4"))
    environment.reset(seed=1)
    for _ in range(30):
        environment.step(2)
    merged = np.maximum(environment._frames[0], environment._frames[1]).astype(float)
    rows, columns = merged.shape
    expected = np.zeros((84, 84))
    for i, j in [(0, 0), (20, 33), (50, 50), (83, 83)]:
        total = weight = 0.0
        for r in range(int(i * rows / 84), min(rows, int(np.ceil((i + 1) * rows / 84)))):
            for c in range(int(j * columns / 84), min(columns, int(np.ceil((j + 1) * columns / 84)))):
                down = min(r + 1, (i + 1) * rows / 84) - max(r, i * rows / 84)
                right = min(c + 1, (j + 1) * columns / 84) - max(c, j * columns / 84)
                total += merged[r, c] * down * right
                weight += down * right
        expected[i, j] = total / weight
        assert abs(environment._stack[-1][i, j] - expected[i, j]) <= 0.51


@pytest.mark.parametrize("rows", [160, 168, 200, 210, 250])
def test_a_picture_is_shrunk_in_parts_as_it_would_be_as_a_whole(rows):
    """Bit for bit: where an average lies between two greys, its last rounding decides."""
    shrink, rng = Shrinking(rows, 160), np.random.default_rng(rows)
    picture = np.empty((84, 84), dtype=np.uint8)
    for _ in range(20):
        frames = rng.integers(0, 256, (2, rows, 160)).astype(np.uint8)
        whole = frames.max(axis=0).astype(np.float32)
        shrink(frames, picture)
        small = _averaging(rows) @ whole @ np.ascontiguousarray(_averaging(160).T)
        np.testing.assert_array_equal(picture, np.rint(small).astype(np.uint8))


def test_an_atari_episode_is_cut_off_at_108_000_frames(monkeypatch):
    import training.rl.environments.atari as atari

    monkeypatch.setattr(atari, "_FRAMES_PER_EPISODE", 800)
    environment = make(EnvironmentSpec(id="PongNoFrameskip-v4"))
    environment.reset(seed=1)
    steps, truncated = 0, False
    while not truncated:
        _, _, terminated, truncated, _ = environment.step(0)
        assert not terminated
        steps += 1
    assert 150 < steps < 210


def cut_off_at(number):
    """CartPole's step, which cuts an episode off at this step with an observation that is no number."""
    from gymnasium.envs.classic_control import CartPoleEnv

    step = CartPoleEnv.step

    def cut_off(self, action):
        seen, reward, over, _, info = step(self, action)
        self.count = getattr(self, "count", 0) + 1
        return (
            (seen * np.nan, reward, False, True, info)
            if self.count == number
            else (seen, reward, over, False, info)
        )

    return cut_off


def test_a_last_observation_of_an_episode_must_be_a_number_too(monkeypatch):
    """What a limit cut off is learned from, though no step of the fragment begins with it."""
    from gymnasium.envs.classic_control import CartPoleEnv

    monkeypatch.setattr(CartPoleEnv, "step", cut_off_at(7))
    weights = weights_of("CartPole-v1")
    with pytest.raises(ValueError, match=r"last observation .* at step 6"):
        execute(call_of("CartPole-v1", weights, copies=1), weights, WarmCache())
