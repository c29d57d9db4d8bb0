"""A bill in sentences: comparisons, shares and how well the numbers are known."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from cloud.money.billing.parts import bill_parts
from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from tests.factories import make_spec
from tests.webapp.jobs.billing.spending_jobs import NOON, endless_spec, running_job
from webapp.jobs.billing.bill_text import (
    BillShare,
    actors_sentence,
    breakdown_sentence,
    numbers_behind,
    summarize_bill,
)
from webapp.jobs.billing.burn_rate import forecast_spending
from webapp.money.models import BillSheet


def document(own: int, own_s: float, other: int, other_s: float) -> dict[str, Any]:
    compared = {
        "profile": "one-machine",
        "title": "One plain CPU machine",
        "picodollars": other,
        "time_s": other_s,
        "problem": "",
    }
    return {
        "total": own,
        "parts": {"actors": own},
        "counts": {},
        "time_s": own_s,
        "papers": {},
        "free_tier": {"covered": 0, "total": own},
        "compared": [compared],
    }


USD = 10**12


@pytest.mark.parametrize(
    ("own", "own_s", "other", "other_s", "words"),
    [
        (127 * USD // 100, 1920, 41 * USD // 100, 2160, "functions cost $0.860 more and saved 4 min 0 s"),
        (USD, 2160, 2 * USD, 1920, "functions cost $1.00 less and took 4 min 0 s longer"),
        (USD, 100, USD, 100.5, "functions cost as much and took as long"),
    ],
)
def test_a_comparison_is_a_sentence(own: int, own_s: float, other: int, other_s: float, words: str) -> None:
    sheet = BillSheet(document=document(own, own_s, other, other_s))
    (sentence,) = summarize_bill(sheet, SimulatedOptions()).elsewhere
    assert sentence.startswith("On one c5.4xlarge this would have cost about $")
    assert sentence.endswith(f": {words}.")


def test_while_a_job_runs_it_is_compared_by_what_it_would_come_to_now() -> None:
    made = document(0, 10, USD, 10) | {"own": {"picodollars": 2 * USD, "time_s": 10.0}}
    (sentence,) = summarize_bill(BillSheet(document=made), SimulatedOptions()).elsewhere
    assert sentence.endswith(": functions cost $1.00 more and took as long.")


def test_what_cannot_be_priced_is_unknown_and_not_nothing() -> None:
    made = document(USD, 10, 0, 0)
    made["compared"][0]["problem"] = "there is no price for 'c5.4xlarge'"
    (sentence,) = summarize_bill(BillSheet(document=made), SimulatedOptions()).elsewhere
    assert sentence == "On one c5.4xlarge: unknown, because there is no price for 'c5.4xlarge'."


def test_how_well_a_clouds_numbers_are_known() -> None:
    assert numbers_behind(LocalOptions()) is None
    found = numbers_behind(SimulatedOptions(profile="lambda"))
    assert found is not None
    counts = [int(number) for number in re.findall(r"\d+", found.words)]
    assert sum(counts) == found.count > 20
    assert re.fullmatch(r"\d+ measured, \d+ documented, \d+ from the papers and \d+ assumed", found.words)


def test_a_bill_in_one_sentence_names_the_dearest_parts() -> None:
    def rows(**shares: float) -> list[BillShare]:
        parts = {part.key: part for part in bill_parts()}
        return [BillShare(parts[key], round(share * 127 * 10**8), share, 0) for key, share in shares.items()]

    assert breakdown_sentence(rows(learner=77, actors=17, cold_starts=2, failed=2, evaluation=2)) == (
        "Of $1.27: learner 77 %, actors 17 %, cold starts 2 %, failed calls 2 %, evaluation 2 %."
    )
    few = rows(learner=90, actors=6, idle=1.6, requests=1, failed=0.7, storage=0.4, evaluation=0.3)
    assert breakdown_sentence(few).endswith("requests 1 %, failed calls 1 %, the rest 1 %.")
    assert breakdown_sentence(rows(actors=99.8, requests=0.2)) == "Of $1.27: actors 100 %."
    assert breakdown_sentence([]) == ""


def test_what_actors_came_to_is_reported_by_what_they_did() -> None:
    parts = {part.key: part for part in bill_parts()}

    def rows(**amounts: int) -> list[BillShare]:
        return [BillShare(parts[key], amount * 10**10, 0.0, 0.0) for key, amount in amounts.items()]

    assert actors_sentence(rows(learner=106, environment=11, cold_starts=5, inference=4, transfer=1)) == (
        "Actors came to $0.210: environments 52 %, start-up 24 %, inference 19 %, transfer 5 %."
    )
    assert actors_sentence(rows(actors=3, cold_starts=5)) == "", "nobody timed these by their parts"
    assert actors_sentence([]) == ""


def _ramp() -> dict[str, Any]:
    return {"kind": "ramp", "actors_first": 1, "actors_last": 4, "over_rounds": 40}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (lambda: endless_spec(), "At $3.60 an hour it meets its limit at 12:16 UTC (± 20 s)."),
        (
            lambda: endless_spec(training__scaling=_ramp()),
            "At $3.60 an hour it meets its limit at 12:16 UTC (± 20 s)."
            " Its scaling policy may change that pace, which the ± leaves out.",
        ),
        (
            lambda: make_spec(training__stop={"env_steps": 256 * 110, "rounds": None}),
            "At $3.60 an hour it is done at 12:01 UTC, for $0.110 (± $0.00420) in all.",
        ),
        (
            lambda: make_spec("hopper-simulated", training__stop={"env_steps": None, "rounds": 10**6}),
            "At $3.60 a simulated hour it meets its limit after another 16 min of simulated time (± 20 s).",
        ),
    ],
)
def test_when_a_running_job_meets_its_limit_or_its_end(spec: Callable[[], Any], sentence: str) -> None:
    job = running_job(10, USD // 1000, spec=spec())
    assert forecast_spending(job, NOON)["burn"] == sentence
