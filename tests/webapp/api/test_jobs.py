"""Jobs through the API: launched once, read by pages, changed only as they were seen, and paid to the last digit."""

from __future__ import annotations

import json
import os
import re
import threading
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from client.commands import COMMANDS
from tests.factories import (
    evaluated,
    make_job,
    make_project,
    make_running_job,
    make_spec,
    make_user,
    round_finished,
)
from tests.webapp.api_callers import ApiCaller
from webapp.api.rest import api
from webapp.jobs.running.recorder import Recorder
from webapp.jobs.running.runner import run_job
from webapp.money.amounts import exact_usd
from webapp.reports.report_builds import BUILDING, folder

pytestmark = pytest.mark.django_db


class Mine:
    def __init__(self) -> None:
        self.user = make_user()
        self.project = make_project(self.user)
        self.call = ApiCaller(self.user)
        self.jobs = f"/projects/{self.project.slug}/jobs"

    def spec(self, **changes: Any) -> dict[str, Any]:
        spec: dict[str, Any] = make_spec(**changes).model_dump(mode="json")
        return spec


@pytest.fixture
def mine() -> Mine:
    return Mine()


def test_the_same_key_launches_once(mine: Mine) -> None:
    first = mine.call.post(mine.jobs, mine.spec(), Idempotency_Key="a-1")
    again = mine.call.post(mine.jobs, mine.spec(), Idempotency_Key="a-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.get("Idempotency-Replayed"), again.get("Idempotency-Replayed")) == (None, "true")
    assert first.json()["id"] == again.json()["id"]
    assert first.headers["Location"] == f"/api/v1{mine.jobs}/{first.json()['id']}"
    assert mine.call.get(first.headers["Location"]).json() == first.json()
    assert mine.project.jobs.count() == 1
    other = mine.call.post(mine.jobs, mine.spec(name="Another"), Idempotency_Key="a-1")
    assert other.status_code == 409
    assert first.json()["id"] in other.json()["why"]
    assert mine.call.post(mine.jobs, mine.spec()).status_code == 201
    assert mine.project.jobs.count() == 2


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("application/toml", 'name = "Mine"\nbudget_usd = "0.5"\n[training]\nseed = 9\n'),
        ("application/yaml", "name: Mine\nbudget_usd: '0.5'\ntraining: {seed: 9}\n"),
    ],
)
def test_a_spec_may_be_sent_as_it_lies_in_a_file(mine: Mine, kind: str, content: str) -> None:
    sent = mine.call("POST", mine.jobs, content.encode(), Content_Type=kind)
    assert sent.status_code == 201, sent.content
    assert (sent.json()["name"], sent.json()["seed"]) == ("Mine", 9)


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("application/toml", "name = ["),
        ("application/toml", "budget_usd = inf"),
        ("application/toml", "started = 2026-01-01"),
        ("application/yaml", "a: &a [1]\nb: *a"),
        ("application/yaml", "[" * 5_000),
        ("application/yaml", 'name: "\\0"'),
    ],
)
def test_what_is_no_document_in_its_language_is_refused(mine: Mine, kind: str, content: str) -> None:
    sent = mine.call("POST", mine.jobs, content.encode(), Content_Type=kind)
    assert sent.status_code in (400, 422), sent.content


def test_a_launch_that_is_refused_says_the_forms_sentence(mine: Mine, settings: Any) -> None:
    settings.STARLING_MAX_LOCAL_ACTORS = 4
    refused = mine.call.post(mine.jobs, mine.spec())
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["path"] == "training.scaling.actors"
    assert "at most 4" in error["sentence"]
    assert not mine.project.jobs.exists()


def test_pages_of_jobs_have_no_holes_while_new_ones_come(mine: Mine) -> None:
    jobs = [make_job(mine.project, mine.user, make_spec(name=f"Job {number}")) for number in range(5)]
    seen, cursor = [], ""
    while True:
        page = mine.call.get(f"{mine.jobs}?limit=2&cursor={cursor}").json()
        seen += [one["id"] for one in page["results"]]
        make_job(mine.project, mine.user)
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [job.pk for job in reversed(jobs)]
    for bad in ("x", "WyJ4IiwgMV0", "%00", "WzEsMl0"):
        assert mine.call.get(f"{mine.jobs}?cursor={bad}").status_code == 422


def test_filters_find_what_they_say(mine: Mine) -> None:
    one = make_job(mine.project, mine.user, make_spec(name="Walker ten", tags=["night"], group="seeds"))
    two = make_job(mine.project, mine.user, make_spec("hopper-simulated"))

    def found(query: str) -> list[str]:
        return [job["id"] for job in mine.call.get(f"{mine.jobs}?{query}").json()["results"]]

    assert found("tag=night") == found("group=seeds") == found("name=walker") == [one.pk]
    assert found("platform=simulated") == found("environment=Hopper-v5") == [two.pk]
    assert found("state=active") == found("state=queued") == found("algorithm=ppo") == [two.pk, one.pk]
    assert found("state=failed") == []
    assert "queued" in mine.call.get(f"{mine.jobs}?state=nonsense").json()["fix"]


def test_each_declared_filter_filters_and_is_an_option_of_the_command(mine: Mine) -> None:
    make_job(mine.project, mine.user)
    listed = api.get_openapi_schema()["paths"]["/api/v1/projects/{slug}/jobs"]["get"]
    filters = {one["name"] for one in listed["parameters"] if one["in"] == "query"} - {"cursor", "limit"}
    for name in filters - {"q", "state"}:
        assert mine.call.get(f"{mine.jobs}?{name}=nothing-of-that-name").json()["results"] == [], name
    (command,) = (row for row in COMMANDS if row.does == "GET /jobs" and row.name == ("jobs", "list"))
    assert filters <= {option.to for option in command.options}


def test_a_question_is_asked_as_above_the_list(mine: Mine) -> None:
    make_job(mine.project, mine.user, make_spec(name="Cart pole", tags=["keep"]))
    make_job(mine.project, mine.user, make_spec(name="Hopper"))

    def answer(question: str) -> Any:
        return mine.call("GET", f"{mine.jobs}?{urlencode({'q': question})}").json()

    assert [one["name"] for one in answer('state:active "cart pole"')["results"]] == ["Cart pole"]
    assert [one["name"] for one in answer("limit>0 -tag:keep")["results"]] == ["Hopper"]
    for question, words in (("colour:blue", "colour"), ("steps>1e999", "more than any job has")):
        refused = answer(question)
        assert refused["type"] == "urn:starling:question"
        assert words in refused["why"]


def test_a_list_asks_the_database_as_often_for_many_jobs_as_for_few(mine: Mine) -> None:
    counts = []
    for _ in range(2):
        for _ in range(3):
            make_job(mine.project, mine.user, make_spec(tags=["a", "b"]))
        with CaptureQueriesContext(connection) as answer:
            mine.call.get(mine.jobs)
        counts.append(len(answer))
    assert counts[0] >= counts[1]


def test_an_etag_holds_until_something_changes(mine: Mine) -> None:
    job, epoch = make_running_job(project=mine.project, user=mine.user)
    address = f"{mine.jobs}/{job.pk}"
    etag = mine.call.get(address).headers["ETag"]
    assert mine.call.get(address, If_None_Match=etag).status_code == 304
    Recorder(job.pk, epoch, keep_checkpoints=3).record(round_finished(1))
    assert mine.call.get(address, If_None_Match=etag).status_code == 200
    refused = mine.call.post(f"{address}/stop", If_Match=etag)
    assert refused.status_code == 412
    job.refresh_from_db()
    assert job.desired == "run"
    fresh = mine.call.get(address).headers["ETag"]
    assert mine.call.post(f"{address}/stop", If_Match=fresh).json()["wanted"] == "cancelled"


def test_pause_resume_and_what_cannot_be(mine: Mine) -> None:
    job = make_job(mine.project, mine.user)
    address = f"{mine.jobs}/{job.pk}"
    assert mine.call.post(f"{address}/pause").json()["state"] == "paused"
    assert mine.call.post(f"{address}/resume").json()["state"] == "queued"
    assert mine.call.post(f"{address}/stop").json()["over"] is True
    refused = mine.call.post(f"{address}/pause")
    assert (refused.status_code, "(stopped)" in refused.json()["why"]) == (409, True)


def test_a_budget_is_raised_only_with_its_scope(mine: Mine) -> None:
    job = make_job(mine.project, mine.user)
    address = f"{mine.jobs}/{job.pk}/budget"
    weak = ApiCaller(mine.user, ("jobs",))("PUT", address, {"limit_usd": "2"})
    assert weak.status_code == 403
    assert weak.json()["type"] == "urn:starling:fresh-sign-in"
    assert mine.call("PUT", address, {"limit_usd": "2.5"}).json()["limit_usd"] == "2.5"
    lower = mine.call("PUT", address, {"limit_usd": "1"})
    assert (lower.status_code, lower.headers["Content-Type"]) == (409, "application/problem+json")
    assert mine.call("PUT", address, {"limit_usd": "-1"}).json()["errors"][0]["path"] == "limit_usd"


def test_events_and_rounds_come_in_order_and_whole(mine: Mine) -> None:
    job, epoch = make_running_job(project=mine.project, user=mine.user)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for number in range(1, 6):
        recorder.record(round_finished(number))
    for what, key in (("events", "seq"), ("rounds", "round_no")):
        numbers: list[int] = []
        after: int | None = 0
        while after is not None:
            page = mine.call.get(f"{mine.jobs}/{job.pk}/{what}?limit=2&after={after}").json()
            numbers += [one[key] for one in page["results"]]
            after = page["next"]
        assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) == 5


def test_figures_have_neutral_names_beside_their_first_ones(mine: Mine) -> None:
    job, epoch = make_running_job(project=mine.project, user=mine.user)
    recorder = Recorder(job.pk, epoch, keep_checkpoints=3)
    for event in (round_finished(2), evaluated(2, 123.0)):
        recorder.record(event)

    def pairs(document: dict[str, Any], *names: str) -> list[tuple[Any, Any]]:
        assert all(new in document for new in names[::2])
        return [(document[new], document[old]) for new, old in zip(names[::2], names[1::2], strict=True)]

    def read(what: str = "") -> Any:
        return mine.call.get(f"{mine.jobs}/{job.pk}{what}").json()

    shown = pairs(read(), "subject", "environment", "total_progress", "env_steps")
    shown += pairs(
        read(), "training_score", "episode_return_mean", "evaluated_score", "evaluation_return_mean"
    )
    assert shown == [("CartPole-v1",) * 2, (512, 512), (20.0, 20.0), (123.0, 123.0)]
    report = pairs(
        read("/rounds")["results"][0]["report"],
        *("progress", "env_steps", "total_progress", "total_env_steps"),
        *("training_score", "episode_return_mean", "dropped_contributions", "dropped_trajectories"),
    )
    assert report == [(256, 256), (512, 512), (20.0, 20.0), (0, 0)]
    names = ("total_progress", "env_steps", "evaluated_score", "return_mean")
    assert pairs(read("/evaluations")[0], *names) == [(512, 512), (123.0, 123.0)]
    events = {one["kind"]: one["payload"] for one in read("/events")["results"]}
    assert events["round"]["report"]["total_progress"] == events["evaluation"]["total_progress"] == 512


@pytest.mark.django_db(transaction=True)
def test_a_runs_cost_is_the_same_in_api_page_reports_and_ledger(mine: Mine) -> None:
    """Simulated, so that every call has a price of many digits."""
    spec = mine.spec(
        preset="hopper-simulated",
        training__scaling__actors=2,
        training__rollout__steps_per_call=16,
        training__stop={"rounds": 3, "env_steps": None},
        platform__workers=1,
    )
    job_id = mine.call.post(mine.jobs, spec).json()["id"]
    assert run_job(job_id, owner=os.urandom(8).hex(), hand_over=threading.Event()) == 0
    job = mine.project.jobs.select_related("account").get(pk=job_id)
    total = exact_usd(job.account.spent_picodollars + job.account.overrun_picodollars)
    assert Decimal(total) > 0

    cost = mine.call.get(f"{mine.jobs}/{job_id}/cost").json()
    assert cost["total_usd"] == mine.call.get(f"{mine.jobs}/{job_id}").json()["spent_usd"] == total
    assert sum(Decimal(row["cost_usd"]) for row in cost["by_kind"]) == Decimal(total)

    day, last_day = (moment.date().isoformat() for moment in (job.created_at, datetime.now(UTC)))
    span = f"first_day={day}&last_day={last_day}&prices=simulated"
    for by in ("day", "month", "job", "user", "cloud", "service", "tag"):
        table = mine.call.get(f"/projects/{mine.project.slug}/costs?{span}&by={by}").json()
        assert table["total_usd"] == total, by
        assert sum(Decimal(row["cost_usd"]) for row in table["rows"]) == Decimal(total)

    question = {"format": "json", "first_day": day, "last_day": last_day, "by": "call", "prices": "simulated"}
    answer = mine.call.post(f"/projects/{mine.project.slug}/reports", question)
    assert answer.status_code == 202
    assert mine.call.get(answer.headers["Location"]).json()["file"] is None
    BUILDING.run(answer.json()["id"])
    ready = mine.call.get(answer.headers["Location"]).json()
    assert ready["state"] == "ready"
    file = mine.call.get(ready["file"])
    assert b"".join(file.streaming_content) == (folder() / f"{ready['id']}.json").read_bytes()
    assert json.loads((folder() / f"{ready['id']}.json").read_text())["total"]["cost_usd"] == total

    browser = Client()
    browser.force_login(mine.user)
    page = browser.get(
        reverse("reports:page", args=[mine.project.slug]) + f"?from={day}&to={last_day}&prices=simulated"
    )
    assert re.search(re.escape(total), page.content.decode())
