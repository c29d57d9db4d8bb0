"""Bills by part: when they are drawn up, what the page says of them, and jobs on several clouds from the form."""

import os
import re
import threading
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from cloud.billing.parts import PARTS
from cloud.local import LocalOptions
from cloud.simulated_options import SimulatedOptions
from tests.factories import FixedClock, make_job, make_project, make_spec, make_user
from tests.webapp.test_forms import posted
from webapp.jobs.forms import job_form
from webapp.jobs.models import Job
from webapp.jobs.presets import presets
from webapp.jobs.runner import run_job
from webapp.money import bills
from webapp.money.bill_words import (
    Row,
    about_duration,
    actors_sentence,
    breakdown_sentence,
    numbers_behind,
    shown_bill,
)
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
        "Bill simulated drawn up",
        "No money was spent",
        "profile lambda : of its",
        "stack starling-stack",
        "Virtual time",
        "Cold starts 2",
        "Idle Machines and actors stood and nothing ran",
        "On one c5.4xlarge this would have cost about $0.0",
        "Nitro, as it was meant",
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
    assert "Azure Container Instances today (profile aci-today" in words
    assert "standing containers cost" in words
    assert "On AWS Lambda this would have cost" in words


@pytest.mark.django_db(transaction=True)
def test_a_local_job_is_compared_with_functions_and_one_machine(client: Client) -> None:
    job = finished("cartpole")
    assert job.bill.document["total"] == 0
    words = text(page_of(client, job))
    assert "This machine cost nothing: nobody gave it a price." in words
    assert re.search(
        r"On AWS Lambda this would have cost about \$0\.\d+ and taken [^;]+; here it took", words
    )
    assert "No money was spent" not in words


@pytest.mark.django_db(transaction=True)
def test_a_priced_local_job_has_parts(client: Client) -> None:
    job = finished("cartpole", platform__worker_usd_per_hour=Decimal("0.1"))
    parts = {part: amount for part, amount in job.bill.document["parts"].items() if amount}
    assert set(parts) <= {"environment", "inference", "transfer", "evaluation", "idle", "failed"}
    assert sum(parts.values()) == job.account.spent_picodollars > 0
    told = re.search(r"Actors came to \$0\.\d+: ([^.]+)\.", text(page_of(client, job)))
    assert told
    assert {one.split()[0] for one in told[1].split(", ")} == {
        "environments",
        "inference",
        "transfer",
    }


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
    asked: list[Any] = []
    monkeypatch.setattr(bills.celery_app, "send_task", lambda name, args: asked.append((name, args)))
    bills.look_after_bills(clock=FixedClock())
    assert asked == [("webapp.money.tasks.draw_up_bill", [job.pk])]


def test_a_spec_of_long_ago_is_told_once_and_not_tried_for_ever(job: Job, client: Client) -> None:
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    document = {**job.spec, "platform": {"kind": "simulated", "profile": "lambda-1999"}}
    Job.objects.filter(pk=job.pk).update(spec=document)
    bills.draw_up_bill(job.pk)
    assert not is_due(job, FixedClock())
    assert "lambda-1999" in BillSheet.objects.get(job=job).document["problem"]
    assert page_of(client, job).status_code == 200


# The page


@pytest.mark.parametrize(
    ("state", "rounds", "words"),
    [
        ("queued", 0, "There is no bill yet: it is drawn up after the first round."),
        ("running", 4, "The bill is being drawn up. It is here in a few seconds."),
        ("failed", 0, "This job ended before anything could be billed."),
    ],
)
def test_a_section_without_a_bill_says_why(
    job: Job, client: Client, state: str, rounds: int, words: str
) -> None:
    Job.objects.filter(pk=job.pk).update(observed=state, round_no=rounds)
    assert words in text(page_of(client, job))


def test_a_running_jobs_bill_says_as_of_when(job: Job, client: Client) -> None:
    bills.draw_up_bill(job.pk)
    answer = page_of(client, job)
    assert "as of round 3" in text(answer)
    assert 'data-bill-over="no"' in answer.content.decode()


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


# Words


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
    (sentence,) = shown_bill(sheet, SimulatedOptions()).elsewhere
    assert sentence.startswith("On one c5.4xlarge this would have cost about $")
    assert sentence.endswith(f": {words}.")


def test_while_a_job_runs_it_is_compared_by_what_it_would_come_to_now() -> None:
    made = document(0, 10, USD, 10) | {"own": {"picodollars": 2 * USD, "time_s": 10.0}}
    (sentence,) = shown_bill(BillSheet(document=made), SimulatedOptions()).elsewhere
    assert sentence.endswith(": functions cost $1.00 more and took as long.")


def test_what_cannot_be_priced_is_unknown_and_not_nothing() -> None:
    made = document(USD, 10, 0, 0)
    made["compared"][0]["problem"] = "there is no price for 'c5.4xlarge'"
    (sentence,) = shown_bill(BillSheet(document=made), SimulatedOptions()).elsewhere
    assert sentence == "On one c5.4xlarge: unknown, because there is no price for 'c5.4xlarge'."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(4.21, "4.2 s"), (36.4, "36 s"), (107.7, "1 min 48 s"), (2160, "36 min"), (9000, "2.5 h")],
)
def test_about_how_long(seconds: float, words: str) -> None:
    assert about_duration(seconds) == words


def test_how_well_a_clouds_numbers_are_known() -> None:
    assert numbers_behind(LocalOptions()) is None
    found = numbers_behind(SimulatedOptions(profile="lambda"))
    assert found is not None
    counts = [int(number) for number in re.findall(r"\d+", found.words)]
    assert sum(counts) == found.count > 20
    assert re.fullmatch(r"\d+ measured, \d+ documented, \d+ from the papers and \d+ assumed", found.words)


# The form


def sent(client: Client, **changes: Any) -> Any:
    project = make_project(user := make_user())
    client.force_login(user)
    form = job_form(start=presets()["hopper-simulated"].spec)
    return client.post(f"/p/{project.slug}/jobs/new/", posted(form, **changes))


@pytest.mark.django_db
@pytest.mark.parametrize("profile", ["lambda", "aci-today", "one-machine", "nitro-cluster"])
def test_a_job_on_any_cloud_starts_from_the_form(client: Client, profile: str) -> None:
    assert sent(client, platform__simulated__profile=profile).status_code == 302
    assert Job.objects.get().parsed_spec().platform == SimulatedOptions(profile=profile)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("profile", "lambda-1999", "there is no profile named 'lambda-1999'"),
        ("stack", "java", "there is no stack named 'java'"),
        ("learner_sku", "c5.900xlarge", "there is no price for 'c5.900xlarge'"),
        ("cache_sku", "lambda.request", "lambda.request is not a machine: it is priced per request"),
        ("provisioned", "-1", "must be"),
        ("seed", "x", "must be"),
    ],
)
def test_what_no_cloud_has_is_refused_with_words(client: Client, field: str, value: str, words: str) -> None:
    answer = sent(client, **{f"platform__simulated__{field}": value})
    assert answer.status_code == 422
    assert words in text(answer)
    assert not Job.objects.exists()


@pytest.mark.django_db
def test_only_functions_can_be_kept_warm(client: Client) -> None:
    changes = {"platform__simulated__profile": "aci-today", "platform__simulated__provisioned": "4"}
    answer = sent(client, **changes)
    assert answer.status_code == 422
    assert "aci-today keeps nothing warm for money" in text(answer)


def test_clouds_and_software_are_chosen_from_lists_that_say_what_they_are() -> None:
    form = job_form(start=presets()["hopper-simulated"].spec)
    field = form.fields["platform.simulated.profile"]
    assert next(name for name, _ in field.choices) == "lambda"
    assert ("aci-today", "Azure Container Instances today") in field.choices
    assert all(one.words for one in field.named)
    assert ("starling-stack", "Starling's own engine") in form.fields["platform.simulated.stack"].choices


def test_drawing_up_is_paced_by_what_it_takes() -> None:
    assert timedelta(seconds=10) < bills.AT_LEAST_EVERY < timedelta(minutes=1)


def test_a_bill_in_one_sentence_names_the_dearest_parts() -> None:
    def rows(**shares: float) -> list[Row]:
        parts = {part.key: part for part in PARTS}
        return [Row(parts[key], round(share * 127 * 10**8), share, 0) for key, share in shares.items()]

    assert breakdown_sentence(rows(learner=77, actors=17, cold_starts=2, failed=2, evaluation=2)) == (
        "Of $1.27: learner 77 %, actors 17 %, cold starts 2 %, failed calls 2 %, evaluation 2 %."
    )
    few = rows(learner=90, actors=6, idle=1.6, requests=1, failed=0.7, storage=0.4, evaluation=0.3)
    assert breakdown_sentence(few).endswith("requests 1 %, failed calls 1 %, the rest 1 %.")
    assert breakdown_sentence(rows(actors=99.8, requests=0.2)) == "Of $1.27: actors 100 %."
    assert breakdown_sentence([]) == ""


def test_what_actors_came_to_is_told_by_what_they_did() -> None:
    parts = {part.key: part for part in PARTS}

    def rows(**amounts: int) -> list[Row]:
        return [Row(parts[key], amount * 10**10, 0.0, 0.0) for key, amount in amounts.items()]

    assert actors_sentence(rows(learner=106, environment=11, cold_starts=5, inference=4, transfer=1)) == (
        "Actors came to $0.210: environments 52 %, start-up 24 %, inference 19 %, transfer 5 %."
    )
    assert actors_sentence(rows(actors=3, cold_starts=5)) == "", "nobody timed these by their parts"
    assert actors_sentence([]) == ""
