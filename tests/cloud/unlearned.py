"""Whole jobs on the simulated cloud whose bodies do the work asked for without doing it: the engine, the loops, the
meter and the ledger are real, environments and learning are not. For holding forecasts against what really comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

import numpy as np

from cloud.failures import Failure
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecasting.workload import Workload, spaces_of
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.stack import Stack
from tests.cloud.instant_executor import InstantExecutor
from training.calls.apply import ApplyRequest
from training.calls.evaluate import EvaluateRequest
from training.calls.gradient import GradientRequest
from training.calls.rollout import RolloutRequest
from training.engine.checkpoints import CheckpointRef, Progress
from training.engine.codec import decode, encode
from training.engine.messages import Call, RoundFinished, Stopped
from training.engine.ports import Control, Ledger
from training.engine.reports import RoundReport, Usage
from training.engine.train import train
from training.functions.body import Result
from training.loops.staleness_aware import StalenessAware
from training.spec import TrainingSpec

_REPORT = dict.fromkeys(
    (
        "policy_loss",
        "value_loss",
        "entropy",
        "approximate_kl",
        "clip_fraction",
        "explained_variance",
        "gradient_norm",
        "learning_rate",
    ),
    0.0,
)


@dataclass(frozen=True)
class Ended:
    minutes: float
    usd: float
    steps: int
    rounds: int
    reason_code: str
    reason: str


class _NoCheckpoints:
    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        return CheckpointRef("", round_no, "", 0)

    def load(self, name: str) -> bytes:
        raise LookupError(name)


def really(
    training: TrainingSpec,
    options: SimulatedOptions,
    profile: Profile,
    stack: Stack,
    *,
    episode_steps: Callable[[int], int],
    budget_picodollars: int = 10**15,
    ledger: Ledger | None = None,
    on_round: Callable[[RoundReport], None] = lambda report: None,
) -> Ended:
    """The job's own end. Evaluated episodes have `episode_steps(round)` steps. `ledger`: in place of one in memory."""
    ledger = ledger or MemoryLedger(budget_picodollars)
    executor = InstantExecutor(_bodies(training, episode_steps))
    platform = MeteredPlatform(
        SimulatedPlatform(options, profile=profile, stack=stack, executor=executor),
        ledger,
        options.tariff(PriceBook.load(), training.rollout.memory_mb),
    )
    stopped = None
    sizes = Workload(training).sizes
    learner = bytes(sizes.learner)
    if isinstance(training.loop, StalenessAware):
        # What gradients are computed with is read out of it.
        state = training.algorithm.initial_state(training.network, spaces_of(training)[0], 0)
        learner = state.encode()
    progress = Progress(learner=learner, weights=bytes(sizes.weights))
    for event in train(
        training,
        platform=platform,
        checkpoints=_NoCheckpoints(),
        control=lambda: Control(),
        resume=progress.encode(training),
    ):
        if isinstance(event, RoundFinished):
            on_round(event.report)
        if isinstance(event, Stopped):
            stopped = event
    platform.close()
    assert stopped is not None
    spent = ledger.spend().spent_picodollars
    return Ended(
        stopped.platform_s / 60,
        spent / 10**12,
        stopped.progress,
        stopped.rounds,
        stopped.reason_code,
        stopped.reason,
    )


def _bodies(
    training: TrainingSpec, episode_steps: Callable[[int], int]
) -> Callable[[Call], Result | Failure]:
    sizes = Workload(training).sizes
    works = Workload(training)
    versions = count(1)
    trajectory, state = bytes(sizes.trajectory), bytes(sizes.state)

    def body(call: Call) -> Result | Failure:
        request = call.request
        if isinstance(request, RolloutRequest):
            steps = request.steps * request.environments
            usage = Usage(steps=steps, inferences=steps, macs=sizes.policy_macs, pictures=sizes.pictures)
            return Result(trajectory, state, usage)
        if isinstance(request, EvaluateRequest):
            played = len(request.episode_seeds)
            length = episode_steps(call.round_no)
            lengths = np.full(played, length)
            usage = Usage(
                steps=played * length,
                inferences=played * length,
                trials=played,
                macs=sizes.policy_macs,
                pictures=sizes.pictures,
            )
            return Result(encode({"returns": np.zeros(played), "lengths": lengths}), None, usage)
        if isinstance(request, GradientRequest):
            return _gradient(call, request, works)
        data = len(call.inputs) - 1
        like = works.update("update", data)
        steps = data * works.steps_a_call
        if isinstance(request, ApplyRequest):
            like = works.call("apply", "apply", gradients=data)
            steps = sum(decode(gradient)["env_steps"] for gradient in call.inputs[1:])
        payload = {
            "state": call.inputs[0],
            "weights": bytes(sizes.weights),
            "version": next(versions),
            "report": _REPORT,
            "env_steps": steps,
            "parameters": b"",
            "staleness_mean": 0.0,
            "episodes": 0,
            "episode_return_mean": None,
            "curvature": None,
            "noise_scale": None,
            "policy_shift": None,
            "episode_length_mean": None,
        }
        usage = Usage(
            minibatches=like.minibatches, samples=like.samples, macs=like.macs, pictures=like.pictures
        )
        return Result(encode(payload), None, usage)

    return body


def _gradient(call: Call, request: GradientRequest, works: Workload) -> Result:
    """Return a gradient of nothing, as long as a real one."""
    data = len(call.inputs) - request.policies - request.anchors
    like = works.call("gradient", "gradient", contributions=data)
    last = request.pass_no == request.passes
    payload = {"env_steps": data * works.steps_a_call if last else 0, "last": last}
    filler = {"filler": bytes(like.bytes_out - len(encode(payload)))}
    usage = Usage(minibatches=like.minibatches, samples=like.samples, macs=like.macs, pictures=like.pictures)
    return Result(encode(payload | filler), None, usage)
