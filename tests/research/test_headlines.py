"""Headlines of stored results, computed again from the stored rows by nothing of `research.reports`."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from statistics import fmean
from typing import Any

import pytest

from cloud.billing.price_book import PriceBook
from cloud.numbers import profile as profiles
from cloud.numbers import stack as stacks
from cloud.numbers.profile import Functions, Pool
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
        ("nitro_rewards_fast", "nitro", "Hopper-v5"),
        ("nitro_sensitivity", "decay_93", "CartPole-v1"),
        ("minionsrl_table2", "minionsrl", "Hopper-v5"),
        ("minionsrl_schedules", "falling", "CartPole-v1"),
        ("minionsrl_budget", "fixed_8", "CartPole-v1"),
        ("learning_atari", "starling", "QbertNoFrameskip-v4"),
        ("halfcheetah_tuned", "starling", "HalfCheetah-v5"),
        ("stellaris_82k", "stellaris", "Hopper-v5"),
        ("asynchronous_causes", "ppo_synchronous", "Hopper-v5"),
    ],
)
def test_final_returns_are_those_of_the_rows(name: str, arm: str, environment: str) -> None:
    (results,) = [
        one for one in stored(name)["arms"] if (one["arm"], one["environment"]) == (arm, environment)
    ]
    rows = runs_of(name, arm, environment)
    assert len(rows) == results["seeds_complete"] > 0
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


@pytest.mark.parametrize(("name", "some"), [("minionsrl_budget", 19), ("stellaris_82k", 1)])
def test_ratios_of_final_returns_are_those_of_the_rows(name: str, some: int) -> None:
    results = stored(name)
    arms = {one["title"]: one["arm"] for one in results["arms"]}
    claims = [one for one in results["verdicts"] if one.get("asked", {}).get("kind") == "higher"]
    judged = [one for one in claims if one["verdict"] != "open"]
    assert len(judged) >= some
    for one in judged:
        (environment,) = one["asked"]["environments"]
        ours, theirs = (
            {
                seed: final_return(rows)
                for seed, rows in runs_of(name, arms[one["asked"][side]], environment).items()
            }
            for side in ("ours", "theirs")
        )
        seeds = ours.keys() & theirs.keys()
        ratio = middle_mean([ours[seed] for seed in seeds]) / middle_mean([theirs[seed] for seed in seeds])
        assert one["figures"]["interval"]["value"] == pytest.approx(ratio)


def test_no_run_costs_more_than_a_budget_that_binds_most_of_them() -> None:
    ends, left_usd = [], []
    path = RESULTS / "minionsrl_budget.runs"
    for cell in cells_in(path):
        run = None if cell.arm.startswith("scheduler") else find_run(path, cell)
        if run is not None:
            ends.append(run.rows[-1])
            left_usd.append(float(run.rows[0]["spec"]["budget_usd"]) - run.rows[-1]["cost_usd"])
    assert len(ends) == 130
    assert min(left_usd) >= 0
    assert sum("budget" in one.get("reason", "") for one in ends) > len(ends) / 2
    assert max(one["round"] for one in ends) == 80


HOPPER_STEPS = 256


def minionsrl_rounds(rows: list[dict[str, Any]], target: float, stretch: int) -> list[dict[str, Any]]:
    """The rounds until the last of three readings at the target, each of so many steps."""
    readings: dict[int, list[dict[str, Any]]] = defaultdict(list)
    rounds = [row for row in rows if row["kind"] == "round"]
    for row in rounds:
        if row["episodes"]:
            readings[-(-row["env_steps"] // stretch)].append(row)
    good = 0
    for group in readings.values():
        episodes = sum(row["episodes"] for row in group)
        mean = sum(row["episodes"] * row["episode_return_mean"] for row in group) / episodes
        good = good + 1 if mean >= target else 0
        if good == 3:
            return [row for row in rounds if row["round"] <= group[-1]["round"]]
    return rounds


def test_minionsrl_s_dollars_on_hopper_by_arithmetic_alone() -> None:
    """The bill of functions and of the cluster from rounds, prices and the means of the clouds' numbers, without any
    simulation, is that of the report within a few percent.
    """
    functions, cluster = profiles.load("aci-paper"), profiles.load("minionsrl-cluster")
    stack, book = stacks.load("paper-stack"), PriceBook.load()
    assert isinstance(functions.actors, Functions)
    assert isinstance(cluster.actors, Pool)

    def usd_per_s(*skus: str) -> float:
        return sum(float(book.row(sku, "eastus").usd) for sku in skus) / 3600

    policy, update = stack.inference.mlp, stack.update
    step_us = stack.environment_step_us["Hopper-v5"].value + stack.step_us.value + policy.fixed_us.value
    sampling_s = (stack.call_ms.value / 1000 + HOPPER_STEPS * step_us / 1e6) / functions.core_ratio.value
    rebuilt_s = stack.rebuild_s.value / functions.core_ratio.value
    fresh_s = (stack.import_s.value + stack.first_environment_s.value) / functions.core_ratio.value

    def update_s(row: dict[str, Any]) -> float:
        learned_s = update.call_ms.value / 1000 + row["minibatches"] * update.gpu_mlp.fixed_us.value / 1e6
        return learned_s / functions.core_ratio.value

    ours, theirs = [], []
    arms = {name: runs_of("minionsrl_table2", name, "Hopper-v5") for name in ("minionsrl", "fixed_32")}
    for seed in arms["minionsrl"]:
        own, other = (minionsrl_rounds(arms[name][seed], 200.0, 32 * HOPPER_STEPS) for name in arms)
        calls = sum(row["actors"] for row in own)
        cold = max(row["actors"] for row in own)
        actors_s = calls * (sampling_s + rebuilt_s) + cold * (functions.actors.cold_s.value + fresh_s)
        learner_s = sum(map(update_s, own)) + functions.learner.function_start_s.value
        learner_usd = learner_s * usd_per_s("Standard_NC6s_v3")
        ours.append(actors_s * usd_per_s("aci.vcpu.linux", "aci.memory.linux") + learner_usd)
        # The first of four machines that is up takes all calls of the first round, and the learner's takes a minute.
        first_s = cluster.actors.start_s.value * math.exp(-1.03 * cluster.actors.start_sigma.value) + fresh_s
        boot_s = max(cluster.learner.server_start_s.value, first_s + 4 * sampling_s)
        # The slowest of 32 actors: the expected maximum of 32 normal draws is 2.07.
        round_s = sampling_s * math.exp(2.07 * cluster.chance.straggler_sigma.value) + 0.07
        rounds_s = sum(map(update_s, other)) + (len(other) - 1) * round_s
        hourly = 3.06 + 4 * 1.008 + 5 * 0.0249
        theirs.append((boot_s + rounds_s) * hourly / 3600)
    (primary,) = [one for one in stored("minionsrl_table2")["verdicts"] if one["asked"]["primary"]]
    (found,) = [one for one in primary["figures"]["by_environment"] if one["environment"] == "Hopper-v5"]
    assert found["interval"]["value"] == pytest.approx(middle_mean(ours) / middle_mean(theirs), rel=0.05)


@pytest.mark.parametrize(
    ("name", "environment"),
    [("branching", "CartPole-v1"), ("branching", "Hopper-v5"), ("branching_later", "CartPole-v1")],
)
def test_forks_rank_as_the_rows_say(name: str, environment: str) -> None:
    by_seed = []
    for rows in runs_of(name, "forks", environment).values():
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
    (results, *_) = [
        one
        for one in stored(name)["verdicts"]
        if one["asked"]["environments"] == [environment] and one["asked"]["kind"] == "foretells"
    ]
    assert results["figures"]["interval"]["value"] == pytest.approx(fmean(by_seed), abs=1e-9)


def without_trend(rounds: list[float], values: list[float]) -> list[float]:
    """What is left of values when a straight line over the rounds is taken out."""
    mx, my = fmean(rounds), fmean(values)
    slope = sum((x - mx) * (y - my) for x, y in zip(rounds, values, strict=True)) / sum(
        (x - mx) ** 2 for x in rounds
    )
    return [y - my - slope * (x - mx) for x, y in zip(rounds, values, strict=True)]


def test_r_repeats_as_little_as_the_rows_say() -> None:
    by_seed = []
    for rows in runs_of("r_reliability", "twice", "CartPole-v1").values():
        measured = [
            (float(row["round"]), *map(math.log, one["ratios"]))
            for row in rows
            if row["kind"] == "reliability"
            for one in row["measured"]
            if (one["samples"], one["products"]) == (512, 20)
            and None not in one["ratios"]
            and min(one["ratios"]) > 0
        ]
        rounds, first, second = (list(column) for column in zip(*measured, strict=True))
        by_seed.append(correlation(without_trend(rounds, first), without_trend(rounds, second)))
    found = next(
        one for one in stored("r_reliability")["verdicts"] if "512 samples and 20 products" in one["reason"]
    )
    assert found["figures"]["interval"]["value"] == pytest.approx(fmean(by_seed))


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
