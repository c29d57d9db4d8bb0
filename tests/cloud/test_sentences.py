"""What the cloud part says, word by word: of resources, prices, sizes, records, forecasts and refused calls."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cloud.accounts.profiling import Size, choice
from cloud.failures import from_exception
from cloud.money.billing.free_tier import free_tier_share
from cloud.money.billing.price_book import PriceBook, PriceError, UnknownPrice, UnknownSku
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.work import WorkError, works_from
from cloud.money.billing.work_file import RunSegment, read_work_file
from cloud.money.ledger import MemoryLedger
from cloud.money.pricing import PricedPart, Tariff, price_line, total
from cloud.money.rents.job import Rents
from cloud.platforms.local import LocalOptions
from cloud.platforms.ray import driver as ray_driver
from cloud.platforms.ray.actor_pool import why_ended
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import NoForecast, forecast
from cloud.timing.forecasting.explanation import figure_of
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.quantity import ProfileError
from tests.cloud import clouds
from tests.cloud.instant_executor import InstantExecutor
from tests.cloud.recorded import record
from tests.cloud.test_forecast import HOPPER, LAMBDA, PLENTY, spec
from tests.cloud.test_forecast_measured import NITRO
from tests.cloud.test_metering import ACTORS_ONLY, WORST, gather, metered, rollout
from tests.cloud.test_price_book import written
from tests.cloud.test_price_parts import BOOK
from tests.cloud.test_profiling import measured_size
from tests.cloud.test_reconciling import GROUP, NOW, decided, seen
from tests.cloud.test_rent import MACHINE
from tests.cloud.test_retiming import spec_of
from training.engine.messages import FAULTS_THAT_END_A_RUN
from training.engine.reports import Usage
from training.functions.body import Result
from training.scaling.plan import Bounds, clip_to_bounds


@pytest.mark.parametrize(
    ("changes", "action", "words"),
    [
        ({}, "leave", "It exists and is in use."),
        ({"held": False}, "end", "The process that created it is gone."),
        ({"expires_unix_s": NOW - 7}, "end", "It was paid for until 7 s ago, and that was not renewed."),
        ({"state": "intended"}, "stands", "It exists, though its creation was not confirmed yet."),
        ({"state": "intended", "held": False}, "end", "The process that created it is gone."),
        ({"state": "ending", "since_unix_s": NOW - 9}, "wait", "Its removal was requested 9 s ago."),
        (
            {"state": "ending", "since_unix_s": NOW - 10, "held": False},
            "end",
            "Its removal was requested 10 s ago, and it still exists.",
        ),
        ({"state": "gone", "since_unix_s": NOW - 14}, "wait", "It has ended; the cloud may still list it"),
        ({"state": "gone", "since_unix_s": NOW - 15}, "end", "It was recorded as gone, but it still exists."),
        (
            {"state": "lost", "since_unix_s": NOW - 100},
            "end",
            "It was recorded as gone, but it still exists.",
        ),
    ],
)
def test_what_is_believed_and_found(changes: dict[str, Any], action: str, words: str) -> None:
    decision = decided(replace(GROUP, **changes), seen())
    assert (decision.action, decision.reason.startswith(words)) == (action, True), decision.reason


@pytest.mark.parametrize(
    ("changes", "action", "words"),
    [
        (
            {"state": "intended", "intended_unix_s": NOW - 5},
            "wait",
            "It was requested 5 s ago and may not be listed",
        ),
        (
            {"state": "intended", "held": False},
            "wait",
            "It was requested 500 s ago and may not be listed yet.",
        ),
        (
            {"state": "intended", "held": False, "missing_since_unix_s": NOW - 15},
            "gone",
            "It was requested 500 s ago and was never created.",
        ),
        (
            {
                "state": "intended",
                "held": False,
                "missing_since_unix_s": NOW - 15,
                "intended_unix_s": NOW - 59,
            },
            "wait",
            "It was requested 59 s ago",
        ),
        ({"state": "intended", "missing_since_unix_s": NOW - 90}, "wait", "It is not listed; the process"),
        ({}, "wait", "It has not been listed for 0 s; listings lag behind."),
        ({"missing_since_unix_s": NOW - 14}, "wait", "It has not been listed for 14 s"),
        ({"missing_since_unix_s": NOW - 15, "held": False}, "gone", "It ended by itself, as its run did."),
        ({"missing_since_unix_s": NOW - 15}, "lost", "It should exist but has not been listed for 15 s."),
        (
            {"missing_since_unix_s": NOW - 90, "intended_unix_s": NOW - 40},
            "wait",
            "It has not been listed for 90",
        ),
        ({"state": "ending"}, "wait", "It is not listed any more; the next listing will confirm that."),
        ({"state": "ending", "missing_since_unix_s": NOW - 15}, "gone", "It has ended."),
        ({"state": "gone"}, "leave", "It has ended and is not listed."),
    ],
)
def test_what_is_believed_and_not_found(changes: dict[str, Any], action: str, words: str) -> None:
    decision = decided(replace(GROUP, **changes), None)
    assert (decision.action, decision.reason.startswith(words)) == (action, True), decision.reason


def test_the_cheapest_of_those_nearly_as_fast_as_the_fastest() -> None:
    # 1,024 is within 20 % of 2,048 (115 of 100) and 12 % cheaper (0.88 of 1.00); 512 is cheaper and too slow.
    found = choice(
        [measured_size(512, 230.0, 0.80), measured_size(1024, 115.0, 0.88), measured_size(2048, 100.0, 1.00)]
    )
    assert found is not None
    assert found.memory_mb == 1024
    assert found.why == "1,024 MB: 12 % cheaper per step than 2,048 MB and within 20 % of its speed."


def test_at_the_line_it_is_within_and_beyond_it_is_not() -> None:
    at = choice([measured_size(1024, 120.0, 0.90), measured_size(2048, 100.0, 1.00)])
    beyond = choice([measured_size(1024, 120.1, 0.90), measured_size(2048, 100.0, 1.00)])
    assert at is not None
    assert beyond is not None
    assert (at.memory_mb, beyond.memory_mb) == (1024, 2048)
    assert beyond.why == "2,048 MB: the fastest. 1,024 MB would be 10 % cheaper per step and 20 % slower."


def test_beyond_a_whole_core_memory_buys_nothing() -> None:
    # As on Lambda: one thread is no faster with more than 1,769 MB, and dearer by the second.
    found = choice(
        [measured_size(1024, 173.0, 1.0), measured_size(1769, 100.0, 1.0), measured_size(3008, 100.0, 1.7)]
    )
    assert found is not None
    assert (found.memory_mb, found.why) == (1769, "1,769 MB: the fastest, and none is cheaper per step.")


def test_one_size_alone_says_so_and_none_is_no_choice() -> None:
    one = choice([measured_size(1024, 1.0, 1.0), Size(128, failure="killed")])
    assert one is not None
    assert one.why == "1,024 MB: the only size that could be measured."
    assert choice([Size(128, failure="killed")]) is None
    assert choice([]) is None


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("learner.server_start_s", 88.125, "start of the learner 88.1 s"),
        ("network.round_trip_s", 0.004, "round trip 4 ms"),
        ("chance.straggler_sigma", 0.147, "stragglers 14.7 %"),
        ("core_ratio", 0.89375, "speed of a core 0.894"),
        ("update.gpu_mlp.fixed_us", 1234.0, "minibatch 1.23 ms"),
        ("environment_step_us.Hopper-v5", 41.0, "step of the environment 41 µs"),
    ],
)
def test_a_number_in_words_has_its_unit(name: str, value: float, words: str) -> None:
    assert figure_of(name, value) == words


def test_the_price_of_a_learner_on_a_gpu_function_is_unknown() -> None:
    with pytest.raises(UnknownPrice, match="unknown: no public price of a function with a GPU"):
        PricedPart(BOOK.row("function.gpu"))


def test_what_is_not_priced_by_time_cannot_be_rented() -> None:
    with pytest.raises(PriceError, match="request is priced per request, which is not a unit of time"):
        PricedPart(BOOK.row("lambda.request"))


def test_the_free_tier_is_reported_and_not_taken_off() -> None:
    """A million requests and 400,000 GB-s a month: half of 800,000 GB-s, all of 10 requests, nothing of a machine."""
    bill = (
        price_line(BOOK.row("lambda.duration.x86"), 700_000),
        price_line(BOOK.row("lambda.duration.x86"), 100_000),
        price_line(BOOK.row("lambda.request"), 10),
        price_line(BOOK.row("c5.4xlarge"), 1),
    )
    share = free_tier_share(bill, BOOK)
    assert share.covered_picodollars == 400_000 * 16_666_700 + 10 * 200_000
    assert share.total_picodollars == total(bill)
    assert share.words == "the free tier of a fresh account would cover $6.67 of $14.01, once a month"
    assert free_tier_share(bill[3:], BOOK).words == "no free tier covers any of this"
    assert free_tier_share((), BOOK).covered_picodollars == 0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("Version mismatch: The cluster was started with: Ray: 2.9.0 Python: 3.10.1", "the same Python"),
        ("InvalidAuthToken: Authentication token is missing", "auth_token"),
        ("Failed to connect to Ray cluster at 10.0.0.5:6379", "one of the cluster's machines"),
    ],
)
def test_what_ray_says_is_put_in_words(said: str, words: str) -> None:
    assert words in ray_driver._why_not("10.0.0.5:6379", said)


def test_machines_that_cannot_import_starling_end_a_run_with_that_reason() -> None:
    why = why_ended(
        RuntimeError(
            "The actor died\n  class cannot be loaded\nModuleNotFoundError: No module named 'cloud'\n"
        )
    )
    assert why.code in FAULTS_THAT_END_A_RUN
    assert (
        "put this version of it on their PYTHONPATH: ModuleNotFoundError: No module named 'cloud'"
        in why.reason
    )
    assert why_ended(RuntimeError("its node was lost\nmore")).reason.endswith(
        "before it answered: its node was lost"
    )


def test_words_about_what_cannot_be_known() -> None:
    def notes(loop: str, **changes: Any) -> str:
        return " ".join(ReplaySchedule.of(record(spec_of(loop, **changes)).segment).notes)

    assert notes("synchronous") == ""
    assert "decide which data an update learns from" in notes("asynchronous")
    assert "decide which gradients a version is made of" in notes("stellaris")
    assert notes("stellaris in order") == ""
    assert "stopped by its time limit" in notes("synchronous", stop={"rounds": 2, "minutes": 1e5})


def test_a_spec_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(WorkError, match="the run's spec cannot be read here: scaling"):
        ReplaySchedule.of(RunSegment.of({"training": {"scaling": {"kind": "oracle"}}}, []))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": None}, "it has no id"),
        ({"kind": "dance"}, 'kind cannot be "dance"'),
        ({"env_steps": -1}, "env_steps cannot be -1"),
        ({"env_steps": 1.5}, "env_steps cannot be 1.5"),
        ({"env_steps": True}, "env_steps cannot be true"),
        ({"pictures": 1}, "pictures cannot be 1"),
        ({"after": "r1"}, 'after cannot be "r1"'),
        ({"deadline_s": "soon"}, 'deadline_s cannot be "soon"'),
        ({"colour": "red"}, "colour is unknown"),
    ],
)
def test_wrong_records_are_refused(changes: dict[str, Any], message: str) -> None:
    record = {"id": "r-a1", "kind": "rollout", "where": "actor"} | changes
    with pytest.raises(WorkError, match=f"^record 1: {message}$"):
        works_from([record])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "work.jsonl holds no run"),
        ("hello\n", "work.jsonl:1: this line is not JSON"),
        ("[]\n", "work.jsonl:1: this line is not a JSON object"),
        ('{"id": "a"}\n', "work.jsonl:1: the file does not begin with a header of schema 1"),
        ('{"kind": "work", "schema": 9, "spec": {}}\n', "work.jsonl:1: a header of schema 9; 1 is what can"),
        (
            '{"kind": "work", "schema": 1, "spec": {}}\n{"id": "a"}\n',
            "work.jsonl:2: this line is not a settlement",
        ),
    ],
)
def test_wrong_files_are_refused_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "work.jsonl"
    path.write_text(text)
    with pytest.raises(WorkError, match=f"^{message}"):
        read_work_file(path)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("no such weights"), "ValueError: no such weights at"),
        (
            torch.OutOfMemoryError(
                "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB of which"
                " 1.12 GiB is free."
            ),
            "The GPU's memory is full (torch asked for 2.00 GiB more). Choose smaller minibatches, a smaller network",
        ),
        (
            torch.OutOfMemoryError("HIP out of memory."),
            "The GPU's memory is full. Choose smaller minibatches",
        ),
    ],
)
def test_the_first_line_says_what_happened_and_what_to_do(error: Exception, said: str) -> None:
    try:
        raise error
    except type(error) as raised:
        failure = from_exception(raised)
    first, *frames = failure.reason.splitlines()
    assert first.startswith(said)
    assert f" at tests/cloud/{__name__.rpartition('.')[2]}.py:" in first
    assert any("raise error" in frame for frame in frames)
    assert failure.code == "error"


def test_a_call_that_the_budget_has_no_room_for() -> None:
    platform, _ = metered(MemoryLedger(WORST + 5), ACTORS_ONLY)
    for name in "ab":
        platform.submit(rollout(name))
    assert gather(platform, 2)["b"].reason == (
        "this call may cost up to $0.00118 and $0.000000000005 of the budget is left"
    )


def test_a_rent_that_the_budget_has_no_room_for() -> None:
    ledger = MemoryLedger(total(MACHINE.lines(60 * 10**9)) - 1)
    refused = Rents(Tariff(rents=(MACHINE,), rents_while_held=True), ledger, "").begin(0.0, 1)
    assert refused.startswith("the next 60 s of server (c5.4xlarge + ")
    assert refused.endswith(" of the budget is left")


def test_what_a_forecast_takes_for_granted_of_curvature() -> None:
    training = spec(**HOPPER, scaling=NITRO, stop={"env_steps": None, "rounds": 50})
    assert (
        "The scaling policy depends on curvature, which only training shows: any number of actors from 8 to 64 is"
        " considered possible, and fewer and fewer as its scores decay."
    ) in forecast(training, LAMBDA, PLENTY).assumptions


def test_a_job_without_an_end_has_no_forecast() -> None:
    training = spec(stop={"env_steps": None, "target_return": 475})
    with pytest.raises(NoForecast, match="Set steps, rounds or time"):
        forecast(training, LocalOptions(), PLENTY)


def test_a_size_that_is_nearest_to_what_was_wanted() -> None:
    assert clip_to_bounds(2, Bounds(memory_sizes_mb=(512, 1024)), "so", 700).why == (
        "so; 512 MB, the size nearest to 700 MB"
    )


def test_a_function_with_too_little_memory() -> None:
    executor = InstantExecutor(
        lambda call: Result(b"", None, Usage(steps=10, inferences=10, most_memory_mb=900))
    )
    platform = clouds.platform(executor=executor, options=SimulatedOptions())
    platform.submit(rollout("little", memory_mb=500))
    outcome = platform.next(1000.0)
    assert outcome is not None
    assert outcome.reason == "it needs 900 MB and has 500 MB (simulated): give it more memory"


def test_prices_that_cannot_be_read(tmp_path: Path) -> None:
    first = written(tmp_path, valid_to="2026-06-30").read_text()
    second = written(tmp_path, valid_from="2026-06-30").read_text()
    for text, words in (
        (
            first + second,
            r"^own\.toml:12: thing has two prices in here, see own\.toml:2, valid to 2026-06-30",
        ),
        ("# Mine\n\n[[prices]]\n", r"^own\.toml:3: prices is not known here; write \[\[free\]\] and"),
    ):
        (tmp_path / "own.toml").write_text(text)
        with pytest.raises(PriceError, match=words):
            PriceBook.load(tmp_path / "own.toml")
    with pytest.raises(PriceError, match=r"^missing\.toml:1: it cannot be read"):
        PriceBook.load(tmp_path / "missing.toml")
    with pytest.raises(UnknownSku, match=r"there is one in eu-central-1, .*us-east-1, us-east-2, us-west-2"):
        BOOK.row("lambda.request", "mars-1")


def test_numbers_that_there_are_not() -> None:
    with pytest.raises(ProfileError, match=r"no profile named 'lamda'; there are .*lambda"):
        profiles.load("lamda")
    with pytest.raises(ProfileError, match=r"no stack named 'fast'; there are .*starling-stack"):
        stacks.load("fast")
