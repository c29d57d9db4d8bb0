"""The agents that are trained for a workload: a row of `AGENTS` each, and the types of their settings and specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from training.scheduling.minionsrl.model import SchedulingSettings, SchedulingSpec
from training.scheduling.siren.model import SirenSettings, SirenWorkload
from training.tasks.supervised_spec import Supervised
from training.tasks.training import Training

AnySettings = Annotated[SchedulingSettings | SirenSettings, Field(discriminator="kind")]
AnyAgent = SchedulingSpec | SirenWorkload
AGENTS: Mapping[str, type[SchedulingSpec] | type[SirenWorkload]] = {
    "minionsrl": SchedulingSpec,
    "siren": SirenWorkload,
}


def read_agent_spec(stored: Mapping[str, Any]) -> AnyAgent:
    """Return the spec that is stored. Those from before there were two kinds do not name theirs."""
    return AGENTS[stored.get("kind", "minionsrl")].model_validate(stored)


def agent_for(workload: Training) -> str:
    """Return the kind of agent that schedules trainings of this kind."""
    return "siren" if isinstance(workload, Supervised) else "minionsrl"
