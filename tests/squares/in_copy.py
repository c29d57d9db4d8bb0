"""What a network must pass, run in a copy of the code that knows the one with squares."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from django.test import Client

from cloud.money.billing.bill_context import bill_context
from cloud.money.billing.full_bill import full_bill
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import retime
from tests.cloud.recorded import record
from tests.examples import assert_that_its_forecast_comes_true, form_once_its_job_is_shown
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of, final_learner
from tests.training.specs import tiny
from training.engine.checkpoints import FileCheckpointStore
from training.rl.learner import LearnerState
from training.rl.measures.curvature import CurvatureSpec, measure_curvature
from training.rl.networks.inference import NumpyPolicy, normalise
from training.rl.networks.torch_network import TorchNetwork
from training.rl.policies.film import film
from training.rl.policies.loader import package
from training.rl.policies.model_card import model_card
from training.rl.policies.trained import TrainedPolicy
from training.rl.surfaces.update_samples import LossWeights, UpdateSamples
from training.scaling.agent_weights import as_text, read_agent
from training.tasks.kinds import task_of

SQUARES: dict[str, Any] = {"network": {"kind": "squares"}}
WAYS: dict[str, dict[str, Any]] = {
    "ppo": {},
    "impala": {"algorithm": {"kind": "impala", "learning_rate_decay": False}},
    "impact": {"algorithm": {"kind": "impact", "learning_rate_decay": False}, "environment": "Hopper-v5"},
    "many learners": {"loop": {"kind": "staleness_aware", "trajectories_per_gradient": 1}},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> TrainedPolicy:
    folder = tmp_path_factory.mktemp("checkpoints")
    events_of(tiny(**SQUARES), InlinePlatform(), checkpoints=FileCheckpointStore(folder))
    return TrainedPolicy.read(sorted(folder.glob("round-*"))[-1])


@pytest.mark.parametrize("way", WAYS)
def test_it_learns_and_goes_on_from_a_checkpoint_as_if_it_had_not_ended(way: str, tmp_path: Path) -> None:
    training = tiny(**SQUARES, **WAYS[way])
    whole = final_learner(training, InlinePlatform(), tmp_path / "whole")
    first = training.algorithm.initial_state(training.network, LearnerState.decode(whole).spaces, 0)
    learned = LearnerState.decode(whole).parameters
    assert np.any(learned["trunk.0.scale"] != first.parameters["trunk.0.scale"])
    store = Forgetful()
    events_of(tiny(**SQUARES, **WAYS[way], stop={"rounds": 2}), InlinePlatform(), checkpoints=store)
    resumed = final_learner(training, InlinePlatform(), tmp_path / "resumed", resume=store.saved[2])
    assert resumed == whole


def test_numpy_torch_and_onnx_compute_the_same(trained: TrainedPolicy) -> None:
    state, network = trained.learner, trained.spec.network
    seen = (3 * np.random.default_rng(0).standard_normal((32, state.spaces.observation_size))).astype(
        np.float32
    )
    policy = NumpyPolicy(state.actor_weights(network))
    parameters = {name: torch.tensor(array) for name, array in state.parameters.items()}
    normal = torch.from_numpy(normalise(seen, *state.normaliser()))
    outputs = TorchNetwork(network, state.spaces).policy(parameters, normal)
    np.testing.assert_allclose(policy.outputs(seen), outputs.numpy(), rtol=1e-5, atol=1e-5)
    files = package(trained, model_card(trained, name="Mine", judged=None, cost="$0", simulated=True))
    session = onnxruntime.InferenceSession(files["policy.onnx"])
    (actions,) = session.run(["action"], {"observation": seen})
    np.testing.assert_array_equal(actions, policy.best(seen))
    assert trained.spec.network.in_words() in str(files)


def test_its_film_and_its_curvature_are_made(trained: TrainedPolicy, tmp_path: Path) -> None:
    assert film(trained, tmp_path / "film.webp", seed=0).frames > 1
    state, rng = trained.learner, np.random.default_rng(1)
    observations = rng.standard_normal((64, 4)).astype(np.float32)
    policy = NumpyPolicy(state.actor_weights(trained.spec.network))
    plain = replace(state, observation_moments=None)
    actions, log_probs = NumpyPolicy(plain.actor_weights(trained.spec.network)).sample(
        observations, policy.draw_noise(rng, 1, 64)[0]
    )
    gains, targets = rng.standard_normal((2, 64)).astype(np.float32)
    samples = UpdateSamples(observations, actions, log_probs, gains, targets)
    found = measure_curvature(
        CurvatureSpec(),
        trained.spec.network,
        state.spaces,
        state.parameters,
        samples,
        clip=0.2,
        weights=LossWeights(0.5, 0.0),
        seed=0,
    )
    assert found.largest is not None
    assert found.smallest is not None
    assert found.smallest < found.largest


def test_it_needs_torch_and_is_no_scheduler(trained: TrainedPolicy) -> None:
    spaces = trained.learner.spaces
    dense = tiny(network={"kind": "mlp", "hidden": [24, 16], "shared": True})
    needs, of_dense = (task_of(spec).memory_needs(spaces, 0) for spec in (trained.spec, dense))
    assert needs.job_bytes > of_dense.job_bytes + 100 * 2**20
    with pytest.raises(ValueError, match="not the weights"):
        read_agent(as_text(trained.progress.weights))


def test_it_is_billed_and_timed_again() -> None:
    run = record(tiny(**SQUARES))
    again = retime(ReplaySchedule.of(run.segment), run.place, seed=run.seed)
    assert again.time_s == run.end_s
    assert again.bill.picodollars == run.spent_picodollars
    assert full_bill([run.segment], bill_context(run.place.profile, run.place.stack, 1)).total == (
        run.spent_picodollars
    )


def test_its_forecast_is_what_comes() -> None:
    assert_that_its_forecast_comes_true(SQUARES)


@pytest.mark.django_db
def test_the_form_offers_it_and_the_pages_of_a_job_show_it(client: Client) -> None:
    form = form_once_its_job_is_shown(client, SQUARES)
    assert 'value="squares"' in form
