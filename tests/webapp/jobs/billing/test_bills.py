"""Bills by part: when they are drawn up, and what the page says of them."""

import os
import re
import threading
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from cloud.money.billing import price_book
from cloud.platforms.simulated_options import SimulatedOptions
from tests.factories import FixedClock, make_job, make_project, make_spec, make_user
from tests.figures import figures_in
from webapp.celery import app as celery_app
from webapp.jobs.billing import bills
from webapp.jobs.billing.bill_text import summarize_bill
from webapp.jobs.models import Job
from webapp.jobs.queries import header
from webapp.jobs.running.runner import run_job
from webapp.money.models import Account, BillSheet

SMALL: dict[str, Any] = {
    "training__scaling__actors": 2,
    "training__rollout__steps_per_call": 16,
    "training__stop": {"rounds": 3, "env_steps": None},
    "training__evaluation": {"every_rounds": 3, "episodes": 1},
    "platform__workers": 1,
}


def finished(preset: str = "hopper-simulated", **changes: Any) -> Job:
    """A job that has really run, with its bill."""
    job = make_job(spec=make_spec(preset, **SMALL, **changes))
    assert run_job(job.pk, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    bills.draw_up_bill(job.pk)
    return Job.objects.select_related("account", "bill").get(pk=job.pk)


def text(answer: Any) -> str:
    """The page's words, without its markup."""
    words = re.sub(r"<[^>]+>", " ", answer.content.decode())
    return " ".join(words.replace("&#x27;", "'").split())


def page_of(client: Client, job: Job) -> Any:
    client.force_login(job.created_by)
    return client.get(f"/p/{job.project.slug}/jobs/{job.pk}/bill")


# Drawing up


@pytest.mark.django_db(transaction=True)
def test_a_simulated_jobs_bill_equals_its_ledger_and_is_compared(client: Client) -> None:
    job = finished()
    account, sheet = job.account, job.bill
    assert sheet.final
    assert sum(sheet.document["parts"].values()) == account.spent_picodollars == sheet.document["total"]
    assert sheet.document["counts"]["calls"] == 10
    compared = {one["profile"]: one for one in sheet.document["compared"]}
    assert "lambda" not in compared
    assert compared["one-machine"]["picodollars"] > compared["one-machine-spot"]["picodollars"] > 0
    words = text(page_of(client, job))
    for expected in (
        "Bill simulated final,",
        "No money was spent",
        "profile lambda : of its",
        "stack starling-stack",
        "Virtual time",
        "Cold starts 2",
        "Idle Machines and actors that were rented while nothing ran",
        "On one c5.4xlarge this would have cost about $0.0",
        "Nitro, as intended",
        "The free tier of a fresh account would cover",
    ):
        assert expected in words, (expected, words)


@pytest.mark.django_db(transaction=True)
def test_a_job_on_standing_containers_pays_for_their_idle_time(client: Client) -> None:
    job = finished(platform__profile="aci-today")
    parts = job.bill.document["parts"]
    assert sum(parts.values()) == job.account.spent_picodollars
    assert parts["idle"] > parts["environment"] > parts["inference"] > 0
    assert parts["transfer"] > 0
    words = text(page_of(client, job))
    assert "(profile aci-today" in words
    assert "standing containers cost" in words
    assert "On AWS Lambda" in words


@pytest.mark.django_db(transaction=True)
def test_a_local_job_is_compared_with_functions_and_one_machine(client: Client) -> None:
    job = finished("cartpole")
    assert job.bill.document["total"] == 0
    page = page_of(client, job)
    assert 'data-bill-without-parts="unpriced"' in page.content.decode()
    assert re.search(r"On AWS Lambda .*?\$0\.\d+.*?; here it took", text(page))
    assert "No money" not in text(page)


@pytest.mark.django_db(transaction=True)
def test_a_priced_local_job_has_parts(client: Client) -> None:
    job = finished("cartpole", platform__worker_usd_per_hour=Decimal("0.1"))
    parts = {part: amount for part, amount in job.bill.document["parts"].items() if amount}
    assert set(parts) <= {"environment", "inference", "transfer", "evaluation", "idle", "failed"}
    assert sum(parts.values()) == job.account.spent_picodollars > 0
    shown = re.search(r"Actors came to \$0\.\d+: ([^.]+)\.", text(page_of(client, job)))
    assert shown
    assert {one.split()[0] for one in shown[1].split(", ")} == {
        "environments",
        "inference",
        "transfer",
    }


@pytest.mark.django_db(transaction=True)
def test_prices_that_the_operator_gave_are_shown_as_theirs(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "ours.toml"
    path.write_text(
        '[[price]]\nsku = "lambda.request"\nregion = "us-east-1"\nunit = "request"\nusd = "0.0000003"\n'
        'as_of = 2026-11-20\nsource = "our contract"\nkind = "list"\n'
    )
    price_book.set_operator_prices(path)
    try:
        job = finished()
    finally:
        price_book.set_operator_prices(None)
    page = page_of(client, job)
    words = text(page)
    assert "data-own-prices" in page.content.decode()
    assert re.search(r"lambda\.request at \$0\.0000003 .*us-east-1 \(our contract, 2026-11-20\)", words)
    assert "data-own-prices" not in page_of(client, finished()).content.decode()


# When a bill is due


@pytest.fixture
def job(db: None) -> Job:
    job = make_job(spec=make_spec("hopper-simulated"))
    Job.objects.filter(pk=job.pk).update(observed="running", round_no=3)
    return job


def is_due(job: Job, clock: FixedClock) -> bool:
    return bills.due_bills(clock.now()).filter(pk=job.pk).exists()


def test_a_running_jobs_bill_is_drawn_up_now_and_then(job: Job) -> None:
    clock = FixedClock()
    assert is_due(job, clock)
    bills.draw_up_bill(job.pk, clock=clock)
    sheet = BillSheet.objects.get(job=job)
    assert (sheet.final, sheet.round_no) == (False, 3)
    assert not is_due(job, clock)
    clock.forward(bills.AT_LEAST_EVERY.total_seconds() + 60)
    assert is_due(job, clock)


def test_the_last_bill_is_drawn_up_once_and_again_when_the_ledger_changed(job: Job) -> None:
    clock = FixedClock()
    bills.draw_up_bill(job.pk, clock=clock)
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    assert is_due(job, clock)
    bills.draw_up_bill(job.pk, clock=clock)
    assert BillSheet.objects.get(job=job).final
    assert not is_due(job, clock)
    # What a dead process had left open was booked later.
    Account.objects.filter(job=job).update(spent_picodollars=5)
    assert is_due(job, clock)


def test_a_job_that_goes_on_has_no_last_bill_any_more(job: Job) -> None:
    clock = FixedClock()
    Job.objects.filter(pk=job.pk).update(observed="paused")
    bills.draw_up_bill(job.pk, clock=clock)
    Job.objects.filter(pk=job.pk).update(observed="running")
    assert is_due(job, clock)


def test_nothing_is_due_before_the_first_round(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(round_no=0)
    assert not is_due(job, FixedClock())
    Job.objects.filter(pk=job.pk).update(observed="failed")
    assert not is_due(job, FixedClock())
    Account.objects.filter(job=job).update(spent_picodollars=5)
    assert is_due(job, FixedClock())


def test_the_regular_look_asks_for_what_is_due(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    monkeypatch.setattr(celery_app, "send_task", lambda name, args: started.append((name, args)))
    bills.queue_due_bills(clock=FixedClock())
    assert started == [("webapp.jobs.tasks.draw_up_bill", [job.pk])]


def test_a_spec_of_long_ago_is_reported_once_and_not_tried_for_ever(job: Job, client: Client) -> None:
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    document = {**job.spec, "platform": {"kind": "simulated", "profile": "lambda-1999"}}
    Job.objects.filter(pk=job.pk).update(spec=document)
    bills.draw_up_bill(job.pk)
    assert not is_due(job, FixedClock())
    assert "lambda-1999" in BillSheet.objects.get(job=job).document["problem"]
    assert page_of(client, job).status_code == 200


# The page


@pytest.mark.parametrize(
    ("state", "rounds", "why"),
    [
        ("queued", 0, "too-early"),
        ("running", 4, "expected"),
        ("failed", 0, "nothing"),
    ],
)
def test_a_section_without_a_bill_says_why(
    job: Job, client: Client, state: str, rounds: int, why: str
) -> None:
    Job.objects.filter(pk=job.pk).update(observed=state, round_no=rounds)
    assert f'data-bill-without-parts="{why}"' in page_of(client, job).content.decode()


def test_a_running_jobs_bill_says_as_of_when(job: Job, client: Client) -> None:
    bills.draw_up_bill(job.pk)
    answer = page_of(client, job)
    assert "as of round 3" in text(answer)
    assert 'data-bill-over="no"' in answer.content.decode()


def test_an_open_page_shows_where_the_money_went_as_bills_are_drawn_up(job: Job) -> None:
    shown = header(job)
    assert (shown["parts"], shown["elsewhere"]) == ("", "")
    bills.draw_up_bill(job.pk)
    sheet = BillSheet.objects.get(job=job)
    usd = 10**12
    there = {
        "profile": "one-machine",
        "title": "A machine",
        "picodollars": usd,
        "time_s": 60.0,
        "problem": "",
    }
    parts = {"learner": 3 * usd, "actors": usd}
    sheet.document |= {"total": 4 * usd, "parts": parts, "compared": [there], "own": None, "time_s": 120.0}
    sheet.save()
    shown = header(job)
    assert figures_in(shown["parts"]) == ["$4.00", "75", "25"]
    assert shown["elsewhere"] == summarize_bill(sheet, SimulatedOptions()).elsewhere[0]


def test_a_bill_costs_the_page_one_query(
    job: Job, client: Client, django_assert_max_num_queries: Any
) -> None:
    bills.draw_up_bill(job.pk)
    page_of(client, job)
    with django_assert_max_num_queries(5):
        client.get(f"/p/{job.project.slug}/jobs/{job.pk}/bill")


def test_only_members_see_it(job: Job, client: Client) -> None:
    client.force_login(make_user())
    assert client.get(f"/p/{job.project.slug}/jobs/{job.pk}/bill").status_code == 404


def test_every_number_has_its_source_on_a_page(client: Client, db: None) -> None:
    project = make_project(user := make_user())
    client.force_login(user)
    words = text(client.get(f"/p/{project.slug}/numbers/lambda/starling-stack/"))
    for expected in ("actors.cold_s 0.12", "measured", "AWS Lambda default quota", "coordinator_ms"):
        assert expected in words
    assert client.get(f"/p/{project.slug}/numbers/lambda/nothing/").status_code == 404


def test_drawing_up_is_paced_by_what_it_takes() -> None:
    assert timedelta(seconds=10) < bills.AT_LEAST_EVERY < timedelta(minutes=1)
