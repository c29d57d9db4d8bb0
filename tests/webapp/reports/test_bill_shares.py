"""Shares of a cloud's bill: nothing of it is lost or made up, whatever it says and whatever was metered."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from webapp.reports.bills.billed import Sharing, paid_by_job

Amounts = st.integers(-(10**6), 10**14)
Metered = st.integers(0, 10**14)


@given(Amounts, st.lists(Metered, min_size=1))
def test_shares_add_up_to_the_amount_to_the_last_digit(amount: int, weights: list[int]) -> None:
    sharing = Sharing(amount, sum(weights))
    given_out = [sharing.of(weight) for weight in weights]
    assert sum(given_out) == (amount if sum(weights) else 0)
    if sum(weights):
        for weight, share in zip(weights, given_out, strict=True):
            assert abs(share - amount * weight / sum(weights)) <= 1 + abs(amount) / 2**50


@given(
    st.dictionaries(st.sampled_from([None, "a", "b", "c"]), Amounts, min_size=1),
    st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), Metered),
)
def test_nothing_of_a_bill_is_lost_between_jobs(
    billed: Mapping[str | None, int], metered: Mapping[str, int]
) -> None:
    paid = paid_by_job(billed, metered)
    assert sum(paid.values()) == sum(billed.values())
    for job, amount in billed.items():
        if job is not None and None not in billed:
            assert paid[job] == amount, "a line that names its job is that job's alone"


def test_nothing_is_shared_out_where_nothing_was_metered() -> None:
    assert Sharing(5, 0).of(0) == 0
