"""Dollars of stored headlines, computed again from rows and prices by arithmetic alone."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Functions, Pool
from tests.research.stored_rows import middle_mean, runs_of, stored

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
