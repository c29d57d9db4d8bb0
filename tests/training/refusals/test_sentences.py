"""What is said of gradients, trajectories, checkpoints and weights that are refused, word by word."""

from __future__ import annotations

import re
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium.envs.classic_control import CartPoleEnv
from pydantic import ValidationError

from cloud.failures import from_exception
from tests.training.gradient_calls import make_gradient, sampled, with_changes
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import descent, tiny
from tests.training.stellaris_runs import QUICK, loop, paused_with_gradients, reports
from tests.training.test_closed_form import a_batch, learned_by
from tests.training.test_gradient_checks import HOSTILE
from tests.training.test_hostile_agents import written
from tests.training.test_lost_gradients import Spoiling
from tests.training.test_rollout import call_of, cut_off_at, weights_of
from tests.training.test_siren_agent import CLOUD, DOLLAR, rounds_of
from tests.training.test_siren_agent import spec as siren_spec
from tests.training.test_siren_agent import weights_of as siren_weights_of
from training.calls import KINDS
from training.calls.gradient import GradientRequest
from training.calls.kind import BadAnswer
from training.engine import memory_limit
from training.engine.checkpoints import CheckpointError, FileCheckpointStore, Progress
from training.engine.codec import HEADER_LIMIT_BYTES, CodecError, decode, encode
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.algorithms.optimisation import BadLoss
from training.rl.batch import BadTrajectory, Batch
from training.rl.learner import LearnerState
from training.scaling.agent_weights import as_text
from training.scaling.learned import Learned
from training.scaling.plan import Bounds
from training.scaling.siren import Siren
from training.tasks.kinds import task_of
from training.tasks.supervised_spec import Supervised

GRADIENTS = {
    "not a number": "the gradient of policy.0.weight has numbers that are not finite",
    "infinite": "the gradient of policy.0.bias has numbers that are not finite",
    "another shape": "the gradient of policy.0.weight has another shape or type than the parameters ask for",
    "another type": "the gradient of policy.0.weight has another shape or type than the parameters ask for",
    "whole numbers": "the gradient of policy.0.bias has another shape or type than the parameters ask for",
    "no array": "the gradient of policy.0.bias has another shape or type than the parameters ask for",
    "one too few": "the gradient lacks or adds: g:policy.0.weight",
    "one too many": "the gradient lacks or adds: g:policy.9.weight",
    "another version": "a gradient of version 1, not of 0",
    "a version that is true": "a gradient of version False, not of 0",
    "another pass": "the gradient is of another pass",
    "more samples": "samples is 121; the trajectories have 120",
    "samples counted twice": "env_steps is 120; the trajectories have 0",
    "the last pass too early": "the gradient is of another pass",
    "moments too early": "the gradient has moments of other samples than its own",
    "a longer step": "the gradient asks for a step 2.0 times as long",
    "a report that is not finite": "the gradient's report has numbers that are not finite, or too large",
    "a report of more": "the gradient's report is not one of ours",
    "importance of less": "the gradient's importance is not one of ours",
    "no divergence": "inf is no divergence",
    "a number beyond all sense": "the gradient of policy.0.bias has numbers above 1e+15",
    "a report beyond all sense": "the gradient's report has numbers that are not finite, or too large",
    "a divergence beyond all sense": "1e+300 is no divergence",
    "samples that count less than nothing": "samples count -1.0 times; at most 4.85165e+08 is possible",
    "samples that count nothing": "samples count 0.0 times; at most 4.85165e+08 is possible",
    "samples that count more than any ratio": "samples count 1000000000.0 times; at most 4.85165e+08 is possible",
    "a share of more than all": "the gradient's importance has shares that are none",
    "a pass that is true": "the gradient is of another pass",
    "words for a device": "the gradient names no device",
    "more bytes": "the result cannot be read: the body would have 8036620 bytes; at most 108367 are allowed",
}


@pytest.mark.parametrize(
    ("change", "said"), [pytest.param(case.values[1], GRADIENTS[case.id], id=case.id) for case in HOSTILE]
)
def test_gradients(change, said):
    call, result = make_gradient()
    with pytest.raises(BadAnswer) as refused:
        KINDS["gradient"].check(call, call.request, with_changes(result, change(decode(result.payload))))
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"observation_variance": np.full(4, -1.0)}, "a variance of observations is below 0"),
        ({"observation_variance": np.full(4, 1e300)}, "has numbers above"),
        ({"observation_mean": np.full(4, 1e300)}, "has numbers above"),
        ({"return_variance": np.full(1, -1.0)}, "a variance of returns is below 0"),
        ({"observation_count": True}, "moments of other samples"),
        ({"return_count": 40}, "moments of other samples"),
    ],
)
def test_moments_that_no_normaliser_can_have_are_refused(changes, words):
    call, result = make_gradient("ppo, 1 pass")
    with pytest.raises(BadAnswer, match=words):
        KINDS["gradient"].check(call, call.request, with_changes(result, changes))


def test_what_later_passes_need():
    call, result = make_gradient()
    with pytest.raises(BadAnswer) as refused:
        KINDS["gradient"].check(call, call.request, replace(result, slot_state=None))
    assert str(refused.value) == "the pass lacks or adds what later passes need"


def test_a_pass_that_there_is_not():
    request = make_gradient()[0].request
    with pytest.raises(ValueError, match=r"pass 11 is not one of 10"):
        GradientRequest.model_validate({**request.model_dump(), "pass_no": 11})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewards": None}, "lacks rewards"),
        ({"version": 99}, "was sampled with version 99; version 0 may be learned from"),
        ({"rewards": lambda a: a.astype(np.float64)}, "has rewards as float64"),
        ({"rewards": lambda a: a * np.nan}, "has rewards that are not finite numbers"),
        ({"log_probs": lambda a: a - np.inf}, "has log_probs that are not finite numbers"),
        (
            {
                "final_index": np.array([[0, 0]], dtype=np.int32),
                "final_observations": lambda a: np.full((1, *a.shape[1:]), np.nan, dtype=np.float32),
            },
            "has final_observations that are not finite numbers",
        ),
        ({"actions": lambda a: a + 7}, "has actions that the environment does not have"),
    ],
)
def test_trajectories(changes, said):
    learner, trajectory, *_ = sampled()[1][0]
    state = LearnerState.decode(learner)
    document = decode(trajectory)
    for name, how in changes.items():
        document[name] = how(document[name]) if callable(how) else how
    kept = {name: value for name, value in document.items() if value is not None}
    with pytest.raises(BadTrajectory) as refused:
        Batch.of([encode(kept)], range(state.version, state.version + 1), state.spaces)
    assert str(refused.value) == f"trajectory 0 {said}"


@pytest.mark.parametrize(
    ("position", "said"),
    [
        (0, r"round-00000007\.checkpoint is not a checkpoint of Starling"),
        (
            60,
            r"checkpoint round-00000007\.checkpoint is damaged: its content has hash 0e83f6c69114…, but cd00e292c597…"
            r" was written; use an older checkpoint",
        ),
    ],
)
def test_a_damaged_checkpoint(tmp_path, position, said):
    store = FileCheckpointStore(tmp_path)
    path = tmp_path / store.save(7, bytes(100)).name
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(CheckpointError, match=f"^{said}$"):
        store.load(path.name)


def test_a_loss_that_is_not_finite():
    spec, state, batch = a_batch()
    impossible = replace(batch, log_probs=np.full_like(batch.log_probs, -1e30))
    with pytest.raises(BadLoss, match=r"loss is not a finite number; the update was discarded$"):
        learned_by(None, spec.algorithm, state, impossible, spec.network)


def test_a_header_above_the_limit():
    claimed = HEADER_LIMIT_BYTES + 1
    with pytest.raises(CodecError, match=f"the header claims {claimed} bytes"):
        decode(struct.pack("<5sBI", b"STRL1", 0, claimed) + b"\xc0" * claimed)


def test_memory_that_is_full(monkeypatch):
    monkeypatch.setattr(memory_limit, "_allowed_bytes", 300 * 2**20)
    assert from_exception(MemoryError()).reason.splitlines()[0] == (
        "It needs more memory than the 300 MB that its process may have. Ask for fewer steps or rows, a smaller"
        " minibatch or a smaller network, or have the operator allow more (STARLING_MAX_JOB_MEMORY_MB)."
    )


def test_numbers_that_an_environment_may_not_return(monkeypatch):
    weights = weights_of("CartPole-v1")
    monkeypatch.setattr(CartPoleEnv, "step", cut_off_at(7))
    with pytest.raises(
        ValueError, match=r"a last observation of an episode that is not a finite number at step 6"
    ):
        execute(call_of("CartPole-v1", weights, copies=1), weights, WarmCache())
    monkeypatch.undo()
    step = CartPoleEnv.step
    monkeypatch.setattr(
        CartPoleEnv, "step", lambda self, action: (step(self, action)[0], float("nan"), False, False, {})
    )
    with pytest.raises(ValueError, match="CartPole-v1 gave a reward that is not a finite number at step 0"):
        execute(call_of("CartPole-v1", weights, copies=1), weights, WarmCache())


@pytest.mark.parametrize("policy", [Siren, Learned])
@pytest.mark.parametrize("changes", [{"b.weight": None}, {"pictures": True}, {"layers": []}])
def test_weights_of_no_scheduler(policy, changes):
    with pytest.raises(ValidationError, match=r"these are not the weights of a scheduler \(\w+\)"):
        policy(weights=written(**changes))


def test_what_a_scheduler_of_functions_says():
    of = siren_spec()
    weights = as_text(siren_weights_of(of))
    history = rounds_of(CLOUD, [(8, 1024)] * 2, budget_picodollars=DOLLAR)
    bounds = Bounds(memory_sizes_mb=(512, 2048))
    after = of.policy(weights, explore=False).decide(history, bounds, 1, Supervised.score).why
    assert re.sub(r"[\d,.]+\d", "N", after) == (
        "N functions of N MB, the agent's mean, at loss N, with N % of the budget left"
    )
    before = of.policy(weights, explore=True).decide([], bounds, 1, Supervised.score).why
    assert re.sub(r"[\d,.]+\d", "N", before) == (
        "N functions of N MB, drawn by the agent, before the first epoch, with N % of the budget left"
    )


def test_a_gradient_that_is_dropped():
    spec = tiny(algorithm=QUICK, loop=loop(), stop={"rounds": 1})
    spoiled = []
    events = events_of(spec, Spoiling(lambda call: not spoiled and not spoiled.append(call.id)))
    (failure,) = [event for event in events if event.kind == "call_failed"]
    assert failure.reason == "dropped: it holds numbers that are not finite"


@pytest.mark.parametrize("way", ["resume", "begin_with"])
def test_gradients_that_another_job_cannot_use(way):
    kept = paused_with_gradients(
        tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    )
    for other, part in (
        (tiny(algorithm=QUICK, loop=loop(), network={"kind": "mlp", "hidden": [4]}), "network"),
        (tiny("Acrobot-v1", algorithm=QUICK, loop=loop()), "environment"),
    ):
        with pytest.raises(
            CheckpointError,
            match=rf"^the checkpoint was made with another {part} \(.*\); it fits only that one$",
        ):
            events_of(other, InlinePlatform(), **{way: kept})


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (QUICK | {"objective": "decoupled"}, "by ppo with another objective"),
        (QUICK | {"epochs": 1}, "in 3 passes"),
        ({"kind": "impala", "minibatch_size": 16}, "by ppo"),
    ],
)
def test_what_cannot_finish_what_learners_had_begun(algorithm, words):
    fields = {"loop": loop(), "scaling": {"actors": 5}, "stop": {"rounds": 3}}
    kept = paused_with_gradients(tiny(algorithm=QUICK, **fields))
    other = tiny(algorithm={"normalise_observations": True} | algorithm, **fields)
    with pytest.raises(
        CheckpointError,
        match=f"^when the checkpoint was made, learners were in the middle of data, {words}.*; resume it so, or begin"
        " a new run with its weights$",
    ):
        Progress.resume(kept, other)


def test_gradients_that_lack_a_measure_of_staleness():
    fields = {"algorithm": QUICK, "scaling": {"actors": 5}, "stop": {"rounds": 3}}
    kept = paused_with_gradients(tiny(loop=loop(), **fields))
    with pytest.raises(CheckpointError, match="their gradients lack what KL is measured on; resume it so"):
        Progress.resume(kept, tiny(loop=loop(distance="kl"), **fields))


def test_a_number_of_learners_that_follows_the_round_before():
    spec = tiny(algorithm=QUICK, loop=loop(learners=3, fit_learners=True), stop={"rounds": 2})
    why = reports(events_of(spec, InlinePlatform()))[-1].gradients.learners_why
    assert re.fullmatch(r"[\d.e-]+ s of gradients a round for [\d.e-]+ s of sampling, at most 3", why), why


def test_checkpoints_of_another_descent():
    spec, store = descent(optimiser={"kind": "momentum"}, stop={"rounds": 1}), Forgetful()
    events_of(spec, InlinePlatform(), checkpoints=store)
    (data,) = store.saved.values()
    with pytest.raises(
        CheckpointError, match=r"^the checkpoint's parameters are of another model, or of other data$"
    ):
        task_of(descent(data="breast_cancer")).fork(Progress.decode(data, spec))
    with pytest.raises(
        CheckpointError,
        match=r"^the checkpoint was made with another minibatch \(64\); it fits only that one$",
    ):
        Progress.decode(data, descent(optimiser={"kind": "momentum"}, minibatch=32))


def test_a_gpu_whose_memory_is_full():
    error = torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total of 1 GiB."
    )
    assert from_exception(error).reason.startswith(
        "The GPU's memory is full (torch asked for 20.00 MiB more). Choose smaller minibatches"
    )
