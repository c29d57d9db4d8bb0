"""Siren's simulation run again: agents against grid searches, on arithmetic that gives the slides' own grid.

The arithmetic is the grid's fit with 50 epochs, at its price of a function-second for 3,008 MB. How memory changes
speed is not on the slides, so that it is assumed: a core in proportion up to 1,769 MB, a share of the work parallel
beyond.
A setting is a budget and a load, the share of all work that the first epoch does alone by fetching.

Every arm trains for the same epochs, so that the loss is the same. A training that breaks its budget counts as twice
the time of the best fixed numbers of functions and MB. Rows of trained agents are kept: a report trains nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from research.siren_tables import grid_fit, grid_usd_per_function_s
from training.engine.reports import RoundReport
from training.engine.seeds import derive
from training.rl.learner import LearnerState
from training.scheduling.decisions import PICODOLLARS
from training.scheduling.siren.arithmetic_cloud import ArithmeticCloud, ArithmeticRehearsals, rounds_of, speed
from training.scheduling.siren.model import SirenSpec
from training.scheduling.trainer import train_scheduler
from webapp.comparing.papers.figures import RESULTS

Numbers = npt.NDArray[np.float64]
EPOCHS = 50
GRID_MB = 3008
BUDGETS = (300, 200, 100, 50)
LOADS = (0.0, 0.37)
SEEDS = 10
DRAWS = 200
FUNCTIONS = tuple(int(n) for n in np.unique(np.geomspace(20, 3000, 120).round()))
SIZES_MB = (512, 768, 1024, 1280, 1536, 1769, 2048, 2560, 3008)
_CHANCES = 100
_SURE = 0.95
_JUDGED_EVERY = 800
_LOSSES = tuple(float(loss) for loss in np.geomspace(1.0, 0.01, EPOCHS))
_RECORDED = [(functions, memory_mb) for functions in (50, 200, 800) for memory_mb in (1024, 3008)]
ROWS = RESULTS / "siren_agent" / "agents.jsonl"


@dataclass(frozen=True)
class AgentSetting:
    budget: int
    load: float

    @property
    def cloud(self) -> ArithmeticCloud:
        return cloud_of(self.load)


SETTINGS = tuple(AgentSetting(budget, load) for load in LOADS for budget in BUDGETS)


def cloud_of(
    load: float,
    *,
    parallel_share: float = 0.3,
    fetch_share: float = 0.0,
    fixed: float = 1.0,
    spread: float = 0.03,
) -> ArithmeticCloud:
    """Return arithmetic that gives the grid's rows at 3,008 MB, whatever is assumed. `fixed` scales the fixed time."""
    fit = grid_fit()
    work_s = fit.shared_s * (1.0 - load) / EPOCHS
    cores = float(speed(np.array(float(GRID_MB)), parallel_share))
    return ArithmeticCloud(
        losses=_LOSSES,
        compute_s=work_s * (1.0 - fetch_share) * cores,
        fetch_s=work_s * fetch_share,
        load_s=fit.shared_s * load,
        fixed_s=fixed * fit.fixed_s / EPOCHS,
        usd_per_mb_s=grid_usd_per_function_s(100) / GRID_MB,
        parallel_share=parallel_share,
        spread=spread,
        sizes_mb=SIZES_MB,
    )


def drawn_clouds(load: float) -> Iterator[ArithmeticCloud]:
    """Yield clouds with what is assumed drawn from its range."""
    rng = np.random.default_rng(0)
    for _ in range(DRAWS):
        yield cloud_of(
            load * rng.uniform(0.8, 1.2),
            parallel_share=rng.uniform(0.0, 0.7),
            fetch_share=rng.uniform(0.0, 0.3),
            fixed=rng.uniform(0.9, 1.1),
            spread=rng.uniform(0.01, 0.1),
        )


def spec_of(seed: int, *, rehearsals: int = 6400) -> SirenSpec:
    """Return the agent's settings: the same for all budgets."""
    return SirenSpec(
        actors_min=FUNCTIONS[0],
        actors_max=FUNCTIONS[-1],
        memory_min_mb=SIZES_MB[0],
        memory_max_mb=SIZES_MB[-1],
        rehearsals=rehearsals,
        episodes=0,
        target_loss=_LOSSES[-1] * 1.0001,
        rounds=EPOCHS,
        algorithm_kind="ppo",
        learning_rate=0.006,
        seed=seed,
    )


class FunctionsPlan(NamedTuple):
    """Fixed numbers; the first epoch may have its own number of functions."""

    functions: int
    memory_mb: int
    first: int


class PlayedTrainings(NamedTuple):
    """Trainings with different chance: their times, dollars, and whether they kept to the budget."""

    seconds: Numbers
    usd: Numbers
    kept: npt.NDArray[np.bool_]


def chances(seed: int) -> Numbers:
    return np.random.default_rng(derive(seed, "chances")).standard_normal((_CHANCES, EPOCHS))


def play(cloud: ArithmeticCloud, plan: FunctionsPlan, budget: float, normals: Numbers) -> PlayedTrainings:
    """Return whole trainings with that plan, each with a row of `normals`."""
    first = cloud.epochs(1, plan.first, plan.memory_mb, normals[:, 0])
    later = cloud.epochs(2, plan.functions, plan.memory_mb, normals[:, 1:])
    seconds, usd = first.total_s + later.total_s.sum(axis=1), first.usd + later.usd.sum(axis=1)
    return PlayedTrainings(seconds, usd, usd <= budget)


def search(
    setting: AgentSetting, sizes_mb: Sequence[int], *, own_first: bool = False
) -> tuple[FunctionsPlan, float] | None:
    """Return the quickest plan of the grid that keeps to the budget in 95 % of chances, and the dollars of trying all
    of it once, each to its end or its budget. None if there is none.
    """
    best: tuple[float, FunctionsPlan] | None = None
    tried, normals = 0.0, chances(-1)
    for memory_mb in sizes_mb:
        for functions in FUNCTIONS:
            for first in FUNCTIONS[::6] if own_first else (functions,):
                plan = FunctionsPlan(functions, memory_mb, first)
                played = play(setting.cloud, plan, setting.budget, normals)
                tried += float(np.minimum(played.usd, setting.budget).mean())
                if played.kept.mean() >= _SURE and (best is None or played.seconds.mean() < best[0]):
                    best = float(played.seconds.mean()), plan
    return None if best is None else (best[1], tried)


def counted_s(played: PlayedTrainings, twice_of_s: float) -> float:
    """Return the mean time; a training that broke its budget counts as twice that of the best fixed numbers."""
    return float(np.where(played.kept, played.seconds, 2.0 * twice_of_s).mean())


def train(setting: AgentSetting, seed: int, spec: SirenSpec) -> bytes:
    """Return the weights of an agent trained on arithmetic that was fitted to six recorded trainings."""
    recorded = [rounds_of(setting.cloud, [plan] * EPOCHS) for plan in _RECORDED]
    return best_agent(spec, recorded, setting.budget * PICODOLLARS, seed)[0]


def best_agent(
    spec: SirenSpec, recorded: Sequence[Sequence[RoundReport]], budget: int, seed: int
) -> tuple[bytes, list[float]]:
    """Return the weights of an agent: of several on the way, the one that scored best without exploring, over chances
    of its own. And the scores of all its rehearsals.
    """
    stage = spec.rehearsing(recorded)
    chosen = [derive(seed, "chosen", chance) for chance in range(_CHANCES)]
    best: tuple[float, bytes] | None = None
    scores: list[float] = []
    for step in train_scheduler(spec, lambda policy, seed: [], recorded=recorded, budget_picodollars=budget):
        scores.append(step.score)
        if step.number % _JUDGED_EVERY == 0 and 2 * step.number >= spec.rehearsals:
            weights = LearnerState.decode(step.state).actor_weights(spec.network)
            played = stage.play(weights, chosen, budget, explore=False)
            score = float(np.mean([episode.score for episode in played]))
            if best is None or score > best[0]:
                best = score, weights
    assert best is not None
    return best[1], scores


def recorded_usd(setting: AgentSetting) -> float:
    """Return the dollars of the trainings that its rehearsals were fitted to."""
    rounds = [report for plan in _RECORDED for report in rounds_of(setting.cloud, [plan] * EPOCHS)]
    return sum(report.cost_picodollars for report in rounds) / PICODOLLARS


def judge_agent(
    weights: bytes, cloud: ArithmeticCloud, setting: AgentSetting, spec: SirenSpec, seeds: Sequence[int]
) -> tuple[PlayedTrainings, tuple[int, ...]]:
    """Return trainings that the agent decided without exploring, and the functions of the first one."""
    stage = ArithmeticRehearsals(cloud, spec, spec.decisions([]))
    played = stage.play(weights, seeds, setting.budget * PICODOLLARS, explore=False)
    kept = np.array([episode.reached for episode in played])
    return PlayedTrainings(
        np.array([episode.platform_s for episode in played]),
        np.array([episode.cost_picodollars / PICODOLLARS for episode in played]),
        kept,
    ), played[0].actors


def row_of(setting: AgentSetting, seed: int, fixed: FunctionsPlan, spec: SirenSpec) -> dict[str, Any]:
    """Train an agent and return how it and the fixed numbers did: on the cloud it was trained for, and how often it
    took less time over clouds that were drawn.
    """
    weights = train(setting, seed, spec)
    seeds = [derive(seed, "judged", chance) for chance in range(_CHANCES)]
    own, actors = judge_agent(weights, setting.cloud, setting, spec, seeds)
    faster = kept_by_agent = kept_by_fixed = 0
    for number, cloud in enumerate(drawn_clouds(setting.load)):
        one, _ = judge_agent(weights, cloud, setting, spec, seeds[number % _CHANCES : number % _CHANCES + 1])
        normals = _normals_of(seeds[number % _CHANCES : number % _CHANCES + 1])
        other = play(cloud, fixed, setting.budget, normals)
        kept_by_agent += int(one.kept[0])
        kept_by_fixed += int(other.kept[0])
        faster += int(one.kept[0] and (not other.kept[0] or one.seconds[0] < other.seconds[0]))
    return {
        "budget": setting.budget,
        "load": setting.load,
        "seed": seed,
        "recipe": recipe_of(spec),
        "seconds": [round(float(value), 2) for value in own.seconds],
        "usd": [round(float(value), 4) for value in own.usd],
        "kept": [bool(value) for value in own.kept],
        "faster_in": faster,
        "kept_in": kept_by_agent,
        "fixed_kept_in": kept_by_fixed,
        "first": actors[0],
        "second": actors[1],
        "last": actors[-1],
    }


def _normals_of(seeds: Sequence[int]) -> Numbers:
    """Return the chance that rehearsals with these seeds have: after the noise of their decisions."""
    normals = []
    for seed in seeds:
        rng = np.random.Generator(np.random.PCG64(seed))
        rng.standard_normal((EPOCHS, 2), dtype=np.float32)
        normals.append(rng.standard_normal(EPOCHS))
    return np.stack(normals)


def judged_normals(seed: int) -> Numbers:
    """Return the chance that the agent of that seed is judged with, for the other arms."""
    return _normals_of([derive(seed, "judged", chance) for chance in range(_CHANCES)])


def recipe_of(spec: SirenSpec) -> str:
    """Return a short hash of the agent's settings, but for its seed, and of what is assumed of the cloud."""
    cloud = cloud_of(0.5)
    settings = spec.model_dump(mode="json", exclude={"seed"}, exclude_defaults=True)
    work = [cloud.compute_s, cloud.fixed_s, cloud.load_s, cloud.usd_per_mb_s, cloud.spread]
    document = {
        "agent": settings,
        "work": [f"{one:.6g}" for one in work],
        "epochs": EPOCHS,
        "sizes": SIZES_MB,
        "judged_every": _JUDGED_EVERY,
    }
    return sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:12]


def rows(path: Path = ROWS) -> dict[tuple[int, float, int], dict[str, Any]]:
    """Return the kept rows of this recipe by budget, load and seed."""
    if not path.exists():
        return {}
    recipe = recipe_of(spec_of(0))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["budget"], row["load"], row["seed"]): row for row in lines if row["recipe"] == recipe}


def run_missing(path: Path = ROWS) -> None:
    """Train the agents that are missing, one row appended each, so that it continues where it was stopped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fixed: dict[AgentSetting, FunctionsPlan | None] = {}
    for seed in range(SEEDS):
        for setting in SETTINGS:
            if (setting.budget, setting.load, seed) in rows(path):
                continue
            if setting not in fixed:
                best = search(setting, SIZES_MB)
                fixed[setting] = best[0] if best else None
            plan = fixed[setting] or FunctionsPlan(FUNCTIONS[0], SIZES_MB[0], FUNCTIONS[0])
            row = row_of(setting, seed, plan, spec_of(seed))
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
