"""Each paper's formula on two rounds worked out by hand. Amounts in whole picodollars, each line rounded once."""

from __future__ import annotations

from fractions import Fraction

import pytest

from cloud.money.billing.paper_formulas import FORMULAS, FormulaRound, MachineGroup, server_cluster
from cloud.money.billing.price_book import PriceBook

BOOK = PriceBook.load()
OVERHEAD = Fraction("17.92") / 720
ROUNDS = (
    FormulaRound(10.0, 2.0, (4.0, 6.0, 5.0), memory_mb=1024, evaluation_s=1.0, learners=4),
    FormulaRound(20.0, 3.0, (8.0,), memory_mb=2048, evaluation_s=2.0, learners=2),
)
# By hand: 33 s in all with evaluation, 14 s the longest functions, 23 function-seconds, 5 s of learning.
BY_HAND = {
    "nitro-intended": 14 * (Fraction("3.06") + OVERHEAD) / 3600 + 23 * Fraction("0.0000167"),
    "nitro-active": 33 * (Fraction("3.06") + Fraction("0.68") + 2 * OVERHEAD) / 3600,
    "stellaris": ((4 * 11 + 2 * 22) * (Fraction("3.06") + OVERHEAD) / 4 + 33 * (Fraction("2.04") + OVERHEAD))
    / 3600,
    "minionsrl": (
        5 * Fraction("3.06")
        + 15 * (Fraction("0.0405") + Fraction("0.00445"))
        + 8 * (Fraction("0.0405") + 2 * Fraction("0.00445"))
    )
    / 3600,
    "siren": (15 * 1 + 8 * 2) * Fraction("0.0000166667"),
    "nitro-cluster": 33 * (Fraction("3.74") + 2 * OVERHEAD) / 3600,
    "nitro-large-cluster": 33 * (Fraction("16.32") + 2 * OVERHEAD) / 3600,
    "minionsrl-cluster": 33 * (Fraction("3.06") + 4 * Fraction("1.008")) / 3600,
    "stellaris-cluster": 33 * (Fraction("5.10") + 2 * OVERHEAD) / 3600,
    "one-machine": 33 * (Fraction("0.68") + OVERHEAD) / 3600,
    "one-small-machine": 33 * (Fraction("0.1") + OVERHEAD) / 3600,
}


@pytest.mark.parametrize("name", FORMULAS)
def test_two_rounds_by_hand(name: str) -> None:
    lines = FORMULAS[name].bill(ROUNDS, BOOK)
    cost = FORMULAS[name].cost(iter(ROUNDS), BOOK)
    assert cost == sum(line.picodollars for line in lines)
    assert abs(cost - BY_HAND[name] * 10**12) <= Fraction(len(lines), 2)


def test_every_formula_says_where_it_stands_and_what_it_charges() -> None:
    assert set(FORMULAS) == set(BY_HAND)
    for name, formula in FORMULAS.items():
        assert formula.name == name
        assert len(formula.source) > 10
        assert len(formula.words) > 20
        assert formula.cost((), BOOK) == 0


def test_any_cluster_can_be_priced() -> None:
    pair = server_cluster("two", "a test", (MachineGroup("m4.large", "us-east-1", 2),), ip_and_disk=False)
    assert pair.words.startswith("2 × m4.large ")
    hour = FormulaRound(3600.0, 0.0, (), memory_mb=1024)
    assert pair.cost([hour], BOOK) == 200_000_000_000
