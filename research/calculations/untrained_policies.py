"""Untrained policies at every target in use: 20 seeds of each environment, none of them judged or a pilot's.

A row holds one policy's episodes: with its best actions, as evaluations have them, and with drawn ones, as training
has. Rows are kept in `research/results/untrained_policies/`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from research.calculation import Calculation, ResultTable, Statement
from research.claims import Meter
from research.experiment import Cell, experiment_names, find_experiment
from research.runs.seed_run import drawn_returns, untrained_returns
from research.skill import targets_by_meter
from webapp.comparing.papers.figures import RESULTS
from webapp.jobs.spec import JobSpec

ROWS = RESULTS / "untrained_policies" / "runs.jsonl"
SEEDS = tuple(range(700, 720))
# No round of any experiment has fewer.
EPISODES = 3
READINGS = 10
IN_A_ROW = 3
Row = Mapping[str, Any]


class Asked(NamedTuple):
    """A target by its meter, and the experiments that have it."""

    environment: str
    meter: Meter
    target: float
    experiments: tuple[str, ...]


def targets_in_use() -> list[Asked]:
    found: dict[tuple[str, Meter, float], list[str]] = {}
    for name in experiment_names():
        for meter, targets in targets_by_meter(find_experiment(name)):
            for environment, target in targets.items():
                found.setdefault((environment, meter, target), []).append(name)
    return [Asked(*key, tuple(names)) for key, names in sorted(found.items())]


def spec_of(environment: str, seed: int) -> JobSpec:
    """The pilots' recipe, whose network is that of the experiments, with the seed of an untrained policy."""
    pilots = find_experiment("pilots")
    spec = pilots.spec(Cell(pilots.arms[0].name, environment, seed))
    return spec.model_copy(update={"name": f"untrained · {environment} · {seed}"})


def run_missing() -> None:
    """Play what is missing. Each policy is stored as a row, so that it goes on where it was stopped."""
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    there = {(row["environment"], row["seed"]) for row in rows()}
    for environment in sorted({target.environment for target in targets_in_use()}):
        for seed in SEEDS:
            if (environment, seed) not in there:
                with ROWS.open("a") as file:
                    file.write(json.dumps(_row(environment, seed)) + "\n")


def _row(environment: str, seed: int) -> dict[str, Any]:
    spec, episodes = spec_of(environment, seed), EPISODES * READINGS
    first = 2_000_000_000 + seed * 10_000
    evaluated, _ = untrained_returns(spec, list(range(first, first + episodes)))
    by_meter = {"evaluation": evaluated, "training": drawn_returns(spec, episodes)}
    return {"environment": environment, "seed": seed} | {
        meter: [round(one, 3) for one in returns] for meter, returns in by_meter.items()
    }


def rows() -> list[Row]:
    return [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.exists() else []


def best_held(returns: Sequence[float], meter: Meter) -> float:
    """Return the highest return that a policy held. Evaluations repeat their seeds, so that one reading is held for
    ever; in training it must come three times in a row.
    """
    readings = np.asarray(returns).reshape(-1, EPISODES).mean(axis=1)
    width = 1 if meter == "evaluation" else IN_A_ROW
    return float(np.lib.stride_tricks.sliding_window_view(readings, width).min(axis=1).max())


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    stored = rows()
    table: list[tuple[str | float, ...]] = []
    statements = []
    for asked in targets_in_use():
        own = [row[asked.meter] for row in stored if row["environment"] == asked.environment]
        if not own:
            continue
        held = [best_held(returns, asked.meter) for returns in own]
        reached = sum(one >= asked.target for one in held)
        mean = float(np.mean(own))
        table.append(
            (
                asked.environment,
                asked.meter,
                asked.target,
                float(reached),
                float(len(held)),
                mean,
                max(held),
                ", ".join(asked.experiments),
            )
        )
        by = "" if asked.meter == "evaluation" else " in training"
        statements.append(
            Statement(
                f"No untrained policy reaches {asked.target:,.0f}{by} on {asked.environment}.".replace(
                    " -", " −"
                ),
                "holds" if reached == 0 and len(held) >= len(SEEDS) else "does not hold",
                f"{reached} of {len(held)} seeds do; they return {mean:,.1f} on average and hold {max(held):,.1f} at"
                f" most. Asked by {', '.join(asked.experiments)}.".replace(" -", " −"),
                "learned",
            )
        )
    statements.sort(key=lambda one: one.verdict == "holds")
    columns = (
        "environment",
        "meter",
        "target",
        "reached",
        "seeds",
        "mean return",
        "most held",
        "experiments",
    )
    note = (
        f"{READINGS} readings of {EPISODES} episodes for each policy. Evaluations take the best action and repeat their"
        f" seeds, so that one reading at the target counts; in training it takes {IN_A_ROW} in a row."
    )
    return (
        [ResultTable("Targets and untrained policies", columns, tuple(table), note)] if table else []
    ), statements


CALCULATION = Calculation(
    title="Untrained policies at every target",
    question="Does a policy before its first update reach any target that an experiment counts time or money to?",
    oracle=(
        "With drawn actions untrained policies must score what random ones do: CartPole about 20, Hopper below 50. With"
        " their best action they may stand still, which HalfCheetah pays about 0 for."
    ),
    can_claim="Which targets ask for nothing. Whether one asks for enough is said by the pilots.",
    compute=compute,
    prepare=run_missing,
)
