"""Environment state travels bit for bit: a copy restored elsewhere goes on as the saved one would have."""

import gymnasium
import numpy as np
import pytest

from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.making import UnsupportedSpace, can_travel, make, measured_spaces, spaces_of
from training.rl.environments.model import EnvironmentSpec
from training.rl.environments.travel import restore, save

OTHERS = [
    "Ant-v5",
    "Swimmer-v5",
    "Reacher-v5",
    "Pusher-v5",
    "InvertedDoublePendulum-v5",
    "MountainCarContinuous-v0",
]
QUICK_GAMES = {"ALE/Pong-v5", "QbertNoFrameskip-v4"}
NAMES = [
    pytest.param(name, marks=pytest.mark.slow if entry.family == "Atari" and name not in QUICK_GAMES else ())
    for name, entry in ENTRIES.items()
]


def played(environment, actions):
    """All that can be seen of playing `actions`, over ends of episodes too."""
    seen = []
    for action in actions:
        observation, reward, terminated, truncated, _ = environment.step(action)
        seen.append((np.array(observation).tobytes(), float(reward), bool(terminated), bool(truncated)))
        if terminated or truncated:
            seen.append(np.array(environment.reset()[0]).tobytes())
    return seen


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_a_restored_environment_goes_on_bit_for_bit(name):
    spec = EnvironmentSpec(id=name)
    original, elsewhere = make(spec), make(spec)
    original.reset(seed=3)
    original.action_space.seed(1)
    actions = [original.action_space.sample() for _ in range(330)]
    elsewhere.reset(seed=99)
    played(original, actions[:77])
    state = save(original)
    restore(elsewhere, state)
    assert played(original, actions[77:]) == played(elsewhere, actions[77:])


@pytest.mark.parametrize("name", ENTRIES)
def test_the_catalogue_says_what_the_environment_is(name):
    spec = EnvironmentSpec(id=name)
    assert spaces_of(spec) == measured_spaces(name, make(spec))
    assert can_travel(spec)


def test_what_cannot_be_saved_says_so():
    """A subclass may hold state we know nothing of."""

    class WithMemory(gymnasium.envs.classic_control.CartPoleEnv):
        pass

    environment = WithMemory()
    environment.reset(seed=0)
    assert save(environment) is None


def test_a_space_that_nothing_can_learn_is_refused_by_name():
    with pytest.raises(UnsupportedSpace, match="FrozenLake-v1 shows Discrete"):
        spaces_of(EnvironmentSpec(id="FrozenLake-v1"))
