"""Trainings of models on the simulated cloud: how Siren's loop learns, what it sends, and what it takes and costs.

A rate is chosen for every loop by itself, among `RATES`, on a seed that is not judged. Each run is stored as a row, so
that a report trains nothing; `run_missing` continues where it was stopped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from cloud.simulated_options import SimulatedOptions
from training.messages import Evaluated, RoundFinished
from training.tasks.supervised_spec import Supervised
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.papers.figures import RESULTS

SEEDS = tuple(range(5))
PILOT_SEED = 100
ROWS = RESULTS / "siren_descent" / "runs.jsonl"
Loop = Literal["hybrid", "bulk_synchronous", "fully_asynchronous"]
DataSet = Literal["digits", "flights"]
Rows = Mapping[tuple[str, int], dict[str, Any]]

_TRAININGS: dict[DataSet, dict[str, Any]] = {
    "digits": {
        "data": "digits",
        "model": {"kind": "logistic", "l2": 1e-4},
        "minibatch": 8,
        "stop": {"rounds": 10},
    },
    "flights": {
        "data": "flights",
        "model": {"kind": "click_through", "l2": 0.0},
        "minibatch": 256,
        "local_steps": 2,
        "stop": {"rounds": 2},
    },
}
Tuned = tuple[DataSet, Loop, int, int | None]
"""What has rates of its own: data, loop, functions, and local steps if they are not the usual ones."""
RATES: dict[Tuned, tuple[float, ...]] = {
    ("digits", "hybrid", 20, None): (0.05, 0.1, 0.2, 0.4, 0.8),
    ("digits", "bulk_synchronous", 20, None): (1.0, 2.0, 4.0, 8.0, 16.0),
    ("flights", "hybrid", 20, None): (0.05, 0.1, 0.2),
    ("flights", "bulk_synchronous", 20, None): (1.0, 2.0, 4.0, 8.0),
    ("digits", "hybrid", 150, None): (0.01, 0.02, 0.05, 0.1, 0.2),
    **{("flights", "hybrid", 20, steps): (0.05, 0.1, 0.2, 0.4) for steps in (8, 16, 32)},
}
"""One step with the mean of 20 pushes is 20 times as short as 20 steps, so that its rates are 20 times as high."""


@dataclass(frozen=True)
class Arm:
    """With more `local_steps` the rate is as many times smaller, so that a push is as long."""

    data: DataSet
    loop: Loop = "hybrid"
    functions: int = 20
    significance: float = 0.0
    local_steps: int | None = None
    profile: str = "lambda"

    @property
    def name(self) -> str:
        parts = [self.data, self.loop, f"{self.functions} functions"]
        parts += [f"filter {self.significance:g}"] if self.significance else []
        parts += [f"{self.local_steps} local steps"] if self.local_steps else []
        parts += [self.profile] if self.profile != "lambda" else []
        return ", ".join(parts)

    @property
    def tuned(self) -> Arm:
        """The arm whose rate it has: with that loop and as many local steps, and as many functions if they have a rate
        of their own.
        """
        loop: Loop = "bulk_synchronous" if self.loop == "bulk_synchronous" else "hybrid"
        functions = self.functions if (self.data, loop, self.functions, self.local_steps) in RATES else 20
        return Arm(self.data, loop, functions, local_steps=self.local_steps)

    @property
    def rates(self) -> tuple[float, ...]:
        """What its rate is chosen from."""
        tuned = self.tuned
        return RATES[tuned.data, tuned.loop, tuned.functions, tuned.local_steps]

    def document(self, rate: float) -> dict[str, Any]:
        """Return its training as a spec's document, without a seed."""
        document: dict[str, Any] = {
            **_TRAININGS[self.data],
            "optimiser": {"kind": "sgd", "learning_rate": rate},
            "significance": self.significance,
            "loop": {"kind": self.loop},
            "scaling": {"kind": "fixed", "actors": self.functions},
        }
        if self.local_steps:
            usual = document.get("local_steps", 1)
            document["local_steps"] = self.local_steps
            document["optimiser"]["learning_rate"] = rate * usual / self.local_steps
        return document

    def job(self, seed: int, rate: float) -> JobSpec:
        learner: Literal["server", "function"] = "function" if self.profile == "lambda" else "server"
        return JobSpec(
            name=self.name,
            training=Supervised.model_validate({**self.document(rate), "seed": seed}),
            platform=SimulatedOptions(profile=self.profile, learner=learner, seed=seed, workers=1),
            budget_usd=Decimal(10),
        )


def _compared(data: DataSet) -> tuple[Arm, Arm]:
    return Arm(data), Arm(data, loop="bulk_synchronous")


ARMS: tuple[Arm, ...] = (
    *_compared("digits"),
    *_compared("flights"),
    Arm("digits", functions=150),
    Arm("flights", local_steps=8),
    Arm("flights", significance=0.02),
    Arm("flights", functions=16, profile="one-machine"),
    Arm("digits", loop="fully_asynchronous"),
    *(Arm("flights", local_steps=steps) for steps in (16, 32)),
    *(Arm("flights", significance=share) for share in (0.1, 0.5)),
    Arm("flights", local_steps=32, significance=0.1),
)
"""In the order in which they are run: what is judged first comes first. The last five were added when eight local steps
and the filter at 2 % had pushed less than five times fewer bytes.
"""


def key_of(arm: Arm, seed: int, rate: float) -> tuple[str, int]:
    """Return what a row is found by: a hash of its training and its place, and its seed. No data is read for it."""
    recipe = {"training": arm.document(rate), "profile": arm.profile}
    return sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12], seed


def run(arm: Arm, seed: int, rate: float) -> dict[str, Any]:
    """Train once and return its row."""
    headless = Headless(arm.job(seed, rate))
    losses: list[float] = []
    pushed, seconds, stale = 0, 0.0, 0
    for event in headless.events():
        if isinstance(event, Evaluated):
            losses.append(round(float(event.figures.score or 0.0), 6))
        elif isinstance(event, RoundFinished):
            figures: Any = event.report.figures
            pushed += figures.pushed_bytes
            stale = max(stale, figures.staleness_most)
            seconds = event.report.started_s + event.report.total_s
    return {
        "recipe": key_of(arm, seed, rate)[0],
        "seed": seed,
        "arm": asdict(arm),
        "rate": rate,
        "losses": losses,
        "pushed_bytes": pushed,
        "seconds": round(seconds, 3),
        "usd": round(headless.spent_picodollars / PICODOLLARS_PER_USD, 8),
        "staleness": stale,
    }


def read_rows(path: Path = ROWS) -> Rows:
    if not path.exists():
        return {}
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return {(one["recipe"], one["seed"]): one for one in found}


def rate_of(arm: Arm, rows: Rows) -> float | None:
    """Return the rate with the lowest final loss in its pilots; None while one of them is missing."""
    tuned = arm.tuned
    pilots = {rate: rows.get(key_of(tuned, PILOT_SEED, rate)) for rate in tuned.rates}
    finals = {rate: _final(row) for rate, row in pilots.items() if row is not None}
    return min(finals, key=lambda rate: finals[rate]) if len(finals) == len(tuned.rates) else None


def _final(row: Mapping[str, Any]) -> float:
    """Return its last loss; a training that ended before has none, which is the worst."""
    return float(row["losses"][-1]) if row["losses"] else float("inf")


def kept(arm: Arm, rows: Rows) -> dict[int, dict[str, Any]]:
    """Return the arm's judged rows by their seed."""
    rate = rate_of(arm, rows)
    found = {} if rate is None else {seed: rows.get(key_of(arm, seed, rate)) for seed in SEEDS}
    return {seed: row for seed, row in found.items() if row is not None}


def missing(rows: Rows) -> Iterator[tuple[Arm, int, float]]:
    """Yield what is to be trained next: pilots of an arm before its seeds."""
    for arm in ARMS:
        rate = rate_of(arm, rows)
        if rate is None:
            tuned = arm.tuned
            yield from (
                (tuned, PILOT_SEED, one) for one in tuned.rates if key_of(tuned, PILOT_SEED, one) not in rows
            )
            return
        for seed in SEEDS:
            if key_of(arm, seed, rate) not in rows:
                yield arm, seed, rate


def run_missing(path: Path = ROWS) -> None:
    """Train what is missing, a row appended each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while (wanted := next(missing(read_rows(path)), None)) is not None:
        row = run(*wanted)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
