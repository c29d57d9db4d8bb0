"""An exported policy acts as ours does, in a world where nothing of ours exists, and its card hides nothing."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import cartpole, tiny
from tests.training.test_inference import MLPS, VECTORS, state_of
from training.calls.evaluate import EvaluateRequest
from training.engine.checkpoints import CheckpointError, FileCheckpointStore, Progress
from training.engine.messages import Evaluated
from training.rl.environments.making import spaces_of
from training.rl.learner import LearnerState
from training.rl.networks import CNN, MLP, Network
from training.rl.networks.inference import NumpyPolicy
from training.rl.policies.export import export_onnx
from training.rl.policies.loader import ATARI_LOADER, LOADER, package
from training.rl.policies.model_card import EvaluationScore, evaluation_seeds, model_card
from training.rl.policies.trained import TrainedPolicy
from training.rl.spaces import Spaces

FORBIDDEN = ("training", "cloud", "webapp", "torch", "django", "pydantic", "msgpack", "onnx")


def acts_alike(state: LearnerState, network: Network, observations: np.ndarray) -> None:
    session = onnxruntime.InferenceSession(export_onnx(state, network))
    (found,) = session.run(["action"], {"observation": observations})
    expected = NumpyPolicy(state.actor_weights(network)).best(observations)
    if state.spaces.discrete:
        assert found.dtype == np.int64
        np.testing.assert_array_equal(found, expected)
    else:
        assert found.dtype == np.float32
        expected = np.clip(expected, state.spaces.action_low, state.spaces.action_high)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert found.shape == expected.shape


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), MLPS, st.sampled_from(list(VECTORS)), st.booleans(), st.sampled_from([1, 32]))
def test_the_exported_policy_is_the_numpy_policy(seed, network, kind, normalise, batch):
    state = state_of(network, VECTORS[kind], seed)
    assert state.observation_moments is not None
    if not normalise:
        state = replace(state, observation_moments=None)
    # Wide enough for the normaliser to clip, and for means to leave the action's bounds.
    observations = np.random.default_rng(seed).standard_normal((batch, state.spaces.observation_size)) * 20
    acts_alike(state, network, observations.astype(np.float32))


@pytest.mark.parametrize("layers", ["nature", "papers"])
@pytest.mark.parametrize("shared", [True, False])
def test_exported_convolutions_are_the_numpy_ones(layers, shared):
    network = CNN(layers=layers, shared=shared, hidden=(64,))
    pictures = np.random.default_rng(1).integers(0, 256, (4, 4, 84, 84)).astype(np.uint8)
    acts_alike(state_of(network, Spaces((4, 84, 84), (6,)), 3), network, pictures)


def test_convolutions_without_hidden_layers_and_with_continuous_actions():
    network = CNN(hidden=(), log_std="state")
    spaces = Spaces((3, 84, 84), (), (-1.0, -0.5), (1.0, 0.5))
    pictures = np.random.default_rng(1).integers(0, 256, (2, 3, 84, 84)).astype(np.uint8)
    acts_alike(state_of(network, spaces, 3), network, pictures)


def test_an_export_holds_the_policy_and_nothing_of_the_learner():
    state = state_of(MLP(), VECTORS["continuous"], 0)
    size = len(export_onnx(state, MLP()))
    weights = sum(array.nbytes for name, array in state.parameters.items() if name.startswith("policy."))
    assert weights < size < weights + 4_000


# From a run's checkpoint


@pytest.fixture(scope="module")
def learned(tmp_path_factory) -> tuple[TrainedPolicy, list]:
    """CartPole, learned for a few seconds, as its last checkpoint holds it; and the run's events."""
    folder = tmp_path_factory.mktemp("checkpoints")
    spec = cartpole(stop={"env_steps": 20_000, "target_return": None}, evaluation={"episodes": 10})
    events = events_of(spec, InlinePlatform(), checkpoints=FileCheckpointStore(folder))
    return TrainedPolicy.read(sorted(folder.glob("round-*"))[-1]), events


def card_of(trained: TrainedPolicy, **changes) -> str:
    facts = {"name": "Mine", "judged": None, "cost": "$0.0123", "simulated": False}
    return model_card(trained, **(facts | changes))


def test_the_loader_scores_what_the_evaluation_scored_where_nothing_of_ours_is(learned, tmp_path: Path):
    """Isolated (-I: no folder of ours on the path), and it says at its end that it loaded nothing but its three."""
    trained, events = learned
    for name, content in package(trained, card_of(trained)).items():
        (tmp_path / name).write_bytes(content)
    spy = f"\nprint('loaded', [name for name in {FORBIDDEN!r} if name in sys.modules])\n"
    (tmp_path / "play.py").write_text(LOADER + spy)
    done = subprocess.run(
        [sys.executable, "-I", str(tmp_path / "play.py"), "20"],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "loaded []" in done.stdout
    found = re.match(r"mean return (\S+) ± (\S+) over 20 episodes", done.stdout)
    assert found is not None, done.stdout
    mean, std = float(found[1]), float(found[2])
    judged = [event for event in events if isinstance(event, Evaluated)][-1]
    assert judged.round_no == trained.progress.round_no
    # Three standard errors of both means; an episode's return has a step's grain.
    noise = (
        3 * np.sqrt(std**2 / 20 + judged.figures.return_std**2 / len(judged.figures.episode_returns)) + 1.0
    )
    assert abs(mean - judged.figures.return_mean) <= noise
    assert judged.figures.return_mean > 100  # a policy that learned nothing would not tell them apart


def test_the_loaders_are_short():
    for script in (LOADER, ATARI_LOADER):
        compile(script, "play.py", "exec")
        body = script[script.index("policy =") :]
        assert len([line for line in body.splitlines() if line]) <= 14


def test_the_card_says_what_it_must(learned):
    trained, events = learned
    judged = [event for event in events if isinstance(event, Evaluated)][-1]
    card = card_of(trained, judged=EvaluationScore.from_evaluation(judged, trained.spec), simulated=True)
    spec = trained.spec
    for word in (
        "CartPole-v1",
        "PPO",
        "learning_rate 0.001",
        "64 × 64, tanh",
        f"version {trained.learner.version}",
        f"round {trained.progress.round_no}",
        f"{trained.progress.total_progress:,} environment steps",
        f"| Training seed | {spec.seed} |",
        f"{judged.figures.return_mean:,.1f} ± {judged.figures.return_std:,.1f}",
        "over 10 whole episodes",
        ", ".join(map(str, evaluation_seeds(spec, judged.round_no))),
        "$0.0123, **simulated**",
        "pip install onnxruntime numpy gymnasium",
    ):
        assert word in card, word
    assert "simulated" not in card_of(trained)
    assert "is unknown" in card_of(trained)
    assert "not stored" in card_of(trained, simulated=None)
    older = EvaluationScore.from_evaluation(judged.model_copy(update={"round_no": 3}), spec)
    assert "policy of round 3" in card_of(trained, judged=older)
    alone = EvaluationScore.from_progress(trained.progress, spec)
    assert alone is not None
    assert "spread" in card_of(trained, judged=alone)


def test_the_card_names_the_seeds_that_the_run_evaluated_on():
    platform = InlinePlatform()
    spec = tiny()
    events_of(spec, platform)
    seeds_by_round: dict[int, list[int]] = {}
    for call in platform.submitted:
        if isinstance(call.request, EvaluateRequest):
            seeds_by_round.setdefault(call.round_no, []).extend(call.request.episode_seeds)
    assert seeds_by_round
    for round_no, seeds in seeds_by_round.items():
        assert tuple(seeds) == evaluation_seeds(spec, round_no)


def test_atari_takes_its_preprocessing_along(tmp_path: Path):
    network = CNN(hidden=(16,))
    spec = tiny("QbertNoFrameskip-v4", network=network.model_dump())
    state = LearnerState.initial(network, spaces_of(spec.environment), 0)
    trained = TrainedPolicy(spec, Progress(learner=state.encode(), weights=b""), state)
    card = card_of(trained)
    assert "Starling's preprocessing" in card.replace("\n", " ")
    for name, content in package(trained, card).items():
        (tmp_path / name).write_bytes(content)
    spy = f"\nprint('loaded', [name for name in {FORBIDDEN!r} if name in sys.modules])\n"
    # -I would hide the file beside the script, which it is allowed to use.
    (tmp_path / "play.py").write_text(ATARI_LOADER + spy)
    done = subprocess.run(
        [sys.executable, "-E", "-s", "play.py", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "loaded []" in done.stdout
    assert "over 1 episodes" in done.stdout


def test_what_is_no_checkpoint_is_refused_in_words(tmp_path: Path):
    with pytest.raises(CheckpointError, match="cannot be read"):
        TrainedPolicy.of(b"nothing")
    with pytest.raises(CheckpointError, match="cannot be read"):
        TrainedPolicy.read(tmp_path / "missing.checkpoint")


def test_exporting_needs_no_torch():
    program = (
        "import sys; from training.rl.policies import film, loader, model_card; print('torch' in sys.modules)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "False", done.stderr
