"""It learns. Oracles: the environments' own thresholds or published figures, on seeds never used for training."""

import tomllib
from pathlib import Path

import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import cartpole
from training.spec import TrainingSpec

PRESETS = Path(__file__).parents[2] / "webapp" / "jobs" / "form" / "preset_files"


def end_of(name, **stop):
    """The end of a preset's run, with parts of its stop rule replaced."""
    document = tomllib.loads((PRESETS / f"{name}.toml").read_text())["training"]
    spec = TrainingSpec.model_validate({**document, "stop": {**document["stop"], **stop}})
    return events_of(spec, InlinePlatform())[-1]


@pytest.mark.slow
def test_cartpole_is_solved_within_100_000_steps():
    last = events_of(cartpole(), InlinePlatform())[-1]
    assert (last.reason_code, last.progress <= 100_000) == ("target", True)
    assert last.evaluated_score >= 475


@pytest.mark.endurance
@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_cartpole_is_solved_with_every_seed(seed):
    last = events_of(cartpole(seed=seed), InlinePlatform())[-1]
    assert last.evaluated_score >= 475
    assert last.progress <= 100_000


@pytest.mark.endurance
@pytest.mark.slow
def test_acrobot_is_solved_within_500_000_steps():
    last = end_of("acrobot")
    assert last.evaluated_score >= -100
    assert last.progress <= 500_000


@pytest.mark.endurance
@pytest.mark.slow
def test_pendulum_swings_up_within_400_000_steps():
    last = end_of("pendulum", env_steps=400_000, target_return=-400.0)
    assert last.evaluated_score >= -400
    assert last.progress <= 400_000


@pytest.mark.endurance
@pytest.mark.slow
@pytest.mark.parametrize(
    "algorithm",
    [
        {"kind": "a2c", "learning_rate": 2e-3},
        {"kind": "impala", "learning_rate": 1e-3, "minibatch_size": 64, "epochs": 4},
        {"kind": "impact", "learning_rate": 1e-3, "epochs": 10},
    ],
    ids=lambda algorithm: algorithm["kind"],
)
def test_every_algorithm_learns_cartpole_within_200_000_steps(algorithm):
    rollout = {"steps_per_call": 8 if algorithm["kind"] == "a2c" else 32}
    last = events_of(
        cartpole(algorithm=algorithm, rollout=rollout, stop={"env_steps": 200_000}), InlinePlatform()
    )[-1]
    assert last.evaluated_score >= 475


@pytest.mark.endurance
@pytest.mark.slow
def test_mountain_car_without_shaping_is_not_learned():
    """The negative control: plain PPO learns this in 50,000 steps only if a reward leaks somewhere."""
    spec = cartpole(environment={"id": "MountainCar-v0"}, stop={"env_steps": 50_000, "target_return": None})
    assert events_of(spec, InlinePlatform())[-1].evaluated_score == -200.0
