"""What every ledger must do. Subclass with a fixture `make_ledger`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from training.engine.ports import Ledger, PriceLine, Reservation, Settlement

MakeLedger = Callable[[int], Ledger]


def reservation(name: str, picodollars: int) -> Reservation:
    return Reservation(name, "rollout", 1, picodollars)


def settlement(name: str, picodollars: int) -> Settlement:
    line = PriceLine("lambda.request", "1", "request", picodollars)
    return Settlement(name, picodollars, "metered", (line,), {"env_steps": 256})


def figures(ledger: Ledger) -> tuple[int, int, int]:
    spend = ledger.spend()
    return spend.spent_picodollars, spend.reserved_picodollars, spend.limit_picodollars


class LedgerContract:
    """`make_ledger(limit_picodollars)` gives a fresh ledger with nothing spent."""

    @pytest.fixture
    def make_ledger(self) -> MakeLedger:
        raise NotImplementedError

    def test_a_fresh_ledger_has_all_its_headroom(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(100)
        assert ledger.headroom() == 100
        assert figures(ledger) == (0, 0, 100)

    def test_reserves_in_order_as_long_as_it_fits(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(100)
        requested = [reservation("a", 60), reservation("b", 60), reservation("c", 40), reservation("d", 1)]
        assert ledger.reserve(requested) == [True, False, True, False]
        assert figures(ledger) == (0, 100, 100)
        assert ledger.headroom() == 0

    def test_a_free_call_fits_even_when_all_is_reserved(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(10)
        assert ledger.reserve([reservation("a", 10), reservation("b", 0)]) == [True, True]

    def test_settling_gives_back_what_was_not_used(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(100)
        ledger.reserve([reservation("a", 60)])
        ledger.settle([settlement("a", 25)])
        assert figures(ledger) == (25, 0, 100)
        assert ledger.headroom() == 75

    def test_releasing_gives_all_back(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(100)
        ledger.reserve([reservation("a", 60), reservation("b", 30)])
        ledger.release(["a", "b"])
        assert figures(ledger) == (0, 0, 100)

    def test_repeating_changes_nothing(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(100)
        ledger.reserve([reservation("a", 60), reservation("b", 20)])
        assert ledger.reserve([reservation("a", 60)]) == [True]
        assert figures(ledger) == (0, 80, 100)
        for _ in range(2):
            ledger.settle([settlement("a", 25)])
            ledger.release(["b"])
        assert figures(ledger) == (25, 0, 100)

    def test_what_ended_stays_as_it_ended(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(100)
        ledger.reserve([reservation("settled", 50), reservation("released", 50)])
        ledger.settle([settlement("settled", 30)])
        ledger.release(["settled", "released"])
        ledger.settle([settlement("released", 50)])
        assert figures(ledger) == (30, 0, 100)

    def test_an_overrun_is_shown_and_stops_all_spending(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(100)
        ledger.reserve([reservation("a", 10), reservation("b", 20)])
        ledger.settle([settlement("a", 15)])
        assert figures(ledger) == (15, 20, 100)
        assert ledger.headroom() == 0
        assert ledger.reserve([reservation("c", 1)]) == [False]
        ledger.settle([settlement("b", 20)])
        assert figures(ledger) == (35, 0, 100)

    @pytest.mark.parametrize("bits", [15, 16, 30, 31, 32, 40, 56])
    def test_amounts_of_every_width_fit(self, make_ledger: MakeLedger, bits: int) -> None:
        """A database may compute with as few bits as a number has: twice the largest of 31 bits has 32."""
        for name, amount in (("below", 2**bits - 1), ("at", 2**bits)):
            ledger = make_ledger(4 * amount)
            assert ledger.reserve([reservation(name, amount)]) == [True]
            assert figures(ledger) == (0, amount, 4 * amount)
            ledger.settle([settlement(name, amount)])
            assert figures(ledger) == (amount, 0, 4 * amount)

    def test_empty_batches_are_fine(self, make_ledger: MakeLedger) -> None:
        ledger = make_ledger(100)
        assert ledger.reserve([]) == []
        ledger.settle([])
        ledger.release([])
        assert figures(ledger) == (0, 0, 100)

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        limit=st.integers(1, 1000),
        steps=st.lists(
            st.tuples(st.sampled_from("rsx"), st.integers(0, 9), st.integers(0, 400)), max_size=30
        ),
    )
    def test_agrees_with_the_plain_arithmetic_of_money(
        self, make_ledger: MakeLedger, limit: int, steps: list[tuple[str, int, int]]
    ) -> None:
        """Any order of reserving, settling (within the reservation) and releasing, against a dictionary."""
        ledger = make_ledger(limit)
        open_amounts: dict[str, int] = {}
        ended: set[str] = set()
        spent = 0
        for act, number, amount in steps:
            name = f"call-{number}"
            if act == "r" and name not in open_amounts and name not in ended:
                fits = spent + sum(open_amounts.values()) + amount <= limit
                assert ledger.reserve([reservation(name, amount)]) == [fits]
                if fits:
                    open_amounts[name] = amount
            elif name in open_amounts:
                reserved = open_amounts.pop(name)
                ended.add(name)
                if act == "s":
                    ledger.settle([settlement(name, min(amount, reserved))])
                    spent += min(amount, reserved)
                else:
                    ledger.release([name])
            assert figures(ledger) == (spent, sum(open_amounts.values()), limit)
            assert ledger.headroom() == limit - spent - sum(open_amounts.values())
