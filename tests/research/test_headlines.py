"""Headlines of stored results, computed again from the stored rows by nothing of `research.reports`."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from statistics import fmean
from typing import Any

import pytest

from research.calculations import boosted_rounds
from research.runs.archive import cells_in, find_run
from research.runs.run_file import RESULTS


def stored(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def runs_of(name: str, arm: str, environment: str) -> dict[int, list[dict[str, Any]]]:
    path = RESULTS / f"{name}.runs"
    found = {}
    for cell in cells_in(path):
        run = find_run(path, cell) if (cell.arm, cell.environment) == (arm, environment) else None
        if run is not None:
            found[cell.seed] = run.rows
    return found


def middle_mean(values: list[float]) -> float:
    """What is left of sorted values without a quarter, rounded down, at each end."""
    cut = len(values) // 4
    return fmean(sorted(values)[cut : len(values) - cut])


def final_return(rows: list[dict[str, Any]]) -> float:
    (final,) = [row for row in rows if row["kind"] == "final"]
    return fmean(final["returns"])


@pytest.mark.parametrize(
    ("name", "arm", "environment"),
    [
        ("learning_mujoco", "starling", "Hopper-v5"),
        ("learning_mujoco", "sb3", "Hopper-v5"),
        ("learning_mujoco", "starling", "Humanoid-v5"),
        ("asynchronous_return", "impact_asynchronous", "Hopper-v5"),
        ("nitro_rewards", "nitro", "CartPole-v1"),
        ("minionsrl_table2", "minionsrl", "Hopper-v5"),
    ],
)
def test_final_returns_are_those_of_the_rows(name: str, arm: str, environment: str) -> None:
    (results,) = [
        one for one in stored(name)["arms"] if (one["arm"], one["environment"]) == (arm, environment)
    ]
    rows = runs_of(name, arm, environment)
    assert len(rows) == results["seeds_complete"] > 2
    assert results["iqm"]["value"] == pytest.approx(middle_mean([final_return(one) for one in rows.values()]))


@pytest.mark.parametrize(
    ("name", "arm", "environment"),
    [
        ("minionsrl_table2", "minionsrl", "Hopper-v5"),
        ("minionsrl_table2", "fixed_32", "CartPole-v1"),
        ("nitro_rewards_fast", "nitro", "Hopper-v5"),
        ("nitro_rewards_fast", "fixed_16", "Humanoid-v5"),
    ],
)
def test_as_many_runs_reached_the_target_as_held_it_for_three_rounds(
    name: str, arm: str, environment: str
) -> None:
    results = stored(name)
    target = results["training_targets"][environment]
    reached = 0
    for rows in runs_of(name, arm, environment).values():
        means = [row["episode_return_mean"] for row in rows if row["kind"] == "round" and row["episodes"] > 0]
        reached += any(min(means[i : i + 3]) >= target for i in range(len(means) - 2))
    (cost, *_) = [one for one in results["costs"] if (one["arm"], one["environment"]) == (arm, environment)]
    assert cost["training"]["reached"] == reached


def ranks(values: list[float]) -> list[float]:
    return [
        sum(other < one for other in values) + (sum(other == one for other in values) + 1) / 2
        for one in values
    ]


def correlation(x: list[float], y: list[float]) -> float:
    mx, my = fmean(x), fmean(y)
    top = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return float(top / (sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y)) ** 0.5)


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5"])
def test_forks_rank_as_the_rows_say(environment: str) -> None:
    by_seed = []
    for rows in runs_of("branching", "forks", environment).values():
        ratio: dict[int, float] = {}
        gains: dict[int, list[float]] = defaultdict(list)
        for row in rows:
            if row["kind"] == "fork" and None not in (row["ratio"], row["boosted"], row["plain"]):
                ratio[row["round"]] = row["ratio"]
                gains[row["round"]].append(row["boosted"] - row["plain"])
        rounds = sorted(ratio)
        a, b, c = (
            ranks([float(one) for one in column])
            for column in ([ratio[k] for k in rounds], [fmean(gains[k]) for k in rounds], rounds)
        )
        ab, ac, bc = correlation(a, b), correlation(a, c), correlation(b, c)
        by_seed.append((ab - ac * bc) / ((1 - ac**2) * (1 - bc**2)) ** 0.5)
    (results,) = [
        one
        for one in stored("branching")["verdicts"]
        if one["asked"]["environments"] == [environment] and one["asked"]["kind"] == "foretells"
    ]
    assert results["figures"]["interval"]["value"] == pytest.approx(fmean(by_seed), abs=1e-9)


def test_a_boosted_round_is_compared_with_the_floor_rounds_beside_it_by_hand() -> None:
    """KL of 0.02 and 0.04 in two boosted rounds, 0.01 in all floor rounds: ratios 2 and 4, and √8 on average."""
    kl = [0.01, 0.02, 0.01, 0.01, 0.04, 0.01]
    rows = [
        {
            "actors": 8 if value == 0.01 else 32,
            "update": {"approximate_kl": value, "gradient_norm": 1.0},
            "episode_return_mean": 10.0 * k,
        }
        for k, value in enumerate(kl)
    ]
    figures = boosted_rounds._FIGURES
    found = boosted_rounds.seed_difference(rows, figures["KL, ratio"])
    assert found == pytest.approx(math.log(8.0) / 2)
    assert boosted_rounds.seed_difference(rows, figures["gradient norm, ratio"]) == pytest.approx(0.0)
    assert boosted_rounds.seed_difference(rows, figures["gain of the next round"]) == pytest.approx(0.0)
    assert boosted_rounds.seed_difference(rows[:1], figures["KL, ratio"]) is None
    interval = boosted_rounds.interval_of([1.0, 2.0, 3.0])
    assert interval == pytest.approx((2.0, 2.0 - 4.303 / 3**0.5, 2.0 + 4.303 / 3**0.5), rel=1e-3)
