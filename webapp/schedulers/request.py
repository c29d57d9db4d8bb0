"""The settings of a scheduler's training, as the form and the command line take them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any

from pydantic import Field, ValidationError

from cloud.simulated_options import SimulatedOptions
from training.base_model import FrozenModel
from training.environments import catalogue
from training.scheduling.minionsrl.model import SchedulingSettings, SchedulingSpec
from training.spec import TrainingSpec
from webapp.jobs.form.presets import presets
from webapp.jobs.form.spec_problems import Problem

_ROUNDS_AT_MOST = 200
_FINE_TUNE_EPISODES = 10
_NOT_OF_THE_KIND = ("seed", "stop", "scaling", "checkpoints")


class TrainingRequest(FrozenModel):
    """A training of a scheduler. Episodes run on the simulated cloud: nothing is paid."""

    name: str = Field(
        "Scheduler",
        min_length=1,
        max_length=60,
        title="Name",
        description="A name that is there already gets a new version.",
    )
    workload: str = Field(
        "cartpole",
        max_length=100,
        title="Workload",
        description="The preset whose training it is to schedule. Its own scaling policy does not matter.",
    )
    begin_with: str = Field(
        "",
        max_length=100,
        title="Begin with",
        description="One of this project's schedulers, trained on for the new task.",
    )
    target_return: float | None = Field(
        None,
        title="Target return",
        description="What a training has to reach. Empty: the environment's reference return.",
    )
    rounds: int | None = Field(
        None,
        ge=2,
        le=10_000,
        title="Rounds of an episode at most",
        description="Empty: as many as the workload's own stop rule comes to, and 200 at most.",
    )
    budget_usd: Decimal = Field(
        Decimal("1"),
        gt=0,
        le=10_000,
        decimal_places=6,
        title="Budget of an episode",
        description="Simulated dollars. An episode ends before it spends more.",
        json_schema_extra={"unit": "USD"},
    )
    scheduling: SchedulingSettings = Field(SchedulingSettings(), title="What it learns")
    platform: SimulatedOptions = Field(SimulatedOptions(learner="function"), title="Where its episodes run")


@dataclass(frozen=True)
class CompleteRequest:
    """The request with all defaults filled in."""

    spec: SchedulingSpec
    workload_key: str


def complete_request(request: TrainingRequest, workload: TrainingSpec) -> CompleteRequest | list[Problem]:
    """The complete request, or the problems that prevent it."""
    target = request.target_return if request.target_return is not None else _reference(workload)
    if target is None:
        path = "target_return"
        return [
            Problem(
                path,
                f"Target return ({path}): no reference of {workload.environment.id} is known; say what a training has"
                " to reach.",
            )
        ]
    rounds = request.rounds or _usual_rounds(workload, request.scheduling.actors_max)
    settings = request.scheduling.model_dump()
    try:
        spec = SchedulingSpec(workload=workload, target_return=target, rounds=rounds, **settings)
    except ValidationError as error:
        return [Problem("scheduling", str(error.errors()[0]["msg"]))]
    return CompleteRequest(spec, key_of(workload, request.platform))


def workload_of(name: str) -> TrainingSpec | None:
    found = presets().get(name)
    training = found.spec.training if found is not None else None
    return training if isinstance(training, TrainingSpec) else None


def key_of(workload: TrainingSpec, platform: SimulatedOptions) -> str:
    """A key of the workload and platform: schedulers may rehearse with rounds of the same key."""
    document = {
        "training": {
            name: value
            for name, value in workload.model_dump(mode="json").items()
            if name not in _NOT_OF_THE_KIND
        },
        "platform": {
            name: value
            for name, value in platform.model_dump(mode="json").items()
            if name not in ("seed", "workers")
        },
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:32]


def fine_tuned(document: dict[str, Any]) -> dict[str, Any]:
    """Settings for fine-tuning a scheduler of another task: ten real episodes, as in the paper."""
    return {**document, "episodes": _FINE_TUNE_EPISODES, "rehearsals": 0}


def _reference(workload: TrainingSpec) -> float | None:
    entry = catalogue.ENTRIES.get(workload.environment.id)
    own = workload.stop.target_return
    return own if own is not None else entry.reference_return if entry is not None else None


def _usual_rounds(workload: TrainingSpec, actors_max: int) -> int:
    stop, rollout = workload.stop, workload.rollout
    found = [_ROUNDS_AT_MOST]
    if stop.rounds is not None:
        found.append(stop.rounds)
    if stop.env_steps is not None:
        a_round = rollout.steps_per_call * rollout.environments_per_actor * max(1, actors_max // 2)
        found.append(ceil(stop.env_steps / a_round))
    return max(2, min(found))
