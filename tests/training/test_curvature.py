"""Eigenvalues of the objective's Hessian against dense ones, and every case in which the ratio says nothing."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import tiny
from training.rl.measures import noise_scale
from training.rl.measures.curvature import CurvatureSpec, measure_curvature, ratio, standardise
from training.rl.networks import CNN, MLP
from training.rl.networks.distributions import Distribution
from training.rl.networks.torch_network import TorchNetwork
from training.rl.spaces import Spaces
from training.rl.surfaces.dense_surface import DenseSurface
from training.rl.surfaces.lanczos import spectrum_ends
from training.rl.surfaces.loss_surface import LossSurface
from training.rl.surfaces.surface import surface_of
from training.rl.surfaces.tensor_surface import TensorSurface
from training.rl.surfaces.update_samples import LossWeights, UpdateSamples, policy_part
from training.scaling.boosting import Boosting
from training.scaling.noise_scale import NoiseScale

NORMALS = Spaces((11,), (), (-1.0,) * 3, (1.0,) * 3)
CHOICES = Spaces((4,), (2,), (), ())
WEIGHTS = LossWeights(value=0.7, entropy=0.03)
SEVERAL = Spaces((5,), (3, 2, 4), (), ())
NETWORKS = {
    "normals": (MLP(hidden=(16, 16)), NORMALS),
    "normals by state": (MLP(hidden=(12, 12), log_std="state"), NORMALS),
    "relu": (MLP(hidden=(16, 16), activation="relu"), NORMALS),
    "shared trunk": (MLP(hidden=(16, 12), shared=True), NORMALS),
    "one hidden layer": (MLP(hidden=(24,)), CHOICES),
    "choices": (MLP(hidden=(20, 20)), CHOICES),
    "several choices": (MLP(hidden=(16, 16)), SEVERAL),
}


def evidence_for(network, spaces, n=96, seed=0, spread=0.3, moved=0.2):
    """Samples whose ratios lie on both sides of the clip, at parameters that are not at their start any more."""
    rng = np.random.default_rng(seed)
    parameters = {
        name: array + np.float32(moved) * rng.standard_normal(array.shape).astype(np.float32)
        for name, array in network.initial_parameters(spaces, seed).items()
    }
    observations = rng.standard_normal((n, *spaces.observation_shape)).astype(np.float32)
    if spaces.pictures:
        observations = rng.integers(0, 255, (n, *spaces.observation_shape)).astype(np.uint8)
    if spaces.discrete:
        actions = np.stack([rng.integers(0, count, n) for count in spaces.action_counts], axis=1)
        actions = actions[:, 0] if len(spaces.action_counts) == 1 else actions
    else:
        actions = rng.standard_normal((n, len(spaces.action_low))).astype(np.float32)
    tensors = {name: torch.from_numpy(array) for name, array in parameters.items()}
    outputs = TorchNetwork(network, spaces).policy(tensors, torch.from_numpy(observations))
    log_probs = Distribution.of(outputs, tensors, spaces).log_prob(torch.from_numpy(actions)).numpy()
    log_probs = (log_probs + spread * rng.standard_normal(n)).astype(np.float32)
    gains, targets = rng.standard_normal((2, n)).astype(np.float32)
    return parameters, UpdateSamples(observations, actions, log_probs, gains, targets)


def in_double(parameters, update_samples):
    return {name: array.astype(np.float64) for name, array in parameters.items()}, UpdateSamples(
        update_samples.observations.astype(np.float64),
        update_samples.actions,
        update_samples.log_probs.astype(np.float64),
        update_samples.advantages.astype(np.float64),
        update_samples.targets.astype(np.float64),
    )


def dense_hessian(network, spaces, parameters, update_samples, objective, clip):
    """The whole matrix, from torch in double precision, a plain second gradient along each unit vector."""
    parameters, update_samples = in_double(parameters, update_samples)
    own = parameters if objective == "total_loss" else policy_part(parameters)
    flat = torch.tensor(np.concatenate([array.ravel() for array in own.values()]), requires_grad=True)
    named, begin = {}, 0
    for name, array in own.items():
        named[name] = flat[begin : begin + array.size].reshape(array.shape)
        begin += array.size
    outputs = TorchNetwork(network, spaces).policy(named, torch.from_numpy(update_samples.observations))
    log_probs = Distribution.of(outputs, named, spaces).log_prob(torch.from_numpy(update_samples.actions))
    advantages = torch.from_numpy(update_samples.advantages)
    if objective == "policy_gradient":
        gains = advantages * log_probs
    else:
        ratios = torch.exp(log_probs - torch.from_numpy(update_samples.log_probs))
        gains = torch.minimum(ratios * advantages, ratios.clamp(1 - clip, 1 + clip) * advantages)
    if objective == "total_loss":
        values = TorchNetwork(network, spaces).value(named, torch.from_numpy(update_samples.observations))
        errors = values - torch.from_numpy(update_samples.targets)
        entropy = Distribution.of(outputs, named, spaces).entropy()
        gains = gains - WEIGHTS.value * 0.5 * errors * errors + WEIGHTS.entropy * entropy
    (slope,) = torch.autograd.grad(gains.mean(), flat, create_graph=True)
    units = torch.eye(len(flat), dtype=flat.dtype)
    (rows,) = torch.autograd.grad(slope, flat, units, is_grads_batched=True)
    return rows.numpy(), slope.detach().numpy()


@pytest.mark.parametrize("objective", ["surrogate", "policy_gradient"])
@pytest.mark.parametrize("name", NETWORKS)
def test_products_and_gradients_are_those_of_the_whole_matrix(name, objective):
    network, spaces = NETWORKS[name]
    parameters, update_samples = evidence_for(network, spaces)
    matrix, slope = dense_hessian(network, spaces, parameters, update_samples, objective, 0.2)
    assert np.allclose(matrix, matrix.T, atol=1e-10)
    vector = np.random.default_rng(1).standard_normal(len(matrix))
    doubled = in_double(parameters, update_samples)
    exact = DenseSurface(network, spaces, *doubled, objective, 0.2)
    assert np.allclose(exact.product(vector), matrix @ vector, atol=1e-9)
    assert np.allclose(exact.gradient(), slope, atol=1e-9)
    for kind in (DenseSurface, TensorSurface):
        found = kind(network, spaces, parameters, update_samples, objective, 0.2)
        assert found.size == len(matrix)
        scale = np.abs(matrix @ vector).max()
        assert np.abs(found.product(vector) - matrix @ vector).max() <= 1e-4 * scale
        assert np.abs(found.gradient() - slope).max() <= 1e-4 * np.abs(slope).max()


@pytest.mark.parametrize("name", NETWORKS)
def test_the_whole_loss_has_the_critic_and_the_entropy_in_it(name):
    """Also in samples that are passed in several parts, whose entropies are means of their own."""
    network, spaces = NETWORKS[name]
    parameters, update_samples = evidence_for(network, spaces, n=150)
    matrix, slope = dense_hessian(network, spaces, parameters, update_samples, "total_loss", 0.2)
    found = LossSurface(network, spaces, parameters, update_samples, 0.2, WEIGHTS)
    assert found.size == len(matrix) == sum(array.size for array in parameters.values())
    vector = np.random.default_rng(1).standard_normal(len(matrix))
    assert np.abs(found.product(vector) - matrix @ vector).max() <= 1e-4 * np.abs(matrix @ vector).max()
    assert np.abs(found.gradient() - slope).max() <= 1e-4 * np.abs(slope).max()


def test_a_critic_that_counts_for_much_makes_the_loss_convex_and_r_small():
    """Then what is maximised is −½ E[(V − R)²] above all, and most of its curvature that of a sum of squares."""
    network, spaces = NETWORKS["choices"]
    parameters, update_samples = evidence_for(network, spaces)
    # The whole loss takes advantages as they are.
    update_samples = standardise(update_samples)

    def found(objective, value):
        spec, weights = CurvatureSpec(objective=objective), LossWeights(value, 0.0)
        return measure_curvature(
            spec, network, spaces, parameters, update_samples, clip=0.2, weights=weights, seed=0
        )

    alone = found("surrogate", 1.0)
    assert found("surrogate", 1000.0) == alone
    without, heavy = found("total_loss", 0.0), found("total_loss", 1000.0)
    assert without.ratio == pytest.approx(alone.ratio, rel=0.02)
    assert heavy.smallest < 100 * alone.smallest < 0
    assert heavy.ratio < 0.5 * alone.ratio


@pytest.mark.parametrize("name", NETWORKS)
def test_both_ends_within_one_percent_in_twenty_products_whatever_the_start(name):
    network, spaces = NETWORKS[name]
    parameters, update_samples = evidence_for(network, spaces, n=256)
    matrix, _ = dense_hessian(network, spaces, parameters, update_samples, "surrogate", 0.2)
    assert len(matrix) <= 1500
    true = np.linalg.eigvalsh(matrix)
    surface = surface_of(network, spaces, parameters, update_samples, objective="surrogate", clip=0.2)
    found = [
        spectrum_ends(surface.product, surface.size, seed=seed, most_products=20, tolerance=0.005)
        for seed in range(5)
    ]
    for ends in found:
        assert ends.products <= 20
        assert ends.largest == pytest.approx(true[-1], rel=0.01)
        assert ends.smallest == pytest.approx(true[0], rel=0.01)
        for value, vector in ((ends.largest, ends.largest_vector), (ends.smallest, ends.smallest_vector)):
            assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-6)
            assert vector @ matrix @ vector == pytest.approx(value, rel=1e-3)
    for one in ("largest", "smallest"):
        values = [getattr(ends, one) for ends in found]
        assert max(values) - min(values) <= 0.02 * abs(np.mean(values))


LOPSIDED = {"heavy critic": 30.0, "critic above all": 1000.0}


@pytest.mark.parametrize("weight", LOPSIDED.values(), ids=LOPSIDED)
@pytest.mark.parametrize(
    "name",
    [
        "one hidden layer",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("relu", "choices", "several choices")),
    ],
)
def test_both_ends_of_a_lopsided_spectrum_within_one_percent_of_themselves(name, weight):
    """The whole loss with a heavy critic: up to 1,103 parameters, and one end several times as far out as the other."""
    network, spaces = NETWORKS[name]
    parameters, update_samples = evidence_for(network, spaces, n=256)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(globals(), "WEIGHTS", LossWeights(value=weight, entropy=0.0))
        matrix, _ = dense_hessian(network, spaces, parameters, update_samples, "total_loss", 0.2)
    true = np.linalg.eigvalsh(matrix)
    assert -true[0] > 2 * true[-1] > 0
    for seed in range(3):
        ends = spectrum_ends(lambda v: matrix @ v, len(matrix), seed=seed, most_products=20, tolerance=0.005)
        assert ends.products <= 20
        assert ends.largest == pytest.approx(true[-1], rel=0.01)
        assert ends.smallest == pytest.approx(true[0], rel=0.01)


@pytest.mark.parametrize("small", [0.3, 0.03, 0.003])
def test_the_small_end_is_bounded_by_its_own_size(small):
    """A few directions far out on one side, the other end a hundredth of them: 1,500 parameters."""
    rng = np.random.default_rng(4)
    far = 1.0 / np.arange(1, 9)
    values = np.concatenate([far, [-small, -small / 2], 0.1 * small * rng.standard_normal(1490)])
    rotation, _ = np.linalg.qr(rng.standard_normal((1500, 1500)))
    matrix = (rotation * values) @ rotation.T
    for sign in (1.0, -1.0):
        ends = spectrum_ends(
            lambda v, sign=sign: sign * (matrix @ v), 1500, seed=1, most_products=20, tolerance=0.005
        )
        found, true = (ends.smallest, values.min()) if sign > 0 else (ends.largest, -values.min())
        assert found == pytest.approx(true, rel=0.01)
        assert abs(found / true - 1.0) <= ends.error
        # The bound that there was before, of the larger magnitude, would have said so after fewer products.
        assert ends.products > 8


def test_pictures_too():
    # Smooth activations, as a difference of gradients is taken.
    network, spaces = CNN(hidden=(32,), activation="tanh"), Spaces((4, 84, 84), (6,), (), ())
    parameters, update_samples = evidence_for(network, spaces, n=70)
    surface = surface_of(network, spaces, parameters, update_samples, objective="surrogate", clip=0.2)
    rng = np.random.default_rng(3)
    one, other = rng.standard_normal(surface.size), rng.standard_normal(surface.size)
    # A Hessian is symmetric, and the derivative of the gradient.
    assert one @ surface.product(other) == pytest.approx(other @ surface.product(one), rel=1e-3)
    one /= np.linalg.norm(one)

    def at(moved):
        pieces = np.split(
            one * moved, np.cumsum([array.size for array in policy_part(parameters).values()])[:-1]
        )
        there = {
            name: (array + piece.reshape(array.shape)).astype(np.float32)
            for (name, array), piece in zip(policy_part(parameters).items(), pieces, strict=True)
        }
        return surface_of(network, spaces, there, update_samples, objective="policy_gradient", clip=None)

    climbed = (at(0.01).gradient() - at(-0.01).gradient()) / 0.02
    product = at(0.0).product(one)
    assert np.linalg.norm(climbed - product) <= 0.05 * np.linalg.norm(product)


@given(
    values=st.lists(st.floats(-50, 50), min_size=2, max_size=30),
    seed=st.integers(0, 2**31),
)
def test_the_ends_of_any_small_spectrum(values, seed):
    """As many products as there are dimensions leave nothing open."""
    rotation, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values), len(values))))
    matrix = rotation @ np.diag(values) @ rotation.T
    ends = spectrum_ends(lambda v: matrix @ v, len(values), seed=seed, most_products=40, tolerance=1e-9)
    width = max(1.0, max(map(abs, values)))
    assert ends.largest == pytest.approx(max(values), abs=1e-5 * width)
    assert ends.smallest == pytest.approx(min(values), abs=1e-5 * width)


@pytest.mark.parametrize("spoilt", [math.nan, math.inf, 1e300])
@pytest.mark.parametrize("good", [0, 3])
def test_products_that_are_not_finite_give_ends_that_are_not(spoilt, good):
    """Not an error of the linear algebra: nothing is known, and that is told. 1e300 overflows in its length."""
    scales = iter([1.0] * good + [spoilt] * 99)
    ends = spectrum_ends(
        lambda v: v * np.arange(1.0, 21.0) * next(scales), 20, seed=0, most_products=10, tolerance=1e-9
    )
    assert not math.isfinite(ends.largest)
    assert not math.isfinite(ends.smallest)
    assert not math.isfinite(ends.error)
    assert ends.products == good + 1
    assert "not finite" in ratio(ends.largest, ends.smallest)[1]


def test_the_same_seed_measures_the_same_and_the_scale_of_advantages_does_not_matter():
    network, spaces = NETWORKS["normals"]
    parameters, update_samples = evidence_for(network, spaces, n=400)
    spec = CurvatureSpec(samples=128)

    def found(given, seed=7):
        return measure_curvature(
            spec, network, spaces, parameters, given, clip=0.2, weights=WEIGHTS, seed=seed
        )

    first = found(update_samples)
    assert first == found(update_samples)
    assert first.samples == 128
    assert first.products <= 20
    assert first.error <= 0.1
    thousandfold = found(replace(update_samples, advantages=update_samples.advantages * 1000.0))
    assert thousandfold.ratio == pytest.approx(first.ratio, rel=0.02)
    assert found(update_samples, seed=8).ratio != first.ratio


def test_advantages_that_are_all_alike_leave_a_flat_surface():
    network, spaces = NETWORKS["choices"]
    parameters, update_samples = evidence_for(network, spaces)
    same = replace(update_samples, advantages=np.ones_like(update_samples.advantages))
    report = measure_curvature(
        CurvatureSpec(), network, spaces, parameters, same, clip=0.2, weights=WEIGHTS, seed=0
    )
    assert report.ratio is None
    assert "flat" in report.note


def test_the_noise_scale_of_known_gradients():
    """Gradients (3, 4) ± e on alternating samples: |G|² and the noise follow from the definition."""
    # |g_B|² = 25, E|g_b|² = 25 + 32 / b; so with b = 8 and B = 64 both estimates are exact for S = 32, |G|² = 24.5.
    value, note = noise_scale.noise_scale(small=25 + 32 / 8, large=25.0, b=8, total=64)
    assert note == ""
    assert value == pytest.approx(((29 - 25) / (1 / 8 - 1 / 64)) / ((64 * 25 - 8 * 29) / 56))
    assert noise_scale.noise_scale(1.0, 1.0, 8, 8)[0] is None
    assert noise_scale.noise_scale(9.0, 0.1, 8, 64)[0] is None
    assert noise_scale.noise_scale(math.nan, 1.0, 8, 64)[0] is None


@pytest.mark.parametrize("loop", ["synchronous", "asynchronous"])
@pytest.mark.parametrize("algorithm", ["ppo", "a2c", "impala", "impact"])
@pytest.mark.parametrize("objective", ["surrogate", pytest.param("total_loss", marks=pytest.mark.slow)])
def test_a_round_reports_what_its_policy_requested(algorithm, loop, objective):
    spec = tiny(
        scaling=Boosting(
            actors_min=1, actors_max=3, actors_first=2, curvature=CurvatureSpec(objective=objective)
        ),
        algorithm={"kind": algorithm},
        loop={"kind": loop},
    )
    rounds = [event.report for event in events_of(spec, InlinePlatform()) if event.kind == "round"]
    assert rounds
    for report in rounds:
        assert report.figures.curvature is not None
        assert report.figures.noise_scale is None
        assert report.figures.curvature.ratio is not None or report.figures.curvature.note
        assert report.learner_usage.hessian_products >= 1


def test_noise_is_measured_over_the_actors():
    spec = tiny(scaling=NoiseScale(actors_min=3, actors_max=4))
    rounds = [event.report for event in events_of(spec, InlinePlatform()) if event.kind == "round"]
    assert [report.figures.noise_scale.slices for report in rounds] == [report.actors for report in rounds]
    assert all(
        report.figures.noise_scale.scale is not None or report.figures.noise_scale.note for report in rounds
    )


def test_nothing_is_measured_that_no_one_asks_for():
    rounds = [event.report for event in events_of(tiny(), InlinePlatform()) if event.kind == "round"]
    assert all(report.figures.curvature is None and report.figures.noise_scale is None for report in rounds)
    assert all(report.learner_usage.hessian_products == 0 for report in rounds)
