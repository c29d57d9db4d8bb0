"""What is said of wrong files of numbers, prices and records, and of money that is not there, word by word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cloud.accounts.profiling import ProfiledCall, sizes_of
from cloud.accounts.provision import regions
from cloud.money.billing import price_book
from cloud.money.billing.paper_formulas import MachineGroup, server_cluster
from cloud.money.billing.price_book import PriceBook, PriceError, UnknownSku
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.work import WorkError, WorkWriter, works_from
from cloud.money.billing.work_file import RunSegment
from cloud.money.ledger import MemoryLedger
from cloud.timing.calibration.account_profile import account_profile
from cloud.timing.calibration.toml_writer import toml_of
from cloud.timing.numbers import machines
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.machines import MachineError
from cloud.timing.numbers.quantity import ProfileError
from tests.cloud import calls
from tests.cloud.recorded import record
from tests.cloud.test_account_profile import ACCOUNT, BASE, STACK, TODAY, measured_samples
from tests.cloud.test_machines import GOOD
from tests.cloud.test_metering import RENT_60_S, WORST, metered
from tests.cloud.test_metering import gather as gather_metered
from tests.cloud.test_metering import rollout as metered_rollout
from tests.cloud.test_pool_rent import MINUTE, SERVER_MINUTE, containers, gather, rollout
from tests.cloud.test_price_book import DAY, row, write_operators_prices, written
from tests.cloud.test_retiming import spec_of
from tests.cloud.test_work import work_of
from training.engine.reports import Usage


def test_numbers_of_an_account_and_of_its_emulator() -> None:
    found = account_profile(measured_samples(), ACCOUNT, BASE, STACK, TODAY)
    assert found.core_ratio.source.endswith("; 42 calls in an account in eu-central-1, 21 November 2026")
    emulated = account_profile(measured_samples(), replace(ACCOUNT, emulated=True), BASE, STACK, TODAY)
    assert emulated.title == "AWS Lambda, emulated, measured on 2026-11-21"


def test_what_has_no_place_in_a_file() -> None:
    stack = stacks.load("starling-stack").model_copy(update={"title": object()})
    with pytest.raises(TypeError, match=r"^object has no place in a file of numbers$"):
        toml_of(stack, "Refused.")


def test_a_machine_that_is_listed_twice(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(GOOD + "\n" + GOOD)
    with pytest.raises(MachineError, match=r"^own\.toml:8: x is here twice$"):
        machines.load(tmp_path / "own.toml")


def test_a_number_outside_of_its_range(tmp_path: Path) -> None:
    text = (profiles.PROFILES / "lambda.toml").read_text()
    (tmp_path / "mine.toml").write_text(text.replace("warm_s = { value = 0.0026", "warm_s = { value = 99.0"))
    with pytest.raises(ProfileError, match=r"warm_s: value 99 is outside its range 0\."):
        profiles.read(tmp_path / "mine.toml")


def test_a_profile_that_there_is_not() -> None:
    with pytest.raises(ProfileError, match=r"^there is no profile named 'no-such'; there are "):
        profiles.load("no-such")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"usd": '"-0.1"'}, r"^own\.toml:6: usd: .*greater than or equal to 0"),
        ({"kind": '"guess"'}, r"^own\.toml:9: kind: .*'list', 'paper', 'custom' or 'unverified'"),
    ],
)
def test_a_price_that_is_none(tmp_path: Path, changes: dict[str, str], words: str) -> None:
    with pytest.raises(PriceError, match=words):
        PriceBook.load(written(tmp_path, **changes))


def test_a_day_without_a_price() -> None:
    book = PriceBook(
        [
            row("2", valid_to=DAY(2026, 5, 31)),
            row("1", valid_from=DAY(2026, 6, 1), valid_to=DAY(2027, 5, 31), as_of=DAY(2026, 7, 1)),
        ]
    )
    with pytest.raises(
        UnknownSku, match=r"on 2028-01-01; there is one from 2026-06-01 to 2027-05-31, to 2026-05-31"
    ):
        book.row("thing", "here", on=DAY(2028, 1, 1))


def test_a_region_that_only_the_operator_prices(tmp_path: Path) -> None:
    price_book.set_operator_prices(write_operators_prices(tmp_path / "ours.toml", "xx-mars-2"))
    try:
        offered = dict(regions.offered("aws", PriceBook.load()))
    finally:
        price_book.set_operator_prices(None)
    assert offered["xx-mars-2"] == "by prices of this installation"


def test_a_cluster_of_servers() -> None:
    pair = server_cluster("two", "a test", (MachineGroup("m4.large", "us-east-1", 2),), ip_and_disk=False)
    assert pair.words == "2 × m4.large for the whole time, evaluation and idle cores included"


def test_a_size_whose_calls_were_all_cold() -> None:
    (size,) = sizes_of([ProfiledCall(512, 100, billed_s=3.0, cold=True)])
    assert size.failure == "no call to a warm function came back"


def test_a_budget_below_zero() -> None:
    with pytest.raises(ValueError, match=r"^a budget of -1 picodollars; it must not be negative$"):
        MemoryLedger(-1)


def test_an_actor_that_cannot_be_rented() -> None:
    platform, _, _ = containers(SERVER_MINUTE + MINUTE // 2)
    platform.submit(rollout("a"))
    (outcome,) = gather(platform, 1).values()
    assert outcome.reason.startswith("not even one actor can be rented for a minute: $")
    assert outcome.reason.endswith(" of the budget is left")


def test_a_learner_that_cannot_be_rented_any_longer() -> None:
    platform, _ = metered(MemoryLedger(2 * RENT_60_S + WORST))
    platform.submit(calls.update("u", (), seed=3000, deadline_s=900.0))
    platform.submit(metered_rollout("r", steps=500, deadline_s=60.0))
    stopped = gather_metered(platform, 2, timeout_s=11.0)["u"]
    assert stopped.reason.startswith(
        "the next 60 s of learner (c5.4xlarge + paper.vm_overhead) would cost $0.0117 and $"
    )


def test_a_record_that_names_another_that_is_missing() -> None:
    writer = WorkWriter()
    usual = work_of(calls.rollout("r-a1", None), Usage())
    some = [replace(usual, id=f"{n}-a1", name=f"{n}", after=("a", "b")) for n in range(3)]
    records = [writer.record(work) for work in some]
    with pytest.raises(
        WorkError, match=r"^record 1: it waits for the same as 0-a1, of which there is no record$"
    ):
        works_from(records[1:])


def test_a_record_with_holes() -> None:
    segment = record(spec_of("synchronous")).segment
    gone = next(one for one in segment.settlements if "update" in one.id)
    kept = [one for one in segment.settlements if one is not gone]
    assert ReplaySchedule.of(RunSegment.of(segment.spec, kept)).notes[-1] == (
        "The record has holes: 0 calls were booked without a result, 3 that others waited for are not in it."
    )
