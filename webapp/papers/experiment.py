"""An experiment as data: what is asked, what is compared, how it is judged — all declared before the first run.

The nouns: an **experiment** has **arms** (what is compared) and **settings** (an environment with its seeds and arms).
An arm, a setting and a seed are one **run**. **Claims** are what the experiment may say, each with its own bar.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from training.frozen import Frozen
from webapp.jobs.spec import JobSpec

QUICK_ROUNDS = 6
QUICK_SEEDS = 2
# Seeds of what an experiment must never see in training; engine seeds are hashed with labels of their own.
_SEED_STRIDE = 10_000


class Arm(Frozen):
    """One thing that is compared. `changes` go into the experiment's base document, table by table.

    `peer` names a program in `peers/` that runs the same recipe with another library. `seed_offset` is for A/A pairs:
    the same arm again on other seeds.
    """

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    title: str
    changes: dict[str, Any] = {}
    peer: Literal["sb3"] | None = None
    seed_offset: int = Field(0, ge=0, lt=_SEED_STRIDE)


class Setting(Frozen):
    """An environment, the seeds it is run with, and which arms run there (None: all)."""

    environment: str
    seeds: tuple[int, ...] = Field(min_length=1)
    arms: tuple[str, ...] | None = None
    changes: dict[str, Any] = {}


class Reaches(Frozen):
    """The arm's IQM of the endpoint is at least `value` there; the interval is told beside it."""

    kind: Literal["reaches"] = "reaches"
    arm: str
    environment: str
    value: float
    source: str


class NotWorse(Frozen):
    """The lower 95 % bound of the paired IQM ratio, `arm` over `against`, is at least `margin`."""

    kind: Literal["not_worse"] = "not_worse"
    arm: str
    against: str
    environment: str
    margin: float = Field(gt=0, le=1)


class NotBelow(Frozen):
    """The 95 % interval of the paired difference, `arm` − `against`, contains or exceeds 0: all that 3 seeds allow."""

    kind: Literal["not_below"] = "not_below"
    arm: str
    against: str
    environment: str


Claim = Reaches | NotWorse | NotBelow


class Experiment(Frozen):
    """What one file in `experiments/` declares. Everything here is fixed before the first run."""

    title: str
    question: str
    endpoint: str = (
        "mean return of a final evaluation: 20 episodes, deterministic, frozen normaliser, held-out seeds"
    )
    endpoint_note: str = ""
    oracle: str = Field(description="What would have told us that the outcome is wrong.")
    can_claim: str = Field(description="What this number of seeds allows to say.")
    base: dict[str, Any] = Field(description="A JobSpec document that all arms start from.")
    arms: tuple[Arm, ...] = Field(min_length=1)
    settings: tuple[Setting, ...] = Field(min_length=1)
    claims: tuple[Claim, ...] = ()
    final_episodes: int = Field(20, ge=1)

    @model_validator(mode="after")
    def names_exist(self) -> Self:
        arms, environments = {arm.name for arm in self.arms}, {one.environment for one in self.settings}
        if len(arms) != len(self.arms) or len(environments) != len(self.settings):
            raise ValueError("names of arms and of environments must be different from each other")
        for setting in self.settings:
            if unknown := set(setting.arms or ()) - arms:
                raise ValueError(f"{setting.environment} names arms that are not there: {sorted(unknown)}")
        for claim in self.claims:
            if (
                claim.environment not in environments
                or {claim.arm, getattr(claim, "against", claim.arm)} - arms
            ):
                raise ValueError(f"a claim names an arm or environment that is not there: {claim!r}")
        return self

    def arm(self, name: str) -> Arm:
        return next(arm for arm in self.arms if arm.name == name)

    def arms_of(self, setting: Setting) -> list[Arm]:
        return [arm for arm in self.arms if setting.arms is None or arm.name in setting.arms]

    def cells(self, *, quick: bool = False) -> Iterator[Cell]:
        """Every run, in the order in which they are due: settings as declared, seeds, then arms side by side."""
        for setting in self.settings[:1] if quick else self.settings:
            for seed in setting.seeds[:QUICK_SEEDS] if quick else setting.seeds:
                for arm in self.arms_of(setting):
                    yield Cell(arm.name, setting.environment, seed)

    def spec(self, cell: Cell, *, quick: bool = False) -> JobSpec:
        """What the engine is asked for in this run."""
        arm = self.arm(cell.arm)
        setting = next(one for one in self.settings if one.environment == cell.environment)
        own = {"training": {"environment": {"id": cell.environment}, "seed": cell.seed + arm.seed_offset}}
        document = merged(merged(merged(self.base, setting.changes), arm.changes), own)
        if quick:
            document = merged(document, _QUICK)
        document["name"] = f"{cell.arm} · {cell.environment} · {cell.seed}"
        return JobSpec.model_validate(document)

    def evaluation_seeds(self, cell: Cell, *, quick: bool = False) -> list[int]:
        """Held-out seeds of the final evaluation: the same for all arms of a seed, so that arms are paired."""
        first = 1_000_000_000 + cell.seed * _SEED_STRIDE
        return list(range(first, first + (3 if quick else self.final_episodes)))


class Cell(NamedTuple):
    """One run of an experiment."""

    arm: str
    environment: str
    seed: int


_QUICK: dict[str, Any] = {
    "training": {
        "stop": {"rounds": QUICK_ROUNDS, "env_steps": None},
        "evaluation": {"every_rounds": 3, "episodes": 2},
        "checkpoints": {"every_rounds": 2},
    }
}


def merged(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`document` with `changes` put in, table by table; a table of another `kind` replaces the old one whole."""
    result = dict(document)
    for key, value in changes.items():
        old = result.get(key)
        if (
            isinstance(old, Mapping)
            and isinstance(value, Mapping)
            and value.get("kind") in (None, old.get("kind"))
        ):
            result[key] = merged(old, value)
        else:
            result[key] = merged({}, value) if isinstance(value, Mapping) else value
    return result


def recipe_hash(spec: JobSpec) -> str:
    """A short name for what was declared of this recipe; a run is never continued with another one."""
    document = json.dumps(spec.model_dump(mode="json", exclude_unset=True), sort_keys=True)
    return sha256(document.encode()).hexdigest()[:16]


class UnknownExperiment(LookupError):
    """No file of that name; the message says which there are."""


def experiment_names() -> list[str]:
    import webapp.papers.experiments as folder

    return sorted(module.name for module in pkgutil.iter_modules(folder.__path__))


def find_experiment(name: str) -> Experiment:
    """The experiment in the file of that name, or UnknownExperiment."""
    if name not in experiment_names():
        raise UnknownExperiment(
            f"There is no experiment {name!r}; there are: {', '.join(experiment_names())}."
        )
    found = importlib.import_module(f"webapp.papers.experiments.{name}").EXPERIMENT
    assert isinstance(found, Experiment)
    return found
