"""The closed form against autograd: which is chosen for what, and that it makes no difference but in time."""

import platform
import resource
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cloud.timing.calibration.samples import trajectory
from tests.training.batches import SPACES, batch_of, by_autograd, state_away_from_zero
from training.engine import torch_loading
from training.rl.algorithms import optimisation
from training.rl.algorithms.a2c import A2C
from training.rl.algorithms.autograd import Autograd
from training.rl.algorithms.closed_form import ClosedForm
from training.rl.algorithms.impact import Impact
from training.rl.algorithms.impala import Impala
from training.rl.algorithms.optimisation import BadLoss, descent_for
from training.rl.algorithms.ppo import PPO
from training.rl.batch import Batch
from training.rl.networks import CNN, MLP
from training.rl.spaces import Spaces
from training.spec import TrainingSpec

PRESETS = Path(__file__).parents[2] / "webapp" / "jobs" / "form" / "preset_files"
NETWORKS = st.builds(
    MLP,
    hidden=st.sampled_from([(16, 16), (8,), (12, 1, 6)]),
    activation=st.sampled_from(["tanh", "relu"]),
    shared=st.booleans(),
    log_std=st.sampled_from(["free", "state"]),
    log_std_initial=st.sampled_from([0.0, -0.5, 1.95]),
)
OPTIONS = {
    "entropy_coefficient": st.sampled_from([0.0, 0.02]),
    "max_gradient_norm": st.sampled_from([0.1, 100.0]),
    "gradient_clip": st.sampled_from(["joint", "separate", "none"]),
    "normalise_observations": st.booleans(),
    "normalise_rewards": st.booleans(),
    "learning_rate": st.just(1e-3),
    "normalise_advantages": st.booleans(),
}
PASSES = {"epochs": st.integers(1, 3), "minibatch_size": st.sampled_from([7, 8, 23, 100])}
ALGORITHMS = st.one_of(
    st.builds(
        PPO,
        clip_decay=st.booleans(),
        value_clip=st.sampled_from([None, 0.05]),
        value_error=st.sampled_from(["half_square", "clamped_square"]),
        target_kl=st.sampled_from([None, 1e-6, 0.02]),
        recompute_advantages=st.booleans(),
        objective=st.sampled_from(["clipped", "decoupled"]),
        kl_coefficient=st.sampled_from([0.0, 0.2]),
        **OPTIONS,
        **PASSES,
    ),
    st.builds(A2C, **OPTIONS),
    st.builds(Impala, **OPTIONS, **PASSES),
    st.builds(Impact, kl_coefficient=st.sampled_from([0.0, 0.3]), **OPTIONS, **PASSES),
)


def learned_by(descent, algorithm, state, batch, network):
    """One whole update, by a descent that the network has."""
    network = by_autograd(network) if descent is Autograd else network
    return algorithm.learn(state, batch, network, 0.25, 3)


def assert_near(one, other, what):
    """Within 1e-5 of the larger of 1 and the numbers' own size."""
    scale = max(1.0, float(np.abs(other).max()))
    assert np.abs(np.asarray(one) - np.asarray(other)).max() <= 1e-5 * scale, what


@settings(max_examples=80, deadline=None)
@given(
    network=NETWORKS,
    spaces=st.sampled_from(list(SPACES.values())),
    algorithm=ALGORITHMS,
    seed=st.integers(0, 10_000),
)
def test_a_whole_update_is_the_one_of_autograd(network, spaces, algorithm, seed):
    state = state_away_from_zero(algorithm, network, spaces, seed)
    batch = batch_of(state, network, seed)
    one, other = (learned_by(descent, algorithm, state, batch, network) for descent in (ClosedForm, Autograd))
    for group in ("parameters", "first_moments", "second_moments"):
        found, expected = getattr(one.state, group), getattr(other.state, group)
        assert list(found) == list(expected)
        for name in found:
            assert found[name].dtype == np.float32
            assert_near(found[name], expected[name], (group, name))
    assert one.state.kl_coefficient == other.state.kl_coefficient
    assert one.state.optimiser_steps == other.state.optimiser_steps
    assert (one.minibatches, one.samples) == (other.minibatches, other.samples)
    for name, value in one.report.model_dump(exclude={"device"}).items():
        assert_near(value, getattr(other.report, name), name)


def a_batch():
    """What the preset of Hopper trains, without its environment."""
    document = tomllib.loads((PRESETS / "hopper.toml").read_text())["training"]
    spec = TrainingSpec.model_validate(document)
    spaces = Spaces((11,), (), (-1.0,) * 3, (1.0,) * 3)
    state = state_away_from_zero(spec.algorithm, spec.network, spaces, 0)
    return spec, state, batch_of(state, spec.network, 0)


@pytest.fixture
def hopper():
    return a_batch()


def test_the_hopper_preset_learns_without_autograd(hopper, monkeypatch):
    spec, state, batch = hopper
    monkeypatch.setattr(torch.autograd, "grad", None)
    monkeypatch.setattr(torch_loading, "_GPU_FILES", ())
    learned = spec.algorithm.learn(state, batch, spec.network, 0.0, 1)
    assert learned.report.device == "cpu"
    assert any((learned.state.parameters[n] != state.parameters[n]).any() for n in state.parameters)


HOPPER = Spaces((11,), (), (-1.0,) * 3, (1.0,) * 3)


@pytest.mark.parametrize(
    ("network", "samples", "without", "with_gpu"),
    [
        # What was quicker on a machine with an H200 (docs/simulated-cloud.md).
        (MLP(), 64, ClosedForm, ClosedForm),
        (MLP(), 1024, ClosedForm, ClosedForm),
        (MLP(hidden=(256, 256)), 64, ClosedForm, ClosedForm),
        (MLP(hidden=(256, 256)), 256, ClosedForm, Autograd),
        (MLP(hidden=(256, 256)), 1024, ClosedForm, Autograd),
        # Gradients are only applied.
        (MLP(hidden=(256, 256)), 0, ClosedForm, ClosedForm),
        (CNN(), 16, Autograd, Autograd),
    ],
)
def test_pictures_take_autograd_and_so_does_what_a_gpu_computes_sooner(
    network, samples, without, with_gpu, monkeypatch
):
    spaces = Spaces((4, 84, 84), (3,)) if isinstance(network, CNN) else HOPPER
    for gpu, expected in ((False, without), (True, with_gpu)):
        monkeypatch.setattr(torch_loading, "_GPU_FILES", (Path("/"),))
        monkeypatch.setattr(torch.cuda, "is_available", lambda gpu=gpu: gpu)
        assert descent_for(network, spaces, samples) is expected


@pytest.mark.parametrize("algorithm", [PPO(minibatch_size=8), PPO(), A2C(), Impala(), Impact()], ids=str)
def test_updates_say_how_much_they_learn_from_at_once(algorithm, monkeypatch):
    """A GPU is used for as much as a minibatch really has, not for as much as it may have."""
    asked, minibatches = [], []

    class Watched(ClosedForm):
        def step(self, observations, actions, objective):
            minibatches.append(len(observations))
            return super().step(observations, actions, objective)

    monkeypatch.setattr(
        optimisation, "descent_for", lambda network, spaces, samples: asked.append(samples) or Watched
    )
    state = state_away_from_zero(algorithm, MLP(), HOPPER, 0)
    algorithm.learn(state, batch_of(state, MLP(), 0), MLP(), 0.0, 1)
    assert asked == [max(minibatches)]


def test_an_update_twice_gives_the_same_bytes_and_leaves_its_state_alone(hopper):
    spec, state, batch = hopper
    before = state.encode()
    first, second = (
        spec.algorithm.learn(state, batch, spec.network, 0.0, 1).state.encode() for _ in range(2)
    )
    assert first == second
    assert state.encode() == before


def test_learning_leaves_blas_one_thread(hopper):
    from threadpoolctl import threadpool_info

    spec, state, batch = hopper
    spec.algorithm.learn(state, batch, spec.network, 0.0, 1)
    # Numpy's own library: scipy brings another, which no learner computes with.
    libraries = [pool for pool in threadpool_info() if "numpy.libs" in pool["filepath"]]
    threads = [pool["num_threads"] for pool in libraries if pool["user_api"] == "blas"]
    assert threads
    assert set(threads) == {1}


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other allocators keep freed memory by themselves"
)
def test_learning_waits_for_no_new_memory_once_it_has_some():
    """By default each update asks the kernel for as many pages as the first, here for about 5,000."""
    network, algorithm = MLP(hidden=(256, 256)), PPO(epochs=1, minibatch_size=1024)
    spaces = Spaces((11,), (), (-1.0,) * 3, (1.0,) * 3)
    state = algorithm.initial_state(network, spaces, 0)
    batch = Batch.of([trajectory(spaces, 256, 1, seed) for seed in range(8)], range(1), spaces)
    pages = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        algorithm.learn(state, batch, network, 0.0, 1)
        pages.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    assert min(pages[1:]) < 500


@pytest.mark.parametrize("descent", [ClosedForm, Autograd])
def test_a_loss_that_is_not_finite_is_refused_and_nothing_kept(hopper, descent):
    spec, state, batch = hopper
    before = state.encode()
    impossible = replace(batch, log_probs=np.full_like(batch.log_probs, -1e30))
    with pytest.raises(BadLoss, match="not a finite"):
        learned_by(descent, spec.algorithm, state, impossible, spec.network)
    assert state.encode() == before
