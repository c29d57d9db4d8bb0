"""What a job can cost at most: its own limit or what a budget above leaves, one figure on every page and in the API."""

from typing import Any

import pytest
from django.test import Client

from tests.factories import make_job, make_project, make_running_job, make_spec, make_user
from tests.ledger_contract import reservation, settlement
from tests.webapp.api_callers import ApiCaller
from tests.webapp.site_reading import text_of
from webapp.jobs.launch.checklist import checklist
from webapp.jobs.models import Job
from webapp.jobs.queries import header
from webapp.money.budgets import create_budget
from webapp.money.ledger import DatabaseLedger
from webapp.money.queries import cap_of, limits_of

pytestmark = pytest.mark.django_db
USD = 10**12


@pytest.fixture
def project() -> Any:
    return make_project(make_user("ada@example.org"))


@pytest.fixture
def browser(project: Any) -> Client:
    client = Client()
    client.force_login(project.people.get(), backend="django.contrib.auth.backends.ModelBackend")
    return client


def tiny(project: Any, **options: Any) -> Any:
    return create_budget(project=project, name="Tiny", limit_picodollars=4 * USD // 100, **options)


def spend(job: Job, epoch: int, name: str, amount: int) -> None:
    ledger = DatabaseLedger(job.account.pk, epoch)
    assert ledger.reserve([reservation(name, amount)]) == [True]
    ledger.settle([settlement(name, amount)])


def test_a_job_under_a_smaller_budget_says_what_that_leaves(browser: Client, project: Any) -> None:
    tiny(project, period="monthly")
    job, epoch = make_running_job(project=project)
    other, its_epoch = make_running_job(project=project)
    spend(job, epoch, "a", USD // 100)
    spend(other, its_epoch, "b", USD // 200)
    page = text_of(browser.get(f"/p/{project.slug}/jobs/{job.pk}/").content.decode())
    job = Job.objects.get(pk=job.pk)
    free = min(limit.room for limit in limits_of(job.account.pk, "drain", job.created_at))
    cap = cap_of(job.account, job.created_at)
    assert (cap.free, cap.total) == (free, USD // 100 + free)
    assert cap.total < 4 * USD // 100
    assert "(“Tiny” leaves no more this month)" in page
    assert "cannot cost more than $1.00" not in page
    sent = header(job)
    assert sent["free_usd"] == f"{free / USD:.4f}".rstrip("0")
    assert float(sent["cap_usd"]) == pytest.approx(cap.total / USD, abs=1e-12)
    caller = ApiCaller(project.people.get())
    shown = caller.get(f"/projects/{project.slug}/jobs/{job.pk}").json()
    cost = caller.get(f"/projects/{project.slug}/jobs/{job.pk}/cost").json()
    assert {one["cap_usd"] for one in (shown, cost)} == {sent["cap_usd"]}
    assert {one["free_usd"] for one in (shown, cost)} == {sent["free_usd"]}


def test_a_job_that_is_over_is_limited_by_its_own_limit_alone(project: Any) -> None:
    budget = tiny(project)
    job = make_job(project)
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    assert header(Job.objects.get(pk=job.pk))["cap_usd"] == "1"
    Job.objects.filter(pk=job.pk).update(observed="running")
    assert header(Job.objects.get(pk=job.pk))["cap_usd"] == "0.04"
    budget.closed_at = job.created_at
    budget.save()
    assert header(Job.objects.get(pk=job.pk))["cap_because"] == ""


def test_the_launch_button_learns_what_a_budget_above_leaves(project: Any) -> None:
    row = next(one for one in checklist(project, project.people.get(), make_spec()) if one.title == "Budget")
    assert row.cap_usd == ""
    tiny(project)
    row = next(one for one in checklist(project, project.people.get(), make_spec()) if one.title == "Budget")
    assert (row.tone, row.cap_usd) == ("warning", "0.04")
