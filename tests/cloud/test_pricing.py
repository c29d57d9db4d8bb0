from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from cloud.money.billing.price_book import PriceBook, PriceError, PriceRow, UnknownSku
from cloud.money.pricing import price_line, total
from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from tests.cloud import calls
from tests.work import calls_in
from training.engine.messages import Outcome
from training.engine.reports import Usage

BOOK = PriceBook.load()
TARIFF = SimulatedOptions().tariff(BOOK, 1024)


def billed(billed_s: float | None, status: str = "done") -> Outcome:
    return Outcome.model_validate(
        {"call_id": "c", "status": status, "started_s": 0, "finished_s": 0, "usage": Usage(billed_s=billed_s)}
    )


def test_a_call_on_lambda_by_hand() -> None:
    """1 GB for 2 s: 2 GB-s at $0.0000166667, and one request at $0.0000002."""
    lines = TARIFF.lines(calls.rollout("c", None, memory_mb=1024), billed(2.0))
    assert lines is not None
    assert [(line.sku, line.quantity, line.picodollars) for line in lines] == [
        ("lambda.duration.x86", "2", 33_333_400),
        ("lambda.request", "1", 200_000),
    ]


def test_worst_case_by_hand() -> None:
    """Start-up of at most 10 s and a deadline of 60 s at 1 GB, one request, two payloads that go by storage."""
    call = calls.rollout("c", None, memory_mb=1024, deadline_s=60.0)
    assert TARIFF.worst_case(call) == 70 * 16_666_700 + 200_000 + 2 * 5_400_000
    assert TARIFF.worst_case(calls.update("u", ())) == 0


def test_rent_by_hand() -> None:
    (learner,) = TARIFF.rents
    assert (learner.resource, learner.skus) == ("learner", "c5.4xlarge + paper.vm_overhead")
    assert [line.picodollars for line in learner.lines(60 * 10**9)] == [11_333_333_333, 414_814_815]
    assert [line.picodollars for line in learner.lines(3600 * 10**9)] == [680_000_000_000, 24_888_888_889]


def test_half_a_picodollar_is_rounded_up() -> None:
    row = replace(BOOK.row("lambda.request"), usd=Decimal("1e-12"))
    amounts = [price_line(row, hundredths, 100).picodollars for hundredths in (49, 50, 150, 250)]
    assert amounts == [0, 1, 2, 3]


def test_milliseconds_are_not_rounded_up_by_floating_point() -> None:
    call = calls.rollout("c", None, memory_mb=1024)
    for ms in range(1, 3000, 7):
        lines = TARIFF.lines(call, billed(ms / 1000))
        assert lines is not None
        assert Decimal(lines[0].quantity) == Decimal(ms) / 1000


def test_unknown_billed_time_is_unknown_and_never_begun_is_free() -> None:
    call = calls.rollout("c", None)
    assert TARIFF.lines(call, billed(None)) is None
    assert TARIFF.lines(call, billed(0.0, "cancelled")) == ()
    assert TARIFF.lines(call, billed(None, "refused")) == ()


@given(
    memory_mb=st.integers(128, 10_240),
    deadline_s=st.floats(0.001, 900),
    share=st.floats(0, 1),
    status=st.sampled_from(["done", "failed", "cancelled"]),
)
def test_no_bill_is_above_its_worst_case(
    memory_mb: int, deadline_s: float, share: float, status: str
) -> None:
    call = calls.rollout("c", None, memory_mb=memory_mb, deadline_s=deadline_s)
    lines = TARIFF.lines(call, billed(share * (10.0 + deadline_s), status))
    assert lines is not None
    assert sum(line.picodollars for line in lines) <= TARIFF.worst_case(call)


@given(st.decimals(0, 10**6, places=9))
def test_lines_are_exact_to_half_a_picodollar(quantity: Decimal) -> None:
    row = BOOK.row("lambda.duration.x86")
    exact = Fraction(row.usd) * 10**12 * Fraction(quantity)
    assert abs(price_line(row, *quantity.as_integer_ratio()).picodollars - exact) <= Fraction(1, 2)


@given(
    row=st.sampled_from([row for row in BOOK.rows() if row.usd is not None]),
    quantity=st.integers(0, 10**18),
    per=st.one_of(st.integers(1, 10**15), st.sampled_from([1000 * 1024, 3600 * 10**9, 720 * 3600 * 10**9])),
)
def test_a_line_is_the_exact_product_rounded_half_up_once(row: PriceRow, quantity: int, per: int) -> None:
    line = price_line(row, quantity, per)
    exact = Fraction(row.price) * 10**12 * Fraction(quantity, per)
    assert line.picodollars == math.floor(exact + Fraction(1, 2))
    assert abs(Fraction(line.quantity) - Fraction(quantity, per)) <= Fraction(1, 2 * 10**12)
    decimal = Context(prec=80).divide(Decimal(quantity), Decimal(per))
    amount = Context(prec=80).multiply(Context(prec=80).multiply(row.price, Decimal(10**12)), decimal)
    assert abs(Decimal(line.picodollars) - amount) <= Decimal("0.5000000000001")


def test_a_stored_run_is_priced_again_in_no_time() -> None:
    """6,000 lines, twice what 50 rounds of 64 actors have; the goal is far below 50 ms, which 200,000 calls take."""
    duration, request = BOOK.row("lambda.duration.x86"), BOOK.row("lambda.request")

    def price_all() -> None:
        for started_ms in range(3000):
            price_line(duration, started_ms * 1769, 1000 * 1024)
            price_line(request, 1)

    assert calls_in(price_all) < 50_000  # about 25 thousand now, in 6 ms


def test_an_unknown_sku_is_named_and_never_free() -> None:
    with pytest.raises(
        UnknownSku, match=r"no price for 'c5\.4xlrage' in us-east-1; did you mean c5\.4xlarge"
    ):
        BOOK.row("c5.4xlrage")
    with pytest.raises(UnknownSku, match=r" eu-central-1, .*us-east-1, us-east-2, us-west-2"):
        BOOK.row("lambda.request", "mars-1")
    with pytest.raises(ValidationError, match=r"no price for 'p9\.huge'"):
        SimulatedOptions(learner_sku="p9.huge")
    with pytest.raises(ValidationError, match="not a machine"):
        SimulatedOptions(learner_sku="lambda.request")


def test_every_price_says_where_it_is_from() -> None:
    assert {"c5.4xlarge", "c5.12xlarge", "p3.2xlarge", "lambda.duration.x86"} <= {
        row.sku for row in BOOK.rows()
    }
    for row in BOOK.rows():
        assert len(row.source) > 10
        assert row.as_of.year >= 2024


def test_wrong_price_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('[[price]]\nsku = "x"\nregion = "here"\nunit = "h"\nusd = "cheap"\n')
    with pytest.raises(PriceError, match=r"^a.toml:5: usd: "):
        PriceBook.load(tmp_path)
    row = BOOK.row("lambda.request")
    with pytest.raises(PriceError, match="two prices"):
        PriceBook([row, row])


def test_local_rent_is_what_the_user_says() -> None:
    assert LocalOptions().tariff(BOOK, 1024).rents == ()
    options = LocalOptions(
        workers=4, learner_usd_per_hour=Decimal("0.36"), worker_usd_per_hour=Decimal("0.09")
    )
    amounts = {rent.resource: total(rent.lines(3600 * 10**9)) for rent in options.tariff(BOOK, 1024).rents}
    assert amounts == {"learner": 360_000_000_000, "workers": 360_000_000_000}
    call = calls.rollout("c", None)
    assert options.tariff(BOOK, 1024).worst_case(call) == 0
    assert options.tariff(BOOK, 1024).lines(call, billed(None)) == ()


def test_options_travel_as_json() -> None:
    for options in (LocalOptions(learner_usd_per_hour=Decimal("0.5")), SimulatedOptions(seed=4)):
        assert type(options).model_validate(json.loads(options.model_dump_json())) == options


def test_a_row_must_be_complete() -> None:
    with pytest.raises(ValidationError):
        TypeAdapter(PriceRow).validate_python({"sku": "x"})
