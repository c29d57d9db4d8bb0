"""Siren's test bed run again: functions whose numbers an agent changes, fixed numbers, servers that run our engine, and
scikit-learn's SGD on one machine.

All train until a held-out loss is reached: `MORE` above that of the smallest server after its epochs, on a seed that is
not judged. An agent has the money that a server took on average, with or without the server's start. It rehearses on
arithmetic fitted to four recorded trainings, as agents of a project do. Here is what is trained and what its rows say;
`siren_testbed_runs.py` trains.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import total
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers.machines import machine
from cloud.timing.virtual_time import NS
from research.pricing_targets import machine_start_s
from training.engine.reports import RoundReport
from training.scheduling.siren.arithmetic_cloud import ArithmeticCloud
from training.scheduling.siren.model import SirenWorkload
from training.tasks.supervised_spec import Supervised
from webapp.comparing.papers.figures import RESULTS
from webapp.money.amounts import PICODOLLARS_PER_USD

SEEDS = tuple(range(5))
PILOT_SEED = 100
MORE = 1.01
PLENTY_USD = Decimal(10)
ROWS = RESULTS / "siren_testbed" / "runs.jsonl"
SERVERS = ("m4.large", "m4.xlarge", "m4.2xlarge", "c5.2xlarge")
FIXED = (2, 8, 32)
FIXED_SEEDS = (0, 1)
FIXED_MB = 1769
LIBRARY_RATES = (0.001, 0.003, 0.01, 0.03)
REHEARSALS = 6400
SIZES_MB = (512, 768, 1024, 1280, 1536, 1769, 2048, 2560, 3008)
WorkName = Literal["flights", "glyphs"]
Account = Literal["started", "running"]
"""Whether a server has to start, or runs already."""
Rows = Mapping[tuple[str, int], dict[str, Any]]


@dataclass(frozen=True)
class TestbedWork:
    """`usual_epochs` are those after which the smallest server has the loss to reach; arms have `most_epochs`. An agent
    has `most_functions`: with more, old pushes let LeNet diverge, which its rehearsals know nothing of.
    """

    training: Mapping[str, Any]
    usual_epochs: int
    most_epochs: int
    most_functions: int


WORKS: dict[WorkName, TestbedWork] = {
    "flights": TestbedWork(
        {
            "data": "flights",
            "model": {"kind": "click_through", "l2": 0.0},
            "optimiser": {"kind": "sgd", "learning_rate": 0.1},
            "minibatch": 256,
            "local_steps": 2,
        },
        usual_epochs=2,
        most_epochs=4,
        most_functions=32,
    ),
    "glyphs": TestbedWork(
        {
            "data": "glyphs_small",
            "model": {"kind": "lenet"},
            "optimiser": {"kind": "sgd", "learning_rate": 0.05},
            "minibatch": 16,
        },
        usual_epochs=2,
        most_epochs=4,
        most_functions=8,
    ),
}


@dataclass(frozen=True)
class TestbedArm:
    """A server by its SKU, fixed functions, `scikit-learn`, or an agent with the money of the server `money`."""

    work: WorkName
    place: str = "functions"
    functions: int = 0
    memory_mb: int = FIXED_MB
    money: str = ""
    account: Account = "started"

    @property
    def name(self) -> str:
        if self.money:
            return f"the agent, for the bill of {self.money}{'' if self.account == 'started' else ' without its start'}"
        return (
            self.place
            if self.place != "functions"
            else f"{self.functions} functions of {self.memory_mb:,} MB"
        )

    def training(self, seed: int) -> Supervised:
        work = WORKS[self.work]
        document = {**work.training, "stop": {"rounds": work.most_epochs}, "seed": seed}
        document["scaling"] = {"kind": "fixed", "actors": max(1, self.functions)}
        document["calls"] = {"memory_mb": self.memory_mb}
        return Supervised.model_validate(document)

    def options(self, seed: int) -> SimulatedOptions:
        """Return where it runs: a server has a worker on each core. A core of every server is as quick as a c5's."""
        if self.place == "functions":
            return SimulatedOptions(learner="function", seed=seed, workers=1)
        return SimulatedOptions(profile="one-machine", learner_sku=self.place, seed=seed, workers=1)


def server(work: WorkName, sku: str) -> TestbedArm:
    return TestbedArm(work, sku, functions=machine(sku).vcpu)


def fixed_arms(work: WorkName) -> list[TestbedArm]:
    return [TestbedArm(work, functions=functions) for functions in FIXED]


def library_arm(work: WorkName) -> TestbedArm:
    return TestbedArm(work, "scikit-learn")


def agent_arms(work: WorkName) -> list[TestbedArm]:
    accounts: tuple[Account, ...] = ("started", "running")
    return [TestbedArm(work, money=sku, account=account) for account in accounts for sku in SERVERS]


def recorded_arms(work: WorkName) -> list[TestbedArm]:
    """Return what an agent's rehearsals are fitted to: few and many functions with little and much memory."""
    most = WORKS[work].most_functions
    plans = [(n, mb) for n in (max(1, most // 8), most) for mb in (SIZES_MB[0], SIZES_MB[-1])]
    return [TestbedArm(work, functions=functions, memory_mb=memory_mb) for functions, memory_mb in plans]


def workload(work: WorkName, *, aim: float, seed: int) -> SirenWorkload:
    return SirenWorkload(
        workload=TestbedArm(work).training(0),
        sizes_mb=SIZES_MB,
        actors_min=1,
        actors_max=WORKS[work].most_functions,
        memory_min_mb=SIZES_MB[0],
        memory_max_mb=SIZES_MB[-1],
        rehearsals=REHEARSALS,
        episodes=0,
        target_loss=aim,
        rounds=WORKS[work].most_epochs,
        algorithm_kind="ppo",
        learning_rate=0.006,
        seed=seed,
    )


def key_of(arm: TestbedArm, seed: int, money_usd: float = 0.0) -> tuple[str, int]:
    """Return what a row is found by: a hash of its training, its place and its money, and its seed. Servers with as
    many cores differ in their price alone.
    """
    work = WORKS[arm.work]
    place = arm.place if arm.place in ("functions", "scikit-learn") else "server"
    recipe = [dict(work.training), work.most_epochs, place, arm.functions, arm.memory_mb, arm.account]
    recipe.append(f"{money_usd:.4g}")
    return sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:12], seed


def read_rows_of(path: Path = ROWS) -> Rows:
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["recipe"], row["seed"]): row for row in lines}


# What rows say


@dataclass(frozen=True)
class TrainingEnd:
    """When and for how much a training reached the loss; one that did not has all that it took."""

    epochs: int
    seconds: float
    usd: float
    reached: bool


def reached(row: Mapping[str, Any], target: float) -> TrainingEnd:
    for at, loss in enumerate(row["losses"]):
        if loss <= target:
            return TrainingEnd(at + 1, row["seconds"][at], row["usd"][at], reached=True)
    seconds, usd = ((one or [0.0])[-1] for one in (row["seconds"], row["usd"]))
    return TrainingEnd(len(row["losses"]), seconds, usd, reached=False)


def without_start(end: TrainingEnd) -> TrainingEnd:
    """Return the same of a server that already runs. It pays by the second, so that its start has its share."""
    left = 1.0 - machine_start_s("one-machine") / end.seconds
    return replace(end, seconds=end.seconds * left, usd=end.usd * left)


def at_server(row: Mapping[str, Any], target: float, account: Account) -> TrainingEnd:
    end = reached(row, target)
    return end if account == "started" else without_start(end)


def target_of(work: WorkName, rows: Rows) -> float | None:
    pilot = rows.get(key_of(server(work, SERVERS[0]), PILOT_SEED))
    return None if pilot is None else round(MORE * float(pilot["losses"][WORKS[work].usual_epochs - 1]), 5)


def aim_of(work: WorkName, rows: Rows) -> float:
    """Return what an agent aims at: the same of an epoch's own rows, because a policy sees no held-out loss."""
    pilot = rows[key_of(server(work, SERVERS[0]), PILOT_SEED)]
    score = RoundReport.model_validate(pilot["rounds"][WORKS[work].usual_epochs - 1]).score
    assert score is not None
    return MORE * score


def kept(arm: TestbedArm, rows: Rows) -> dict[int, dict[str, Any]]:
    """Return the arm's judged rows by their seed."""
    money_usd = money_of(arm, rows) if arm.money else 0.0
    if money_usd is None:
        return {}
    by_seed = {seed: rows.get(key_of(arm, seed, money_usd)) for seed in SEEDS}
    own = {seed: row for seed, row in by_seed.items() if row is not None}
    if arm.place not in SERVERS:
        return own
    return {seed: {**row, "usd": rent(arm.place, row["seconds"])} for seed, row in own.items()}


def money_of(arm: TestbedArm, rows: Rows) -> float | None:
    """Return the mean bill of the agent's server; None while one of its trainings is missing."""
    target, own = target_of(arm.work, rows), kept(server(arm.work, arm.money), rows)
    if target is None or len(own) < len(SEEDS):
        return None
    return float(np.mean([at_server(run, target, arm.account).usd for run in own.values()]))


def recorded(work: WorkName, rows: Rows) -> list[list[RoundReport]] | None:
    found = [rows.get(key_of(arm, PILOT_SEED)) for arm in recorded_arms(work)]
    if any(run is None for run in found):
        return None
    return [
        [RoundReport.model_validate(report) for report in run["rounds"]] for run in found if run is not None
    ]


def least_usd(work: WorkName, rows: Rows) -> float | None:
    """Return the fewest dollars for which any fixed functions and memory reach the loss: by the fitted arithmetic,
    after as few epochs as any recorded training needed.
    """
    target, past = target_of(work, rows), recorded(work, rows)
    if target is None or past is None:
        return None
    needed = [reached(rows[key_of(arm, PILOT_SEED)], target).epochs for arm in recorded_arms(work)]
    cloud = ArithmeticCloud.fit(past)
    functions, sizes = np.meshgrid(np.arange(1, WORKS[work].most_functions + 1), np.array(SIZES_MB))
    usd = sum(cloud.epochs(at, functions, sizes).usd for at in range(1, min(needed) + 1))
    return float(np.min(usd))


def rent(sku: str, seconds: Sequence[float]) -> list[float]:
    """Return the bill of a server by the second, where a ledger has slices."""
    return [round(one * hourly_usd(sku) / 3600, 8) for one in seconds]


def hourly_usd(sku: str) -> float:
    """Return what an hour of a server costs, with its address and disk."""
    tariff = TestbedArm("flights", sku).options(0).tariff(PriceBook.load(), FIXED_MB)
    return sum(total(one.lines(3600 * NS)) for one in tariff.rents) / PICODOLLARS_PER_USD
