"""The engine: a generator that takes a spec and a platform, and yields events."""

from __future__ import annotations

from collections.abc import Iterator

from training.algorithms.ppo import PPO
from training.checkpoints import Progress
from training.environments.making import can_travel, spaces_of, stepped_by
from training.loops.asynchronous import asynchronous
from training.loops.pipelined import pipelined
from training.loops.run import Run
from training.loops.synchronous import synchronous
from training.messages import Event, Started
from training.ports import CheckpointStore, ControlSource, Platform
from training.seeds import derive
from training.spec import TrainingSpec

_LOOPS = {"synchronous": synchronous, "pipelined": pipelined, "asynchronous": asynchronous}


def train(
    spec: TrainingSpec,
    *,
    platform: Platform,
    checkpoints: CheckpointStore,
    control: ControlSource,
    resume: bytes | None = None,
    begin_with: bytes | None = None,
    call_prefix: str = "",
) -> Iterator[Event]:
    """Train until the stop rule, a user or the budget ends the run. The last event is always `Stopped`.

    `resume` is a checkpoint's content; the run continues from it as if it had never stopped. `begin_with` is a
    checkpoint of another run: without `resume`, this run begins with its weights. `call_prefix` goes before every
    call's id, so that a ledger with several runs of one job sees no id twice. The caller closes the platform.
    """
    if resume is not None:
        progress = Progress.decode(resume, spec)
    elif begin_with is not None:
        progress = Progress.decode(begin_with, spec).fork(spec)
    else:
        progress = _beginning(spec)
    yield Started(
        resumed_from_round=progress.round_no if resume is not None else None,
        stepping=stepped_by(spec.environment),
        notes=_notes(spec),
    )
    loop = _LOOPS[spec.loop.kind]
    yield from loop(Run(spec, platform, checkpoints, control, progress, call_prefix))


def _beginning(spec: TrainingSpec) -> Progress:
    state = spec.algorithm.initial_state(
        spec.network, spaces_of(spec.environment), derive(spec.seed, "network")
    )
    return Progress(learner=state.encode(), weights=state.actor_weights(spec.network))


def _notes(spec: TrainingSpec) -> tuple[str, ...]:
    """Return what a user should know before the first round."""
    notes = []
    if not can_travel(spec.environment):
        notes.append(
            f"The state of {spec.environment.id} cannot be saved between calls, so every call starts with a new "
            f"episode. Episodes longer than {spec.rollout.steps_per_call} steps never reach their end in training."
        )
    algorithm = spec.algorithm
    if isinstance(algorithm, PPO) and algorithm.objective == "clipped" and spec.loop.staleness_limit:
        notes.append(
            f"The {spec.loop.kind} loop learns from data of older policies. PPO's clipped objective treats it "
            "as data of the newest policy: the decoupled objective, IMPALA or IMPACT suit such data better."
        )
    return tuple(notes)
