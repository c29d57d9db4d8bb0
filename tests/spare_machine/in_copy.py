"""What a platform must pass beside the contract suite, run in a copy of the code that knows a spare machine."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from cloud.platforms.spare import SpareOptions
from django.test import Client
from django.urls import reverse

from cloud.timing.forecast import forecast
from tests.examples import TABS
from tests.factories import make_job, make_project, make_user
from tests.training.specs import tiny
from webapp.jobs.billing.bill_text import summarize_bill
from webapp.jobs.billing.bills import document_of, works_of
from webapp.jobs.form.forms import job_form
from webapp.jobs.launch.checklist import checklist
from webapp.jobs.models import Job
from webapp.jobs.running.headless import Headless
from webapp.jobs.running.runner import run_job
from webapp.jobs.spec import JobSpec
from webapp.money.models import BillSheet
from webapp.reports.job_facts import facts_of


def job_spec(**training: Any) -> JobSpec:
    return JobSpec.model_validate(
        {
            "name": "On the spare machine",
            "training": tiny(**training).model_dump(mode="json"),
            "platform": {"kind": "spare"},
            "budget_usd": "1",
        }
    )


@pytest.mark.django_db
def test_the_form_and_the_check_list_offer_it(client: Client) -> None:
    project, user = make_project(), make_user("spare@example.org")
    form = job_form(start=job_spec())
    typed = {name: form[name].value() for name in form.fields}
    sent = job_form({name: value for name, value in typed.items() if value is not None})
    assert sent.is_valid(), sent.errors
    assert sent.spec is not None
    assert sent.spec.platform == SpareOptions()
    rows = {row.title: row for row in checklist(project, user, job_spec())}
    assert {rows[title].tone for title in ("Credentials", "Quota", "Budget", "Learner")} == {"ok"}


def test_its_forecast_has_its_price() -> None:
    found = forecast(job_spec().training, SpareOptions(), 10**12)
    free = forecast(job_spec().training, SpareOptions(usd_per_hour=0), 10**12)
    assert found.dollars.p50 > free.dollars.p50 == 0
    assert found.dollars.p50 == pytest.approx(6 / 60 * found.minutes.p50, rel=0.3)


@pytest.mark.django_db(transaction=True)
def test_a_job_runs_is_billed_compared_and_shown(client: Client) -> None:
    job = make_job(spec=job_spec(stop={"rounds": 2}))
    assert run_job(job.pk, owner="test", hand_over=threading.Event()) == 0
    job = Job.objects.select_related("account", "project", "created_by").get(pk=job.pk)
    assert (job.observed, job.round_no) == ("succeeded", 2)
    document = document_of(works_of(job), job.parsed_spec().platform)
    assert document["total"] == job.account.spent_picodollars > 0
    assert "one-small-machine" in {one["profile"] for one in document["compared"]}
    assert "the spare machine" in " ".join(
        summarize_bill(BillSheet(document=document), SpareOptions()).elsewhere
    )
    assert facts_of([job.pk])[job.pk].cloud == "Spare machines"
    client.force_login(job.created_by)
    for tab in TABS:
        assert client.get(reverse(f"jobs:{tab}", args=[job.project.slug, job.pk])).status_code == 200


def test_a_run_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    short = job_spec(stop={"rounds": 2}, checkpoints={"every_rounds": 1})
    list(Headless(short, checkpoints=tmp_path).events())
    kept = max(tmp_path.iterdir())
    last = list(Headless(job_spec(stop={"rounds": 4}), resume=kept).events())[-1]
    assert last.rounds == 4
