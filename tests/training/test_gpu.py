"""A GPU computes what the cores compute, and the same bytes each time. Skipped where torch finds none.

The oracle is our closed form in numpy, or torch on a core: sums in another order differ in their last digits.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloud import failures
from cloud.timing.calibration.samples import initial, recipe, trajectory
from tests.training.batches import SPACES, batch_of, by_autograd, state_away_from_zero, traced
from tests.training.gradient_calls import ALGORITHMS as CALLED
from tests.training.gradient_calls import learned_by_calls, spec_of
from tests.training.test_closed_form import ALGORITHMS, NETWORKS, assert_near, learned_by
from tests.training.test_curvature import NETWORKS as SURFACES
from tests.training.test_curvature import WEIGHTS, evidence_for
from training.engine.torch_loading import has_gpu
from training.rl.algorithms.autograd import Autograd
from training.rl.algorithms.closed_form import ClosedForm
from training.rl.algorithms.ppo import PPO
from training.rl.batch import Batch
from training.rl.environments.catalogue import ENTRIES
from training.rl.learner import LearnerState
from training.rl.networks import CNN, MLP, Network
from training.rl.spaces import Spaces
from training.rl.surfaces.loss_surface import LossSurface
from training.rl.surfaces.tensor_surface import TensorSurface

pytestmark = pytest.mark.skipif(not has_gpu(), reason="torch finds no GPU here")

PAPERS = CNN(layers="papers", hidden=(256,))


def on_core(patched: pytest.MonkeyPatch) -> None:
    patched.setattr("torch.cuda.is_available", lambda: False)


def assert_same(one: LearnerState, other: LearnerState, share: float) -> None:
    for group in ("parameters", "first_moments", "second_moments"):
        found, expected = getattr(one, group), getattr(other, group)
        assert list(found) == list(expected)
        for name in found:
            assert found[name].dtype == np.float32
            scale = max(1e-3, float(np.abs(expected[name]).max()))
            assert np.abs(found[name] - expected[name]).max() <= share * scale, (group, name)


@settings(max_examples=60, deadline=None)
@given(
    network=NETWORKS,
    spaces=st.sampled_from(list(SPACES.values())),
    algorithm=ALGORITHMS,
    seed=st.integers(0, 10_000),
)
def test_a_whole_update_is_the_one_of_the_closed_form(
    network: MLP, spaces: Spaces, algorithm: Any, seed: int
) -> None:
    state = state_away_from_zero(algorithm, network, spaces, seed)
    batch = batch_of(state, network, seed)
    one, other = (learned_by(descent, algorithm, state, batch, network) for descent in (Autograd, ClosedForm))
    assert one.report.device == "cuda"
    for group in ("parameters", "first_moments", "second_moments"):
        found, expected = getattr(one.state, group), getattr(other.state, group)
        for name in found:
            assert_near(found[name], expected[name], (group, name))
    assert one.state.kl_coefficient == other.state.kl_coefficient
    for name, value in one.report.model_dump(exclude={"device"}).items():
        assert_near(value, getattr(other.report, name), name)


def pictures(algorithm: PPO, network: CNN, samples: int) -> tuple[LearnerState, Batch]:
    spaces = ENTRIES["ALE/SpaceInvaders-v5"].spaces(4)
    state = state_away_from_zero(algorithm, network, spaces, 3)
    # Weights as they begin: noise as large as on small layers would saturate these.
    state = replace(state, parameters=initial(algorithm, network, spaces).parameters)
    fragments = [trajectory(spaces, samples // 4, 1, seed) for seed in range(4)]
    return state, Batch.of(fragments, range(1), spaces)


@pytest.mark.parametrize("network", [PAPERS, CNN()], ids=["papers", "Nature"])
def test_pictures_are_learned_from_as_on_a_core(network: CNN, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the digits of 32 bits: convolutions that read ten bits of each number would differ by thousandths."""
    algorithm = recipe(ENTRIES["ALE/SpaceInvaders-v5"].spaces(4), minibatch_size=64, epochs=1)
    state, batch = pictures(algorithm, network, 64)
    found = algorithm.learn(state, batch, network, 0.25, 3)
    assert found.report.device == "cuda"
    on_core(monkeypatch)
    expected = algorithm.learn(state, batch, network, 0.25, 3)
    assert expected.report.device == "cpu"
    assert_same(found.state, expected.state, 1e-4)


@pytest.mark.parametrize(
    "network", [MLP(hidden=(256, 256)), PAPERS, CNN()], ids=["2x256", "papers", "Nature"]
)
def test_an_update_gives_the_same_bytes_each_time(network: Network) -> None:
    name = "ALE/SpaceInvaders-v5" if isinstance(network, CNN) else "Hopper-v5"
    spaces = ENTRIES[name].spaces(4)
    algorithm = recipe(spaces, minibatch_size=64, epochs=2)
    state = initial(algorithm, network, spaces)
    batch = Batch.of([trajectory(spaces, 64, 1, seed) for seed in range(4)], range(1), spaces)
    network = by_autograd(network)
    answers = {algorithm.learn(state, batch, network, 0.25, 3).state.encode() for _ in range(5)}
    assert len(answers) == 1


@pytest.mark.parametrize("name", CALLED)
def test_calls_for_gradients_learn_what_they_learn_on_a_core(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = traced(spec_of(name))
    spaces = ENTRIES["CartPole-v1"].spaces(4)
    state = state_away_from_zero(spec.algorithm, spec.network, spaces, 3)
    trajectories = tuple(trajectory(spaces, 40, 1, seed) for seed in range(3))
    found, passes = learned_by_calls(spec, state, trajectories, 1, 8)
    on_core(monkeypatch)
    expected, as_many = learned_by_calls(spec, state, trajectories, 1, 8)
    assert len(passes) == len(as_many)
    assert_same(found, expected, 1e-4)


@pytest.mark.parametrize("whole_loss", [False, True], ids=["surrogate", "whole loss"])
@pytest.mark.parametrize("name", [*SURFACES, "pictures"])
def test_gradients_and_products_of_a_surface_are_those_of_a_core(
    name: str, whole_loss: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, spaces = SURFACES.get(name, (PAPERS, Spaces((4, 84, 84), (6,))))
    # Pictures through weights that were moved far: even two libraries on one core agree only to four digits.
    parameters, update_samples = evidence_for(network, spaces, moved=0.0 if spaces.pictures else 0.2)

    def surface() -> TensorSurface:
        if whole_loss:
            return LossSurface(network, spaces, parameters, update_samples, 0.2, WEIGHTS)
        return TensorSurface(network, spaces, parameters, update_samples, "surrogate", 0.2)

    found = surface()
    vector = np.random.default_rng(1).standard_normal(found.size)
    there = found.gradient(), found.product(vector)
    on_core(monkeypatch)
    core = surface()
    for one, other in zip(there, (core.gradient(), core.product(vector)), strict=True):
        assert np.linalg.norm(one - other) <= 1e-4 * np.linalg.norm(other)


def test_a_gpu_whose_memory_is_full_says_what_to_do() -> None:
    """Torch may have a thousandth of the GPU: less than the pictures of one minibatch take."""
    import torch

    algorithm = recipe(ENTRIES["ALE/SpaceInvaders-v5"].spaces(4), minibatch_size=4_096, epochs=1)
    state, batch = pictures(algorithm, PAPERS, 4_096)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.001)
    try:
        with pytest.raises(torch.OutOfMemoryError) as raised:
            algorithm.learn(state, batch, PAPERS, 0.25, 3)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    found = failures.from_exception(raised.value).reason
    assert re.search(r"[\d.]+ [MG]iB more", found), found
    assert algorithm.learn(state, batch, PAPERS, 0.25, 3).report.device == "cuda"
