"""The settings of a scheduler's training, as the form and the command line take them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any

from pydantic import ValidationError, model_validator

from cloud.platforms.simulated_options import SimulatedOptions
from training.base_model import FrozenModel, setting
from training.rl.environments import catalogue
from training.scheduling.agents import AGENTS, AnyAgent, AnySettings, agent_for
from training.scheduling.minionsrl.model import SchedulingSettings
from training.spec import TrainingSpec
from training.tasks.supervised_spec import Supervised
from training.tasks.training import Training
from webapp.jobs.form.presets import presets
from webapp.jobs.form.spec_problems import SpecProblem

_ROUNDS_AT_MOST = 200
_FINE_TUNE_EPISODES = 10
_NOT_OF_THE_KIND = ("seed", "stop", "scaling", "checkpoints")
_FEW_SIZES = 64
AGENT_NAMES = {"minionsrl": "MinionsRL", "siren": "Siren"}
_EASIER = 1.1
"""By so much a target loss is above what the preset's training comes to, which takes all of its epochs."""


class TrainingRequest(FrozenModel):
    """A training of a scheduler. Episodes run on the simulated cloud: nothing is paid."""

    name: str = setting(
        "Scheduler", "Name", "A name that is there already gets a new version.", min_length=1, max_length=60
    )
    workload: str = setting(
        "cartpole",
        "Workload",
        "The preset whose training it is to schedule. Its own scaling policy does not matter.",
        max_length=100,
    )
    data: str = setting(
        "", "Data set", "Of a workload that learns from data. Empty: the preset's.", max_length=100
    )
    begin_with: str = setting(
        "", "Begin with", "One of this project's schedulers, trained on for the new task.", max_length=100
    )
    target: float | None = setting(
        None,
        "Target",
        "The return or the loss to reach. Empty: the environment's reference, or the preset's loss.",
    )
    rounds: int | None = setting(
        None,
        "Rounds of an episode at most",
        "Empty: as many as the workload's own stop rule comes to, and 200 at most.",
        ge=2,
        le=10_000,
    )
    budget_usd: Decimal = setting(
        Decimal("1"),
        "Budget of an episode",
        "Simulated dollars. An episode ends before it spends more.",
        gt=0,
        le=10_000,
        decimal_places=6,
        unit="USD",
    )
    scheduling: AnySettings = setting(SchedulingSettings(), "Agent")
    platform: SimulatedOptions = setting(SimulatedOptions(learner="function"), "Where its episodes run")

    @model_validator(mode="before")
    @classmethod
    def _agent_of_the_workload(cls, given: Any) -> Any:
        """Without a kind of agent, it is the one that schedules such trainings."""
        if not isinstance(given, Mapping):
            return given
        settings, workload = given.get("scheduling", {}), workload_of(given.get("workload", "cartpole"))
        if not isinstance(settings, Mapping) or "kind" in settings:
            return given
        kind = agent_for(workload) if workload is not None else SchedulingSettings().kind
        return {**given, "scheduling": {**settings, "kind": kind}}


@dataclass(frozen=True)
class CompleteRequest:
    """The request with all defaults filled in."""

    spec: AnyAgent
    workload_key: str


def complete_request(request: TrainingRequest, workload: Training) -> CompleteRequest | list[SpecProblem]:
    """The complete request for this workload, or the problems that prevent it."""
    settings = request.scheduling
    if settings.kind != agent_for(workload):
        return [_other_agent(request.workload, workload)]
    target = request.target if request.target is not None else _own_target(request, workload)
    if target is None:
        score = workload.score.name
        words = f"no {score} to reach is known for {workload.subject}; set the {score} that a training has to reach."
        return [SpecProblem("target", f"Target (target): {words}")]
    document: dict[str, Any] = {
        **settings.model_dump(),
        "workload": workload,
        f"target_{workload.score.name}": target,
        "rounds": request.rounds or _usual_rounds(workload, settings.actors_max),
    }
    if isinstance(workload, Supervised):
        document["sizes_mb"] = _sizes_mb(request.platform, workload, document)
    try:
        spec = AGENTS[settings.kind].model_validate(document)
    except ValidationError as error:
        detail = error.errors()[0]
        path = "target" if str(detail["loc"][:1]).startswith("('target") else "scheduling"
        return [SpecProblem(path, f"{path.capitalize()} ({path}): {detail['msg']}.")]
    return CompleteRequest(spec, key_of(workload, request.platform))


def _sizes_mb(platform: SimulatedOptions, workload: Training, settings: Mapping[str, Any]) -> list[int]:
    """The sizes of memory to rehearse with: where there is any, every 64 MB."""
    there_are = platform.memory_sizes_mb(workload.memory_mb)
    ends = settings["memory_min_mb"], settings["memory_max_mb"]
    if len(there_are) <= _FEW_SIZES:
        return list(there_are)
    return sorted({*ends, *(size for size in there_are if ends[0] <= size <= ends[1] and size % 64 == 0)})


def _other_agent(name: str, workload: Training) -> SpecProblem:
    fitting, path = agent_for(workload), "scheduling"
    words = f"{AGENT_NAMES[fitting]} is the agent for {name}; choose it, or another workload."
    return SpecProblem(path, f"Agent ({path}): {words}")


def workload_of(name: object) -> Training | None:
    preset = presets().get(str(name))
    return preset.spec.training if preset is not None else None


def key_of(workload: Training, platform: SimulatedOptions) -> str:
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


def _own_target(request: TrainingRequest, workload: Training) -> float | None:
    """What the workload itself is to reach; None if nothing says so."""
    own = workload.stop.target_score
    if own is not None:
        return own
    if isinstance(workload, TrainingSpec):
        entry = catalogue.ENTRIES.get(workload.environment.id)
        return entry.reference_score if entry is not None else None
    expected = presets()[request.workload].expected_score
    return None if request.data or expected is None else round(_EASIER * expected, 3)


def _usual_rounds(workload: Training, actors_max: int) -> int:
    stop = workload.stop
    rounds = [_ROUNDS_AT_MOST]
    if stop.rounds is not None:
        rounds.append(stop.rounds)
    if stop.progress_limit is not None:
        rounds.append(ceil(stop.progress_limit / (workload.progress_a_call * max(1, actors_max // 2))))
    return max(2, min(rounds))
