"""Trainings of models on the simulated cloud: how Siren's loop learns, what it sends, and what it takes and costs.

A rate is chosen for every loop by itself, among `RATES`, on seeds that are not judged. Each run is stored as a row, so
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

from cloud.platforms.simulated_options import SimulatedOptions
from training.engine.messages import Evaluated, RoundFinished
from training.tasks.supervised_spec import Supervised
from webapp.comparing.papers.figures import RESULTS
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD

SEEDS = tuple(range(5))
PILOT_SEED = 100
MORE_PILOT_SEEDS = (101, 102)
NEAR = 1.1
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


@dataclass(frozen=True)
class DescentArm:
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
    def tuned(self) -> DescentArm:
        """The arm whose rate it has: itself, or that with the loop as it usually is."""
        loop: Loop = "bulk_synchronous" if self.loop == "bulk_synchronous" else "hybrid"
        return self if self in RATES else DescentArm(self.data, loop)

    @property
    def rates(self) -> tuple[float, ...]:
        """What its rate is chosen from."""
        return RATES[self.tuned]

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


def _compared(data: DataSet) -> tuple[DescentArm, DescentArm]:
    return DescentArm(data), DescentArm(data, loop="bulk_synchronous")


SPARING: tuple[DescentArm, ...] = (
    *(DescentArm("flights", local_steps=steps) for steps in (8, 16, 32)),
    *(DescentArm("flights", significance=share) for share in (0.02, 0.1, 0.5)),
    DescentArm("flights", local_steps=32, significance=0.1),
)
"""What pushes less. Eight steps and the filter at 2 % came first; as they pushed less than five times fewer bytes, the
others were added.
"""
ARMS: tuple[DescentArm, ...] = (
    *_compared("digits"),
    *_compared("flights"),
    DescentArm("digits", functions=150),
    *SPARING,
    DescentArm("flights", functions=16, profile="one-machine"),
    DescentArm("digits", loop="fully_asynchronous"),
)
"""In the order in which they are run: what is judged first comes first."""
RATES: dict[DescentArm, tuple[float, ...]] = {
    DescentArm("digits"): (0.05, 0.1, 0.2, 0.4, 0.8),
    DescentArm("digits", loop="bulk_synchronous"): (1.0, 2.0, 4.0, 8.0, 16.0),
    DescentArm("flights"): (0.05, 0.1, 0.2),
    DescentArm("flights", loop="bulk_synchronous"): (1.0, 2.0, 4.0, 8.0),
    DescentArm("digits", functions=150): (0.01, 0.02, 0.05, 0.1, 0.2),
    **{arm: (0.0125, 0.025, 0.05, 0.1) if arm.significance else (0.05, 0.1, 0.2, 0.4) for arm in SPARING},
}
"""One step with the mean of 20 pushes is 20 times as short as 20 steps, so that its rates are 20 times as high."""


def key_of(arm: DescentArm, seed: int, rate: float) -> tuple[str, int]:
    """Return what a row is found by: a hash of its training and its place, and its seed. No data is read for it."""
    recipe = {"training": arm.document(rate), "profile": arm.profile}
    return sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12], seed


def run(arm: DescentArm, seed: int, rate: float) -> dict[str, Any]:
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
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["recipe"], row["seed"]): row for row in lines}


def wanted_pilots(arm: DescentArm, rows: Rows) -> list[tuple[float, int]]:
    """Return the rates and seeds that are still to be tried: each rate on one seed, then those that ended within a
    tenth of the best on two more, as a rate may be near to diverging.
    """
    tuned = arm.tuned
    first = [rate for rate in tuned.rates if key_of(tuned, PILOT_SEED, rate) not in rows]
    if first:
        return [(rate, PILOT_SEED) for rate in first]
    near = _near(tuned, rows)
    more = [(rate, seed) for rate in near for seed in MORE_PILOT_SEEDS] if len(near) > 1 else []
    return [(rate, seed) for rate, seed in more if key_of(tuned, seed, rate) not in rows]


def rate_of(arm: DescentArm, rows: Rows) -> float | None:
    """Return the rate whose worst pilot ended lowest; None while one of them is missing."""
    if wanted_pilots(arm, rows):
        return None
    return min(_near(arm.tuned, rows), key=lambda rate: max(piloted(arm.tuned, rate, rows)))


def piloted(tuned: DescentArm, rate: float, rows: Rows) -> list[float]:
    """Return the final losses of a rate's pilots."""
    rows_of_pilots = [rows.get(key_of(tuned, seed, rate)) for seed in (PILOT_SEED, *MORE_PILOT_SEEDS)]
    return [_final(row) for row in rows_of_pilots if row is not None]


def _near(tuned: DescentArm, rows: Rows) -> list[float]:
    finals = {rate: _final(rows[key_of(tuned, PILOT_SEED, rate)]) for rate in tuned.rates}
    return [rate for rate in tuned.rates if finals[rate] <= NEAR * min(finals.values())]


def _final(row: Mapping[str, Any]) -> float:
    """Return its last loss; a training that ended before has none, which is the worst."""
    return float(row["losses"][-1]) if row["losses"] else float("inf")


def kept(arm: DescentArm, rows: Rows) -> dict[int, dict[str, Any]]:
    """Return the arm's judged rows by their seed."""
    rate = rate_of(arm, rows)
    by_seed = {} if rate is None else {seed: rows.get(key_of(arm, seed, rate)) for seed in SEEDS}
    return {seed: row for seed, row in by_seed.items() if row is not None}


def missing(rows: Rows) -> Iterator[tuple[DescentArm, int, float]]:
    """Yield what is to be trained next: pilots of an arm before its seeds."""
    for arm in ARMS:
        rate = rate_of(arm, rows)
        if rate is None:
            yield from ((arm.tuned, seed, one) for one, seed in wanted_pilots(arm, rows))
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
