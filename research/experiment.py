"""An experiment as data: the question, what is compared, how it is judged — all declared before the first run.

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

from research.branching import Branching
from research.claims import Better, Cheaper, Claim, arms_in, environments_in
from research.paper_tables import HyperparameterDifference, Paper, differences
from research.pricing_targets import PRICING_TARGETS
from research.reliability import Reliability
from research.scheduler_training import RehearsedTraining
from training.base_model import FrozenModel
from webapp.jobs.spec import JobSpec

QUICK_ROUNDS = 6
QUICK_SEEDS = 2
# Seeds of what an experiment must never see in training; engine seeds are hashed with labels of their own.
_SEED_STRIDE = 10_000
# What an A/A arm adds to its seeds.
_AGAIN_SEEDS = 1000


class Arm(FrozenModel):
    """One thing that is compared. `changes` go into the experiment's base document, table by table.

    `peer` names a program in `peers/` that runs the same recipe with another library. `again_of` is for A/A pairs: it
    names the arm that this one repeats on other seeds, and both are stored in one file. `home` is the experiment that
    has this very arm already: it is run once for both. `spends_like` names an arm whose numbers of actors this one
    takes from the same seed, largest first. `scheduler` names an arm that trains a scheduler, which decides in this
    one. `study` makes a run of something other than one training.
    """

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    title: str
    changes: dict[str, Any] = {}
    peer: Literal["sb3"] | None = None
    again_of: str = ""
    home: str = ""
    spends_like: str | None = None
    scheduler: str | None = None
    study: Branching | RehearsedTraining | Reliability | None = Field(None, discriminator="kind")


class ExperimentSetting(FrozenModel):
    """An environment, the seeds it is run with, and which arms run there (None: all).

    `fewer`: arms that are run with the first so many seeds only. `own`: changes for single arms here.
    """

    environment: str
    seeds: tuple[int, ...] = Field(min_length=1)
    arms: tuple[str, ...] | None = None
    fewer: dict[str, int] = {}
    own: dict[str, dict[str, Any]] = {}
    changes: dict[str, Any] = {}


class Experiment(FrozenModel):
    """What one file in `experiments/` declares. Everything here is fixed before the first run."""

    title: str
    question: str
    endpoint: str = (
        "mean return of a final evaluation: 20 episodes, deterministic, frozen normaliser, held-out seeds"
    )
    endpoint_note: str = ""
    oracle: str = Field(description="What would have shown us that the outcome is wrong.")
    can_claim: str = Field(description="What this number of seeds allows to say.")
    base: dict[str, Any] = Field(description="A JobSpec document that all arms start from.")
    arms: tuple[Arm, ...] = Field(min_length=1)
    settings: tuple[ExperimentSetting, ...] = Field(min_length=1)
    claims: tuple[Claim, ...] = ()
    final_episodes: int = Field(20, ge=1)
    targets: dict[str, float] = Field(
        {}, description="The return to be reached, by environment, where cost counts."
    )
    training_targets: dict[str, float] = Field(
        {}, description="The same by the papers' own meter, the mean return of a round's training episodes."
    )
    targets_note: str = Field("", description="How targets were chosen, and when.")
    pricing_targets: tuple[str, ...] = Field(
        (), description="Where runs are timed and priced; their work is kept if any is."
    )
    pilots: str = Field("pilots", description="The experiment whose first arm says what skill is.")
    untrained: bool = Field(
        False, description="Whether runs begin with an evaluation of the untrained policy."
    )
    run_s: float | None = Field(
        None, description="About how many processor seconds a run takes, where it is no run of 50 rounds."
    )
    paper: Paper | None = Field(None, description="Whose hyperparameters the recipe is compared with.")
    reasons: dict[str, str] = Field(
        {}, description="Why the recipe differs from that paper's table, by path, where it is not for all."
    )
    follows: str = Field(
        "", description="The experiment that asked this before a repair; its runs and verdicts stay."
    )
    beside: str = Field(
        "", description="The paper's own figures, shown beside ours, with the reason of a difference."
    )

    @model_validator(mode="after")
    def names_exist(self) -> Self:
        arms, environments = {arm.name for arm in self.arms}, {one.environment for one in self.settings}
        if len(arms) != len(self.arms) or len(environments) != len(self.settings):
            raise ValueError("names of arms and of environments must be different from each other")
        for setting in self.settings:
            if unknown := {*(setting.arms or ()), *setting.fewer, *setting.own} - arms:
                raise ValueError(f"{setting.environment} names arms that are not there: {sorted(unknown)}")
        if sum(getattr(claim, "primary", False) for claim in self.claims) > 1:
            raise ValueError("an experiment has at most one primary claim")
        for claim in self.claims:
            if arms_in(claim) - arms or set(environments_in(claim)) - environments:
                raise ValueError(f"a claim names an arm or environment that is not there: {claim!r}")
            if isinstance(claim, Cheaper | Better) and (
                {claim.at, claim.against_at} - set(self.pricing_targets)
                or (_needs_target(claim) and set(claim.environments) - self._with_targets(claim))
            ):
                raise ValueError(f"a claim names a pricing target or a return that is not there: {claim!r}")
        if unknown := set(self.pricing_targets) - set(PRICING_TARGETS):
            raise ValueError(f"there are no such pricing targets: {sorted(unknown)}")
        for arm in self.arms:
            if arm.again_of and arm.again_of not in arms:
                raise ValueError(f"{arm.name} repeats an arm that is not there")
            if set(self.needs(arm)) - arms:
                raise ValueError(f"{arm.name} needs an arm that is not there")
            if isinstance(arm.study, RehearsedTraining):
                trained_on = {one.environment for one in self.settings if arm in self.arms_of(one)}
                if trained_on - set(self.training_targets):
                    raise ValueError(f"{arm.name} trains a scheduler for a target that is not there")
        return self

    @model_validator(mode="after")
    def differences_have_reasons(self) -> Self:
        if unexplained := {one.path for _, one in self.differences() if not one.reason}:
            raise ValueError(f"differs from the paper without a reason: {', '.join(sorted(unexplained))}")
        return self

    def differences(self) -> list[tuple[str, HyperparameterDifference]]:
        """What each environment's recipe, before any arm's changes, does not share with the paper's table."""
        if self.paper is None:
            return []
        found = []
        for setting in self.settings:
            own = {"training": {"environment": {"id": setting.environment}}}
            spec = JobSpec.model_validate(merged(merged(self.base, setting.changes), own))
            document = spec.training.model_dump(mode="json")
            found += [(setting.environment, one) for one in differences(document, self.paper, self.reasons)]
        return found

    def _with_targets(self, claim: Cheaper | Better) -> set[str]:
        """Environments with a target by the claim's meter, and one that differences are shares of."""
        reached = set(self.training_targets if claim.meter == "training" else self.targets)
        return reached & set(self.targets) if isinstance(claim, Better) else reached

    @model_validator(mode="after")
    def claims_are_about_places_where_runs_can_be_timed(self) -> Self:
        for claim in self.claims:
            if not isinstance(claim, Cheaper | Better):
                continue
            sides = ((claim.arm, claim.at), *((one, claim.against_at) for one in claim.against))
            for arm, place in sides:
                if any(place not in self.priced_at(arm, name) for name in claim.environments):
                    raise ValueError(
                        f"{arm} cannot be timed at {place}: its versions depend on its calls' times"
                    )
        return self

    def priced_at(self, arm: str, environment: str) -> tuple[str, ...]:
        """The pricing targets where an arm's runs can be timed. Where times decide which gradients a version is made
        of, that is the place where they were trained.
        """
        setting = next(one for one in self.settings if one.environment == environment)
        spec = self.spec(Cell(arm, environment, setting.seeds[0]))
        if spec.training.loop.gradients is None or not spec.training.loop.depends_on_timing:
            return self.pricing_targets
        trained = spec.platform
        return tuple(
            name
            for name in self.pricing_targets
            if trained.is_simulated and PRICING_TARGETS[name].sells(trained.alike)
        )

    @property
    def primary(self) -> Claim | None:
        """The claim that the experiment was made for: the one that says so, else the first."""
        said = (claim for claim in self.claims if getattr(claim, "primary", False))
        return next(said, next(iter(self.claims), None))

    def arm(self, name: str) -> Arm:
        return next(arm for arm in self.arms if arm.name == name)

    def arms_of(self, setting: ExperimentSetting) -> list[Arm]:
        return [arm for arm in self.arms if setting.arms is None or arm.name in setting.arms]

    @staticmethod
    def needs(arm: Arm) -> tuple[str, ...]:
        """The arms whose runs of the same environment have to be complete before one of this arm begins."""
        learned_from = arm.study.recorded if isinstance(arm.study, RehearsedTraining) else ()
        begins_with = arm.study.begin_with if isinstance(arm.study, RehearsedTraining) else None
        named = (arm.spends_like, arm.scheduler, begins_with, *learned_from)
        return tuple(name for name in named if name)

    def needed(self, cell: Cell) -> list[Cell]:
        """Runs that have to be complete before this one. A scheduler is trained once, on the first seed."""
        arm = self.arm(cell.arm)
        setting = next(one for one in self.settings if one.environment == cell.environment)
        cells = []
        for name in self.needs(arm):
            seed = cell.seed if name == arm.spends_like else setting.seeds[0]
            abroad = (
                isinstance(arm.study, RehearsedTraining)
                and name == arm.study.begin_with
                and arm.study.begin_in
            )
            cells.append(Cell(name, abroad or cell.environment, seed))
        return cells

    def cells(self, *, quick: bool = False) -> Iterator[Cell]:
        """Every run, in the order in which they are due: settings as declared, seeds, then arms side by side."""
        for setting in self.settings[:1] if quick else self.settings:
            for place, seed in enumerate(setting.seeds[:QUICK_SEEDS] if quick else setting.seeds):
                for arm in self.arms_of(setting):
                    if place < setting.fewer.get(arm.name, len(setting.seeds)):
                        yield Cell(arm.name, setting.environment, seed)

    def spec(self, cell: Cell, *, quick: bool = False) -> JobSpec:
        """The job that this run trains."""
        arm = self.arm(cell.arm)
        setting = next(one for one in self.settings if one.environment == cell.environment)
        seed = cell.seed + (_AGAIN_SEEDS if arm.again_of else 0)
        own = {"training": {"environment": {"id": cell.environment}, "seed": seed}}
        document = merged(merged(self.base, setting.changes), arm.changes)
        document = merged(merged(document, setting.own.get(arm.name, {})), own)
        if quick:
            document = merged(document, _QUICK)
        document["name"] = f"{cell.arm} · {cell.environment} · {cell.seed}"
        return JobSpec.model_validate(document)

    def evaluation_seeds(self, cell: Cell, *, quick: bool = False) -> list[int]:
        """Held-out seeds of the final evaluation: the same for all arms of a seed, so that arms are paired."""
        first = 1_000_000_000 + cell.seed * _SEED_STRIDE
        return list(range(first, first + (3 if quick else self.final_episodes)))


def _needs_target(claim: Cheaper | Better) -> bool:
    return isinstance(claim, Better) or claim.until == "target"


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


def recipe_hash(spec: JobSpec, study: RehearsedTraining | Branching | Reliability | None = None) -> str:
    """A short name for what was declared of this recipe; a run is never continued with another one."""
    declared = spec.model_dump(mode="json", exclude_unset=True)
    if isinstance(study, RehearsedTraining | Reliability) or (study is not None and study.further):
        declared["study"] = study.model_dump(mode="json")
    document = json.dumps(declared, sort_keys=True)
    return sha256(document.encode()).hexdigest()[:16]


class UnknownExperiment(LookupError):
    """No file of that name; the message says which there are."""


def experiment_names() -> list[str]:
    import research.experiments as folder  # its modules import this one

    return sorted(module.name for module in pkgutil.iter_modules(folder.__path__))


def find_experiment(name: str) -> Experiment:
    """The experiment in the file of that name, or UnknownExperiment."""
    if name not in experiment_names():
        raise UnknownExperiment(
            f"There is no experiment {name!r}; there are: {', '.join(experiment_names())}."
        )
    experiment = importlib.import_module(f"research.experiments.{name}").EXPERIMENT
    assert isinstance(experiment, Experiment)
    return experiment
