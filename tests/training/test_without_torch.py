"""Learners without torch: a small function that learns an MLP needs numpy only."""

import subprocess
import sys
from pathlib import Path

import pytest

from rig.servers import printed_by
from training.engine import torch_loading

ROOT = Path(__file__).resolve().parent.parent.parent

# With None in its place, every import of torch fails as if it were not installed.
_TRAIN = """
import json, sys
sys.modules["torch"] = None
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import tiny
for algorithm in json.loads(sys.argv[1]):
    events = events_of(tiny(algorithm=algorithm, stop={"rounds": 2}), InlinePlatform())
    print(algorithm["kind"], events[-1].reason_code, events[-1].rounds)
"""


def test_a_whole_run_with_an_mlp_needs_no_torch():
    algorithms = [{"kind": kind} for kind in ("ppo", "a2c", "impala", "impact")]
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _TRAIN, str(algorithms).replace("'", '"')],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == [f"{one['kind']} rounds 2" for one in algorithms]


_COMPUTE_GRADIENTS = """
import sys
sys.modules["torch"] = None
from tests.training import gradient_calls as calls
_, ((learner, *trajectories), _) = calls.sampled()
spaces = calls.LearnerState.decode(learner).spaces
for name in ("ppo, 10 passes", "a2c", "impala", "impact"):
    spec = calls.spec_of(name)
    state = spec.algorithm.initial_state(spec.network, spaces, 3)
    after, results = calls.learned_by_calls(spec, state, tuple(trajectories), 1, 8)
    call, blob = calls.gradient_call(
        spec,
        after,
        tuple(trajectories),
        policies=(state.actor_weights(spec.network),),
        truncation=calls.Truncation(),
    )
    calls.answered(call, blob)
    print(name, after.optimiser_steps, len(results))
"""


def test_learners_that_compute_gradients_of_an_mlp_need_no_torch():
    answer = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _COMPUTE_GRADIENTS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == ["ppo, 10 passes 10 20", "a2c 1 2", "impala 3 6", "impact 3 6"]


def test_torch_is_asked_about_a_gpu_only_where_there_may_be_one(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: not asked.append(1))
    monkeypatch.setattr(torch_loading, "_GPU_FILES", (tmp_path / "gpu",))
    assert torch_loading.has_gpu() is (sys.platform == "win32")
    assert not asked
    (tmp_path / "gpu").touch()
    assert torch_loading.has_gpu()
    monkeypatch.setitem(sys.modules, "torch", None)
    assert not torch_loading.has_gpu()


@pytest.mark.parametrize(
    "module",
    [
        "training.functions.update",
        "training.functions.gradient",
        "training.functions.apply",
        "training.rl.algorithms.optimisation",
    ],
)
def test_the_learners_modules_load_without_torch(module):
    assert printed_by(f"import sys, {module}; print('torch' in sys.modules)") == "False"
