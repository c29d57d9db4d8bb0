"""What a job can cost at most: its own limit or what a budget above leaves, one figure on every page and in the API."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import make_job, make_project, make_running_job, make_spec, make_user
from tests.ledger_contract import reservation, settlement
from tests.webapp.ab_test_rows import make_ab_test
from tests.webapp.api_callers import ApiCaller
from tests.webapp.site_reading import text_of
from webapp.clock import SYSTEM_CLOCK
from webapp.formatting import display_usd
from webapp.job_states import Observed
from webapp.jobs.launch.checklist import checklist
from webapp.jobs.models import Job, JobGroup, Tag
from webapp.jobs.queries import header
from webapp.money.budgets import create_budget
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account, Budget
from webapp.money.queries import cap_of, cap_together, limits_of

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
    assert f"({cap.because})" in page
    assert cap.because.startswith("“Tiny”")
    assert cap.because.endswith("this month")
    assert "more than $1.00" not in page
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


def grouped(project: Any, *jobs: Job) -> JobGroup:
    group = JobGroup.objects.create(project=project, name="Seeds", created_at=SYSTEM_CLOCK.now())
    group.jobs.set(jobs)
    return group


def test_a_group_names_what_the_tightest_budget_above_it_leaves(browser: Client, project: Any) -> None:
    """The group's own budget of $2 and its jobs' limits of $1 each leave more than the project's budget of 4 cents."""
    made = [make_running_job(project=project) for _ in range(2)]
    group = grouped(project, *(job for job, _ in made))
    create_budget(
        project=project, name="Seeds", limit_picodollars=2 * USD, scope="group", of={"group": group}
    )
    tiny(project)
    (first, epoch), (second, its_epoch) = made
    spend(first, epoch, "a", USD // 100)
    spend(second, its_epoch, "b", USD // 200)
    page = text_of(browser.get(f"/p/{project.slug}/groups/{group.pk}/").content.decode())
    assert re.search(r"Together .* \$0\.0400 \(“Tiny” [^)]*\): \$0\.0150 spent", page)
    assert "$0.0250 free" in page
    assert "$0.0150 of $0.0400" in text_of(browser.get(f"/p/{project.slug}/groups/").content.decode())


def test_jobs_beside_a_group_take_from_what_it_may_cost(browser: Client, project: Any) -> None:
    job, _ = make_running_job(project=project)
    group = grouped(project, job)
    tiny(project)
    other, its_epoch = make_running_job(project=project)
    spend(other, its_epoch, "b", 3 * USD // 100)
    page = text_of(browser.get(f"/p/{project.slug}/groups/{group.pk}/").content.decode())
    cap = cap_together([Account.objects.get(job=job)], [], job.created_at)
    assert cap.total == cap.free < USD // 100
    assert f"{display_usd(cap.total)} (“Tiny” " in page


def test_a_budget_over_some_jobs_of_a_group_leaves_the_others_their_own_limits(project: Any) -> None:
    first, _ = make_running_job(project=project)
    second, _ = make_running_job(project=project)
    tag = Tag.objects.create(project=project, name="small")
    first.tags.add(tag)
    tiny(project, scope="tag", of={"tag": tag})
    accounts = [Account.objects.get(job=job) for job in (first, second)]
    assert cap_together(accounts, [], first.created_at).total == USD + 4 * USD // 100
    assert cap_together(accounts[1:], accounts[:1], first.created_at).total == USD


def test_a_finished_group_says_what_it_cost(browser: Client, project: Any) -> None:
    job, epoch = make_running_job(project=project)
    spend(job, epoch, "a", USD // 100)
    tiny(project)
    Job.objects.filter(pk=job.pk).update(observed=Observed.SUCCEEDED)
    group = grouped(project, job)
    page = text_of(browser.get(f"/p/{project.slug}/groups/{group.pk}/").content.decode())
    assert "1 run. It cost $0.0100 ." in page
    assert "$0.0100 of $1.00" in text_of(browser.get(f"/p/{project.slug}/groups/").content.decode())
    Account.objects.filter(job=job).update(granted_picodollars=USD // 100)
    Budget.objects.update(reserved_picodollars=0)


def test_an_ab_test_names_what_a_budget_above_it_leaves(project: Any, browser: Client) -> None:
    test = make_ab_test(make_job(project))
    tiny(project)
    page = text_of(browser.get(reverse("abtests:detail", args=[project.slug, test.pk])).content.decode())
    assert f"{display_usd(4 * USD // 100)} (“Tiny” " in page


def test_the_list_of_projects_counts_queued_jobs_apart(project: Any, browser: Client) -> None:
    make_running_job(project=project)
    for _ in range(2):
        make_job(project)
    page = text_of(browser.get(reverse("projects:list")).content.decode())
    assert "1 job running · 2 queued" in page
