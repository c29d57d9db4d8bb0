"""Headlines of stored results, computed again from the stored rows by nothing of `research.reports`."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import pairwise
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
        ("minionsrl_finetune", "tuned", "Hopper-v5"),
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


def usual_round_s(rounds: list[dict[str, Any]]) -> float:
    """A round's time once the data that was sampled during the start is used up."""
    return fmean(row["total_s"] for row in rounds if row["round"] > 12)


def reading(rows: list[dict[str, Any]], done: float) -> float:
    """The evaluated return after so many rounds, on a straight line between two evaluations."""
    points = [(row["round"], row["return_mean"]) for row in rows if row["kind"] == "evaluation"]
    if done >= points[-1][0]:
        return float(points[-1][1])
    for (before, low), (after, high) in pairwise(points):
        if before <= done <= after:
            return float(low + (high - low) * (done - before) / (after - before))
    return float(points[0][1])


def test_returns_in_equal_time_are_those_of_the_rows() -> None:
    ours, theirs = (runs_of("stellaris_82k", arm, "Hopper-v5") for arm in ("stellaris", "synchronous_10"))
    found: list[tuple[float, float]] = []
    for seed in ours:
        sides = [ours[seed], theirs[seed]]
        each = [usual_round_s([row for row in rows if row["kind"] == "round"]) for rows in sides]
        within_s = 20 * min(each)
        left, right = (reading(rows, within_s / one) for rows, one in zip(sides, each, strict=True))
        found.append((left, right))
    ratio = middle_mean([one for one, _ in found]) / middle_mean([one for _, one in found])
    (claim, *_) = [
        one
        for one in stored("stellaris_82k")["verdicts"]
        if one.get("asked", {}).get("kind") == "higher_in_time"
    ]
    assert claim["figures"]["interval"]["value"] == pytest.approx(ratio)


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


def rounds_until(
    rows: list[dict[str, Any]], target: float, stretch: int
) -> tuple[list[dict[str, Any]], bool]:
    """The rounds until the last of three readings at the target, each of so many steps; or all, and False."""
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
            return [row for row in rounds if row["round"] <= group[-1]["round"]], True
    return rounds, False


class MinionsRLBill:
    """Hopper's rounds on Azure's containers and on the cluster, by prices and the means of the clouds' numbers."""

    def __init__(self) -> None:
        self.containers, self.cluster = profiles.load("aci-paper"), profiles.load("minionsrl-cluster")
        stack, self.book = stacks.load("paper-stack"), PriceBook.load()
        self.core, self.update = self.containers.core_ratio.value, stack.update
        step_us = stack.environment_step_us["Hopper-v5"].value + stack.step_us.value
        step_us += stack.inference.mlp.fixed_us.value
        self.sampling_s = (stack.call_ms.value / 1000 + HOPPER_STEPS * step_us / 1e6) / self.core
        self.rebuilt_s = stack.rebuild_s.value / self.core
        self.fresh_s = (stack.import_s.value + stack.first_environment_s.value) / self.core

    def usd_per_s(self, *skus: str) -> float:
        return sum(float(self.book.row(sku, "eastus").usd) for sku in skus) / 3600

    def update_s(self, row: dict[str, Any]) -> float:
        minibatches_s = row["minibatches"] * self.update.gpu_mlp.fixed_us.value / 1e6
        return (self.update.call_ms.value / 1000 + minibatches_s) / self.core

    def on_containers(self, rounds: list[dict[str, Any]]) -> float:
        assert isinstance(self.containers.actors, Functions)
        calls, cold = sum(row["actors"] for row in rounds), max(row["actors"] for row in rounds)
        actors_s = calls * (self.sampling_s + self.rebuilt_s)
        actors_s += cold * (self.containers.actors.cold_s.value + self.fresh_s)
        learner_s = sum(map(self.update_s, rounds)) + self.containers.learner.function_start_s.value
        learner_usd = learner_s * self.usd_per_s("Standard_NC6s_v3")
        return actors_s * self.usd_per_s("aci.vcpu.linux", "aci.memory.linux") + learner_usd

    def on_cluster(self, rounds: list[dict[str, Any]]) -> float:
        actors = self.cluster.actors
        assert isinstance(actors, Pool)
        # The first of four machines that is up takes all calls of the first round, and the learner's takes a minute.
        first_s = actors.start_s.value * math.exp(-1.03 * actors.start_sigma.value) + self.fresh_s
        boot_s = max(self.cluster.learner.server_start_s.value, first_s + 4 * self.sampling_s)
        # The slowest of 32 actors: the expected maximum of 32 normal draws is 2.07.
        round_s = self.sampling_s * math.exp(2.07 * self.cluster.chance.straggler_sigma.value) + 0.07
        rounds_s = sum(map(self.update_s, rounds)) + (len(rounds) - 1) * round_s
        hourly = 3.06 + 4 * 1.008 + 5 * 0.0249
        return (boot_s + rounds_s) * hourly / 3600


def test_minionsrl_s_dollars_on_hopper_by_arithmetic_alone() -> None:
    """The bill of functions and of the cluster from rounds, prices and the means of the clouds' numbers, without any
    simulation, is that of the report within a few percent.
    """
    bill = MinionsRLBill()
    ours, theirs = [], []
    arms = {name: runs_of("minionsrl_table2", name, "Hopper-v5") for name in ("minionsrl", "fixed_32")}
    for seed in arms["minionsrl"]:
        (own, _), (other, _) = (rounds_until(arms[name][seed], 200.0, 32 * HOPPER_STEPS) for name in arms)
        ours.append(bill.on_containers(own))
        theirs.append(bill.on_cluster(other))
    (primary,) = [one for one in stored("minionsrl_table2")["verdicts"] if one["asked"]["primary"]]
    (found,) = [one for one in primary["figures"]["by_environment"] if one["environment"] == "Hopper-v5"]
    assert found["interval"]["value"] == pytest.approx(middle_mean(ours) / middle_mean(theirs), rel=0.05)


def test_a_fine_tuned_scheduler_s_dollars_by_arithmetic_alone() -> None:
    """Against one from scratch in the same place; a run that did not get there counts twice what it spent."""
    bill, reached, usd = MinionsRLBill(), {}, {}
    arms = {name: runs_of("minionsrl_finetune", name, "Hopper-v5") for name in ("tuned", "scratch")}
    rounds = [
        row for runs in arms.values() for rows in runs.values() for row in rows if row["kind"] == "round"
    ]
    stretch = max(row["actors"] for row in rounds) * HOPPER_STEPS
    for name, runs in arms.items():
        ends = [rounds_until(rows, 200.0, stretch) for rows in runs.values()]
        reached[name] = sum(there for _, there in ends)
        usd[name] = middle_mean([bill.on_containers(one) * (1 if there else 2) for one, there in ends])
    (found,) = [
        one
        for one in stored("minionsrl_finetune")["verdicts"]
        if "fine-tuned" in one["asked"]["ours"] and one["asked"]["measure"] == "dollars"
    ]
    assert found["figures"]["interval"]["value"] == pytest.approx(usd["tuned"] / usd["scratch"], rel=0.05)
    assert f"Hopper-v5: {reached['tuned']} and {reached['scratch']} of 10" in found["reason"]


# The mean of the largest of so many normal draws.
EXPECTED_MAXIMUM = {8: 1.42, 16: 1.77, 32: 2.07, 64: 2.34}


def slowest(actors: int, sigma: float) -> float:
    """How much longer than usual the slowest of so many log-normal times is."""
    sizes = sorted(EXPECTED_MAXIMUM)
    least = max(size for size in sizes if size <= max(actors, 8))
    most = min(size for size in sizes if size >= actors)
    way = 0.0 if least == most else math.log(actors / least) / math.log(most / least)
    z = EXPECTED_MAXIMUM[least] * (1 - way) + EXPECTED_MAXIMUM[most] * way
    return math.exp(sigma * z)


def test_nitro_s_dollars_on_hopper_by_arithmetic_alone() -> None:
    """Functions and a machine that learns, against the cluster, from rounds, prices and the means of the clouds'
    numbers, is within a few percent of the report.
    """
    functions, cluster = profiles.load("lambda"), profiles.load("nitro-cluster")
    stack, book = stacks.load("paper-stack"), PriceBook.load()
    assert isinstance(functions.actors, Functions)
    assert isinstance(cluster.actors, Pool)
    whole_core_mb, cold = functions.actors.whole_core_mb.value, functions.actors.cold_s.value
    boot_s, network_macs = cluster.actors.start_s.value, 0.07
    update, policy = stack.update, stack.inference.mlp
    step_us = stack.environment_step_us["Hopper-v5"].value + stack.step_us.value + policy.fixed_us.value
    step_us += network_macs * policy.us_per_million_macs.value
    call_us = 1000 * stack.call_ms.value + HOPPER_STEPS * step_us
    fresh_us = 1e6 * (stack.import_s.value + stack.first_environment_s.value)
    each_s = stack.coordinator_ms.value / 1000

    def update_s(row: dict[str, Any], core: float) -> float:
        gpu, samples = update.gpu_mlp, row["actors"] * HOPPER_STEPS
        pass_us = gpu.fixed_us.value + samples * 2 * network_macs * gpu.us_per_million_macs.value
        products = stack.hessian_product_per_gradient.value * (row["ratio"] is not None)
        read_us = row["actors"] * 0.0206 * update.us_per_megabyte.value
        return (1000 * update.call_ms.value + read_us + (30 + products) * pass_us) / core / 1e6

    def ours_usd(rows: list[dict[str, Any]]) -> float:
        core = functions.core_ratio.value
        run_s = (call_us + 1e6 * stack.rebuild_s.value) / core / (1024 / whole_core_mb) / 1e6
        cold_s = cold + fresh_us / core / 1e6
        clock_s, warm, paid_s, calls = functions.learner.server_start_s.value, 0, 0.0, 0
        sigma = functions.chance.straggler_sigma.value
        for row in rows:
            actors, new = row["actors"], max(0, row["actors"] - warm)
            if warm:
                clock_s += run_s * slowest(actors, sigma) + (cold_s if new else 0.0)
                clock_s += 2 * functions.network.round_trip_s.value + each_s
            clock_s += update_s(row, core)
            paid_s += actors * run_s * math.exp(sigma**2 / 2) + new * cold_s
            warm, calls = max(warm, actors), calls + actors
        machine_usd = clock_s * (3.06 + 0.0249) / 3600
        per_s, per_call = (
            float(book.row(sku, "us-east-1").usd) for sku in ("lambda.duration.x86", "lambda.request")
        )
        return machine_usd + paid_s * per_s + calls * per_call

    def theirs_usd(rows: list[dict[str, Any]]) -> float:
        core = cluster.core_ratio.value
        run_s = call_us / core / 1e6 * slowest(16, cluster.chance.straggler_sigma.value)
        # Sixteen workers are done at about the same time, and the coordinator takes one outcome after the other.
        clock_s = boot_s + fresh_us / core / 1e6
        clock_s += sum(run_s + update_s(row, core) + 17 * each_s for row in rows)
        return clock_s * (3.06 + 0.68 + 2 * 0.0249) / 3600

    results = stored("nitro_rewards_fast")
    arms = {name: runs_of("nitro_rewards_fast", name, "Hopper-v5") for name in ("nitro", "fixed_16")}
    # Both sides are read at the steps of the largest round.
    stretch = 61 * HOPPER_STEPS
    ours, theirs = [], []
    for seed in arms["nitro"]:
        (own, _), (other, _) = (rounds_until(arms[name][seed], 170.0, stretch) for name in arms)
        ours.append(ours_usd(own))
        theirs.append(theirs_usd(other))
    (found,) = [
        one
        for one in results["verdicts"]
        if (one["asked"]["environments"], one["asked"]["kind"]) == (["Hopper-v5"], "cheaper")
        and (one["asked"]["meter"], one["asked"]["accounting"]) == ("training", "bill")
        and one["asked"]["measure"] == "dollars"
        and (one["asked"]["ours"], one["asked"]["theirs"]) == ("Nitro", "fixed at 16")
        and one["asked"]["against_at"] == "Nitro's server cluster, paper stack"
    ]
    ratio = middle_mean(ours) / middle_mean(theirs)
    assert found["figures"]["interval"]["value"] == pytest.approx(ratio, rel=0.05)


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


def test_a_boosted_round_s_kl_is_as_much_smaller_as_the_rows_say() -> None:
    by_seed = []
    for rows in runs_of("nitro_rewards_fast", "nitro", "Humanoid-v5").values():
        rounds = [
            (row["actors"], math.log(row["update"]["approximate_kl"]))
            for row in rows
            if row["kind"] == "round"
        ]
        ratios = []
        for at, (actors, kl) in enumerate(rounds):
            floors = [other for few, other in rounds[max(0, at - 3) : at + 4] if few <= 8]
            if actors > 8 and floors:
                ratios.append(kl - fmean(floors))
        by_seed.append(fmean(ratios))
    (table,) = stored("boosted_rounds")["tables"]
    (row,) = [one for one in table["rows"] if one[1:3] == ["Humanoid-v5", "KL, ratio"] and "first" in one[0]]
    assert row[4] == pytest.approx(math.exp(fmean(by_seed)))
    assert row[6] < 1


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
