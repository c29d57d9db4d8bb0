"""Returns around a policy: the middle is the policy itself, the directions are eigenvectors, equal seeds repeat."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.specs import tiny
from training.calls.evaluate import EvaluateRequest
from training.engine.checkpoints import FileCheckpointStore
from training.engine.codec import decode
from training.engine.messages import Call
from training.engine.ports import Control
from training.engine.seeds import derive
from training.engine.train import train
from training.functions.body import WarmCache
from training.functions.evaluate import evaluate
from training.rl.policies.trained import TrainedPolicy
from training.rl.surfaces.lanczos import leading_vectors
from training.rl.surfaces.reward_surface import Directions, Point, measure_surface


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("landscape")
    store = FileCheckpointStore(folder)
    for _ in train(tiny(), platform=InlinePlatform(), checkpoints=store, control=Control):
        pass
    return folder / store.names()[-1]


def test_the_middle_is_the_policy_and_equal_seeds_repeat(checkpoint):
    trained = TrainedPolicy.read(checkpoint)
    messages = list(measure_surface(trained, grid=3, span=0.5, episodes=2, seed=4))
    directions, points = messages[0], messages[1:]
    assert isinstance(directions, Directions)
    assert directions.offsets == (-0.5, 0.0, 0.5)
    assert abs(directions.eigenvalues[0]) >= abs(directions.eigenvalues[1]) > 0
    assert {(one.row, one.column) for one in points} == {(r, c) for r in range(3) for c in range(3)}
    assert isinstance(points[0], Point)
    assert (points[0].row, points[0].column) == (1, 1)
    request = EvaluateRequest(
        environment=trained.spec.environment,
        episode_seeds=tuple(derive(4, "episode", n) % 2**32 for n in range(2)),
    )
    call = Call(id="e", request=request, where="actor", round_no=0, seed=0, deadline_s=60.0, memory_mb=0)
    weights = trained.learner.actor_weights(trained.spec.network)
    played = decode(evaluate(call, request, weights, WarmCache()).payload)
    assert points[0].return_mean == np.mean(played["returns"])
    assert messages == list(measure_surface(trained, grid=3, span=0.5, episodes=2, seed=4))
    assert len({one.return_mean for one in points}) > 1


def test_leading_vectors_are_those_of_largest_magnitude():
    rotation, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((30, 30)))
    values = np.linspace(-1.0, 1.0, 30)
    values[3], values[7], values[11] = -9.0, 7.0, 4.0
    matrix = rotation @ np.diag(values) @ rotation.T
    found = leading_vectors(lambda v: matrix @ v, 30, 2, seed=1, products=25)
    assert [value for value, _ in found] == pytest.approx([-9.0, 7.0], rel=1e-6)
    for value, vector in found:
        assert matrix @ vector == pytest.approx(value * vector, abs=1e-4)


@pytest.mark.parametrize("to", [0.0, np.nan])
def test_a_policy_without_two_directions_is_explained(checkpoint, monkeypatch, capsys, to):
    from training.rl.surfaces import reward_surface as module

    plain = module.standardise
    monkeypatch.setattr(
        module, "standardise", lambda one: replace(plain(one), advantages=plain(one).advantages * to)
    )
    monkeypatch.setattr(sys, "argv", ["landscape", str(checkpoint), "--grid", "3"])
    assert module.main() == 1
    assert "no two directions" in json.loads(capsys.readouterr().out)["error"]


def test_the_command_tells_line_by_line(checkpoint):
    command = [sys.executable, "-m", "training.rl.surfaces.reward_surface", str(checkpoint), "--grid", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert set(lines[0]) == {"eigenvalues", "offsets"}
    assert len(lines) == 10
    bad = subprocess.run([*command[:3], __file__], capture_output=True, text=True, check=False)
    assert bad.returncode == 1
    assert "not a checkpoint" in json.loads(bad.stdout)["error"]
