"""The papers' figures that are arithmetic, from our own formulas and price book.

Inputs are the figures that the papers print. Where one of them does not follow, its test says so in its name and shows
what comes out instead.
"""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest

from cloud.money.billing import price_parts
from cloud.money.billing.paper_formulas import FORMULAS, FormulaRound
from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import FunctionPrice, PricedPart, lines_of, total
from cloud.timing.numbers import machines
from tests.cloud import calls
from tests.cloud.paper_arithmetic import (
    creates_per_hour,
    cut,
    decayed_most,
    doubling,
    early_floor,
    per_hour,
)
from training.engine.messages import Call
from training.engine.reports import Usage

BOOK = PriceBook.load()
USD = 10**12
HOUR_S = 3600.0
HOUR_NS = 3600 * 10**9
AWS, AZURE = "us-east-1", "eastus"
PLAIN = FunctionPrice(BOOK.row("lambda.duration.x86"), None, 10.0)
AN_HOUR = FormulaRound(HOUR_S, 0.0, (), memory_mb=1024)


def usd(picodollars: int) -> float:
    return picodollars / USD


def formula(name: str, *rounds: FormulaRound) -> float:
    return usd(FORMULAS[name].cost(rounds, BOOK))


def function_hour(memory_mb: int) -> float:
    call: Call = calls.rollout("c", None, memory_mb=memory_mb)
    return usd(total(PLAIN.lines(call, Usage(billed_s=HOUR_S)) or ()))


def part_hour(*parts: PricedPart) -> float:
    return usd(total(lines_of(parts, HOUR_NS)))


def core_hour(sku: str) -> float:
    return part_hour(PricedPart(BOOK.row(sku), 1, machines.machine(sku).vcpu))


def near(printed: float, digits: int) -> object:
    """What rounds to a printed figure of so many decimals."""
    return pytest.approx(printed, abs=0.5000001 * 10**-digits)


# --- Nitro ---


def test_nitro_serverful_costs_3_79_an_hour() -> None:
    assert formula("nitro-active", AN_HOUR) == near(3.79, 2)
    assert formula("nitro-cluster", AN_HOUR) == formula("nitro-active", AN_HOUR)
    assert formula("nitro-active", FormulaRound(1.0, 0.0, (), 1024)) == near(0.001053, 6)


def test_nitro_actors_are_18_6_percent_so_no_schedule_saves_more_at_equal_time() -> None:
    actors = part_hour(*price_parts.machine_parts(BOOK, "paper.server_actor.nitro", "paper"))
    assert actors / formula("nitro-active", AN_HOUR) == near(0.186, 3)


def test_nitro_a_function_of_1_gb_costs_6_cents_an_hour_and_a_machines_core_4() -> None:
    assert function_hour(1024) == near(0.060, 3)
    assert core_hour("c5.4xlarge") == near(0.0425, 4)
    assert 64 * function_hour(1024) == near(3.84, 2)


def test_nitro_capacity_kept_ready_costs_more_than_the_machine_it_replaces() -> None:
    ready = price_parts.provisioned_capacity(BOOK, AWS, memory_mb=1024, instances=64)
    an_hour = usd(total(ready.lines(HOUR_NS)))
    assert an_hour == near(0.96, 2)
    assert an_hour > part_hour(PricedPart(BOOK.row("c5.4xlarge"))) == near(0.68, 2)


def test_nitro_capacity_kept_ready_pays_above_60_percent_of_duty() -> None:
    on_demand, executed, kept_ready = (
        BOOK.row(f"lambda.{sku}.x86").price for sku in ("duration", "provisioned.duration", "provisioned")
    )
    share = float(kept_ready / (on_demand - executed))
    assert share == near(0.60, 2)
    # The bill says the same: an hour that is busy for that share costs as much either way.
    ready = price_parts.functions(BOOK, AWS, 10.0, provisioned=True).provisioned
    kept = price_parts.provisioned_capacity(BOOK, AWS, 1024, 1)
    assert ready is not None
    busy_ns = round(share * HOUR_NS)
    without = PricedPart(BOOK.row("lambda.duration.x86")).line(busy_ns).picodollars
    assert total(kept.lines(HOUR_NS)) + PricedPart(ready).line(busy_ns).picodollars == pytest.approx(
        without, abs=20_000
    )


def test_a_whole_core_of_lambda_costs_10_37_cents_an_hour() -> None:
    assert function_hour(1769) == near(0.1037, 4)
    assert function_hour(1769) / core_hour("c5.4xlarge") == near(2.4, 1)


def test_nitro_the_decay_caps_the_actors_whatever_was_measured() -> None:
    caps = {round_no: decayed_most(round_no, 64, 8, 0.96) for round_no in range(1, 101)}
    assert {round_no: caps[round_no] for round_no in (10, 20, 30, 40)} == {10: 42, 20: 28, 30: 18, 40: 12}
    assert {caps[round_no] for round_no in range(51, 101)} == {8}


def test_nitro_the_cap_is_the_least_from_round_49_and_not_only_from_51() -> None:
    """8.66 and 8.31 actors in rounds 49 and 50 are 8 whole ones already; below 8 it falls in round 51."""
    assert [decayed_most(round_no, 64, 8, 0.96) for round_no in (48, 49, 50, 51)] == [9, 8, 8, 8]
    assert [decayed_most(round_no, 6400, 0, 0.96) for round_no in (49, 50, 51)] == [865, 831, 798]


def test_nitro_the_released_code_floods_the_first_six_decisions() -> None:
    assert [early_floor(k, 64, 8, 0.96) for k in range(1, 9)] == [61, 54, 44, 33, 23, 14, 8, 8]


def test_nitro_hydrozoa_doubles_every_tenth_round() -> None:
    actors = [doubling(round_no) for round_no in range(1, 51)]
    assert actors == [16] + [8] * 9 + [16] * 10 + [32] * 10 + [64] * 20


def test_nitro_a_machine_of_72_cores_is_not_the_c5_9xlarge_that_its_code_prices() -> None:
    """Half as many cores stand behind the price of the code; 72 of them cost what a c5.18xlarge does."""
    assert machines.machine("c5.9xlarge").vcpu == 36
    assert (
        72 * core_hour("c5.9xlarge")
        == near(part_hour(PricedPart(BOOK.row("c5.18xlarge"))), 2)
        == near(3.06, 2)
    )
    assert machines.machine("c5.18xlarge").vcpu == 72


def test_nitro_the_intended_formula_charges_nothing_for_learning() -> None:
    idle = FormulaRound(10.0, 0.0, (4.0,) * 16, memory_mb=1024)
    learning = FormulaRound(13.0, 3.0, (4.0,) * 16, memory_mb=1024)
    assert formula("nitro-intended", idle) == formula("nitro-intended", learning)
    assert formula("nitro-active", learning) / formula("nitro-active", idle) == pytest.approx(1.3)


def test_small_functions_are_a_tenth_of_the_bill_beside_a_gpu_machine() -> None:
    """16 functions of 1 GB for 0.09 s, and the GPU's machine for 0.29 to 3.29 s."""
    small = FormulaRound(0.29, 0.2, (0.09,) * 16, memory_mb=1024)
    actors = formula("siren", small)
    learner_s = part_hour(*price_parts.machine_parts(BOOK, "p3.2xlarge", AWS)) / HOUR_S
    assert 0.005 < actors / (actors + learner_s * 3.29) < actors / (actors + learner_s * 0.29) < 0.11


def test_the_3_7e_5_for_these_16_functions_does_not_follow_from_90_ms_each() -> None:
    """2.4e-5 for the time and .3e-5 for the requests; 3.7e-5 are 127 ms each."""
    price = price_parts.functions(BOOK, AWS, 10.0)
    call = calls.rollout("c", None, memory_mb=1024)
    assert 16 * usd(total(price.lines(call, Usage(billed_s=0.090)) or ())) == near(2.7e-5, 6)
    assert 16 * usd(total(price.lines(call, Usage(billed_s=0.127)) or ())) == near(3.7e-5, 6)


# --- MinionsRL ---

# (environment, system): time in s, cost in $, $/h that these imply. Table 2.
TABLE_2 = {
    ("Hopper", "MinionsRL"): (241, "1.2", 17.9),
    ("Hopper", "Azure ML"): (277, "4.5", 58.5),
    ("Hopper", "IMPACT"): (291, "4.6", 56.9),
    ("Hopper", "Adapt"): (403, "4.4", 39.3),
    ("Hopper", "Max"): (232, "1.7", 26.4),
    ("Humanoid", "MinionsRL"): (334, "1.3", 14.0),
    ("Humanoid", "Azure ML"): (464, "9.3", 72.2),
    ("Humanoid", "IMPACT"): (436, "2.9", 23.9),
    ("HalfCheetah", "MinionsRL"): (220, "1.1", 18.0),
    ("HalfCheetah", "Azure ML"): (458, "2.9", 22.8),
    ("HalfCheetah", "IMPACT"): (193, "3.0", 56.0),
    ("Gravitar", "MinionsRL"): (2295, "6.6", 10.4),
    ("Gravitar", "Azure ML"): (2902, "11.4", 14.1),
    ("Gravitar", "IMPACT"): (3375, "12.0", 12.8),
    ("SpaceInvaders", "MinionsRL"): (1787, "7.8", 15.7),
    ("SpaceInvaders", "Azure ML"): (2260, "26.9", 42.8),
    ("SpaceInvaders", "IMPACT"): (2628, "25.8", 35.3),
    ("Qbert", "MinionsRL"): (506, "2.3", 16.4),
    ("Qbert", "Azure ML"): (872, "6.0", 24.8),
    ("Qbert", "IMPACT"): (768, "6.4", 30.0),
    ("Qbert", "Adapt"): (750, "2.0", 9.6),
    ("Qbert", "Max"): (484, "5.1", 37.9),
}


def printed_picodollars(cost: str) -> int:
    return int(Decimal(cost) * USD)


def time_cut(environment: str, system: str) -> float:
    return cut(TABLE_2[environment, system][0], TABLE_2[environment, "MinionsRL"][0])


def cost_cut(environment: str, system: str) -> float:
    return cut(float(TABLE_2[environment, system][1]), float(TABLE_2[environment, "MinionsRL"][1]))


@pytest.mark.parametrize("row", TABLE_2)
def test_minionsrl_the_price_by_the_hour_that_a_row_implies(row: tuple[str, str]) -> None:
    seconds, cost, implied = TABLE_2[row]
    assert per_hour(printed_picodollars(cost), seconds) == near(implied, 1)


def test_minionsrl_the_costs_do_not_follow_from_the_price_of_the_fixed_cluster() -> None:
    """One GPU machine and four of 8 cores cost $7.09 an hour; its rows imply 14.1 to 72.2."""
    cluster = formula("minionsrl-cluster", AN_HOUR)
    assert cluster == near(7.09, 2)
    implied = [
        per_hour(printed_picodollars(cost), s)
        for (_, who), (s, cost, _) in TABLE_2.items()
        if who == "Azure ML"
    ]
    assert min(implied) > 1.9 * cluster
    assert max(implied) > 10 * cluster


def test_minionsrl_the_best_cuts_are_52_percent_of_time_and_86_of_cost() -> None:
    rows = [row for row in TABLE_2 if row[1] != "MinionsRL"]
    assert max(rows, key=lambda row: time_cut(*row)) == ("HalfCheetah", "Azure ML")
    assert time_cut("HalfCheetah", "Azure ML") == near(0.52, 2)
    assert max(rows, key=lambda row: cost_cut(*row)) == ("Humanoid", "Azure ML")
    assert cost_cut("Humanoid", "Azure ML") == near(0.86, 2)


def test_minionsrl_where_it_loses() -> None:
    assert cut(220, TABLE_2["HalfCheetah", "IMPACT"][0]) == near(0.12, 2)
    assert cut(2.3, float(TABLE_2["Qbert", "Adapt"][1])) == near(0.13, 2)
    longer = [-time_cut(environment, "Max") for environment in ("Hopper", "Qbert")]
    assert longer == [near(0.04, 2), near(0.05, 2)]


def test_minionsrl_up_to_44_percent_cheaper_than_max_does_not_follow_from_its_table() -> None:
    assert cost_cut("Hopper", "Max") == near(0.29, 2)
    assert cost_cut("Qbert", "Max") == near(0.55, 2)


def test_minionsrl_an_actor_of_one_core_and_2_gb_costs_4_94_cents_an_hour() -> None:
    assert part_hour(*price_parts.container_parts(BOOK, AZURE, 1, 2048)) == near(0.0494, 4)
    assert part_hour(PricedPart(BOOK.row("aci.actor", AZURE))) == near(0.0494, 4)


@pytest.mark.parametrize(("share", "ceiling"), [(0.1, 59), (0.25, 62), (0.5, 67), (0.75, 72), (1.0, 78)])
def test_minionsrl_no_schedule_saves_more_than_this_at_equal_time(share: float, ceiling: int) -> None:
    """32 actors for a share of the round and the learner for the rest, against the cluster all the time."""
    times = FormulaRound(HOUR_S, HOUR_S * (1 - share), (HOUR_S * share,) * 32, memory_mb=2048)
    saved = cut(formula("minionsrl-cluster", times), formula("minionsrl", times))
    assert 100 * saved == pytest.approx(ceiling, abs=0.6)


def test_minionsrl_as_written_would_create_more_actors_than_the_cloud_allows() -> None:
    allowed_per_hour = 300
    assert creates_per_hour(32, 15.0) == 7680 > 25 * allowed_per_hour
    assert creates_per_hour(64, 900.0) == 256 < allowed_per_hour < creates_per_hour(64, 720.0)


def test_minionsrl_its_learners_machine_is_gone() -> None:
    gone_since = machines.machine("Standard_NC6s_v3").gone_since
    assert gone_since is not None
    assert datetime.date(2024, 2, 20) < gone_since <= BOOK.as_of, "after the paper appeared"


# --- Stellaris ---


def test_stellaris_costs_5_15_an_hour_whichever_side_is_charged() -> None:
    with_four = FormulaRound(HOUR_S, 0.0, (), memory_mb=1024, learners=4)
    assert formula("stellaris", with_four) == near(5.15, 2)
    assert formula("stellaris", with_four) == formula("stellaris-cluster", with_four)
    assert formula("stellaris", FormulaRound(1.0, 0.0, (), 1024, learners=4)) == near(0.00143, 5)


def test_stellaris_the_price_of_one_of_four_learners() -> None:
    quarter = price_parts.share_of(price_parts.machine_parts(BOOK, "paper.server_learner", "paper"), 4)
    assert part_hour(*quarter) / HOUR_S == near(0.00021423, 8)
    assert float(BOOK.row("paper.serverless_learner.stellaris", "paper").price) == near(0.00021423, 8)


# --- Siren ---


def test_siren_the_servers_it_compares_with() -> None:
    prices = {sku: part_hour(PricedPart(BOOK.row(sku))) for sku in ("m4.large", "m4.xlarge", "m4.2xlarge")}
    assert prices == {"m4.large": 0.1, "m4.xlarge": 0.2, "m4.2xlarge": 0.4}
