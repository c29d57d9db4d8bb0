"""Trains what Siren's test bed lacks. Each training is stored as a row; `run_missing` goes on where it was stopped."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cloud.timing.numbers import profile as profiles
from research.pricing_targets import machine_start_s
from research.siren_agents import best_agent
from research.siren_testbed import (
    FIXED_SEEDS,
    LIBRARY_RATES,
    PILOT_SEED,
    PLENTY_USD,
    ROWS,
    SEEDS,
    SERVERS,
    WORKS,
    Rows,
    TestbedArm,
    agent_arms,
    aim_of,
    fixed_arms,
    kept,
    key_of,
    least_usd,
    library_arm,
    money_of,
    read_rows_of,
    recorded,
    recorded_arms,
    rent,
    server,
    workload,
)
from training.data import library
from training.data.rows import SparseFeatures
from training.data.store import read_rows
from training.engine.messages import Evaluated, RoundFinished
from training.engine.reports import RoundReport
from training.scaling.agent_weights import as_text
from training.scaling.plan import Bounds, Plan
from training.scaling.siren import Siren
from training.tasks.score import Score
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD


class WithMoney(Siren):
    """An agent's policy that sees so much money. The job's own budget is larger: before anything runs it has to hold
    the worst case of all calls of a round, which is more than such a short training costs.
    """

    money_picodollars: int

    def decide(self, history: Sequence[RoundReport], bounds: Bounds, seed: int, score: Score) -> Plan:
        limit = {"limit_picodollars": self.money_picodollars}
        seen = [
            one.model_copy(update={"spend": one.spend.model_copy(update=limit)}) if one.spend else one
            for one in history
        ]
        return super().decide(seen, bounds, seed, score)


def train(arm: TestbedArm, seed: int, rows: Rows) -> dict[str, Any]:
    """Train once and return its row."""
    row: dict[str, Any] = {"arm": arm.name, "work": arm.work, "seed": seed}
    if arm.place == "scikit-learn":
        return {"recipe": key_of(arm, seed)[0], **row, **by_library(arm, seed)}
    if not arm.money:
        training, platform = arm.training(seed), arm.options(seed)
        ended = run(JobSpec(name=arm.name, training=training, platform=platform, budget_usd=PLENTY_USD))
        if seed != PILOT_SEED:
            del ended["rounds"]
        if arm.place != "functions":
            ended["usd"] = rent(arm.place, ended["seconds"])
        return {"recipe": key_of(arm, seed)[0], **row, **ended}
    money_usd, past = money_of(arm, rows), recorded(arm.work, rows)
    assert money_usd is not None
    assert past is not None
    spec = workload(arm.work, aim=aim_of(arm.work, rows), seed=seed)
    weights, scores = best_agent(spec, past, round(money_usd * PICODOLLARS_PER_USD), seed)
    policy = spec.policy(as_text(weights), explore=False)
    scaling = WithMoney(**policy.model_dump(), money_picodollars=round(money_usd * PICODOLLARS_PER_USD))
    training = arm.training(seed).model_copy(update={"scaling": scaling})
    ended = run(JobSpec(name=arm.name, training=training, platform=arm.options(seed), budget_usd=PLENTY_USD))
    del ended["rounds"]
    return {
        "recipe": key_of(arm, seed, money_usd)[0],
        **row,
        "money": money_usd,
        "scores": _means(scores),
        **ended,
    }


def _means(scores: Sequence[float]) -> list[float]:
    """Return the mean score of each of 32 stretches of an agent's rehearsals."""
    return [round(float(part.mean()), 3) for part in np.array_split(np.array(scores), 32)]


def run(job: JobSpec) -> dict[str, Any]:
    """Train and return losses, seconds and dollars until the end of each epoch, and its plan."""
    headless = Headless(job)
    losses: list[float] = []
    seconds: list[float] = []
    usd: list[float] = []
    rounds: list[RoundReport] = []
    for event in headless.events():
        if isinstance(event, RoundFinished):
            rounds.append(event.report)
            seconds.append(round(event.report.started_s + event.report.total_s, 3))
            usd.append(round(headless.spent_picodollars / PICODOLLARS_PER_USD, 8))
        elif isinstance(event, Evaluated):
            losses.append(round(float(event.figures.score or 0.0), 6))
    return {
        "losses": losses,
        "seconds": seconds[: len(losses)],
        "usd": usd[: len(losses)],
        "functions": [report.actors for report in rounds],
        "memory_mb": [report.memory_mb for report in rounds],
        "rounds": [report.model_dump(mode="json") for report in rounds],
    }


def by_library(arm: TestbedArm, seed: int) -> dict[str, Any]:
    """Return epochs of scikit-learn's SGD on the same rows, by one core of the smallest server with its start."""
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import SGDClassifier
    from sklearn.metrics import log_loss

    began_s = time.process_time()
    manifest = library.manifest_of(arm.training(seed).data)

    def rows_of(count: int, *, held_out: bool) -> tuple[Any, Any]:
        rows = read_rows(library.store(), manifest.ranges(0, count, held_out=held_out))
        assert isinstance(rows.features, SparseFeatures)
        features = rows.features
        return csr_matrix(
            (features.values, features.places, features.offsets), (len(rows), manifest.width)
        ), rows.targets

    x, y = rows_of(manifest.rows, held_out=False)
    held_out, truth = rows_of(manifest.held_out_rows, held_out=True)
    read_s, core = time.process_time() - began_s, profiles.load("one-machine").core_ratio.value

    def learned(seed: int, learning_rate: float) -> dict[str, Any]:
        model = SGDClassifier(
            loss="log_loss", alpha=0.0, learning_rate="constant", eta0=learning_rate, random_state=seed
        )
        rng = np.random.default_rng(seed)
        worked_s, losses, seconds = read_s, [], []
        for _ in range(WORKS[arm.work].most_epochs):
            began_s = time.process_time()
            order = rng.permutation(len(y))
            model.partial_fit(x[order], y[order], classes=np.arange(len(manifest.classes)))
            worked_s += time.process_time() - began_s
            seconds.append(round(machine_start_s("one-machine") + worked_s / core, 3))
            losses.append(round(float(log_loss(truth, model.predict_proba(held_out))), 6))
        return {"losses": losses, "seconds": seconds, "usd": rent(SERVERS[0], seconds), "rate": learning_rate}

    pilots = [learned(PILOT_SEED, rate) for rate in LIBRARY_RATES]
    best = min(pilots, key=lambda pilot: float(pilot["losses"][WORKS[arm.work].usual_epochs - 1]))
    return learned(seed, best["rate"])


def missing(rows: Rows) -> Iterator[tuple[TestbedArm, int]]:
    """Yield what is to be trained next: what others need comes first."""
    for work in WORKS:
        first = [(server(work, SERVERS[0]), PILOT_SEED), *((arm, PILOT_SEED) for arm in recorded_arms(work))]
        first += [(server(work, sku), seed) for sku in SERVERS for seed in SEEDS]
        others = [(arm, seed) for arm in fixed_arms(work) for seed in FIXED_SEEDS]
        if work == "flights":
            others += [(library_arm(work), seed) for seed in SEEDS]
        wanted = [(arm, seed) for arm, seed in (*first, *others) if key_of(arm, seed) not in rows]
        yield from wanted
        if any(one in first for one in wanted):
            return
        for arm in agent_arms(work):
            if can_pay(arm, rows):
                yield from ((arm, seed) for seed in SEEDS if seed not in kept(arm, rows))


def can_pay(arm: TestbedArm, rows: Rows) -> bool:
    """Whether any functions reach the loss for the agent's money."""
    money_usd, least = money_of(arm, rows), least_usd(arm.work, rows)
    return money_usd is not None and least is not None and money_usd >= least


def run_missing(path: Path = ROWS) -> None:
    """Train what is missing, a row appended each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while (wanted := next(missing(rows := read_rows_of(path)), None)) is not None:
        row = train(*wanted, rows)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
