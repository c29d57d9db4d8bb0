"""The pages of budgets: set, refused in words, raised after the password was just given, taken away."""

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.factories import make_job, make_project, make_running_job, make_spec, make_user, stopped
from tests.figures import figures_in
from tests.ledger_contract import reservation, settlement
from tests.signed_in import confirm
from webapp.accounts.models import User
from webapp.alerts import sources
from webapp.alerts.models import Alert, AlertKind, AlertState
from webapp.alerts.text import room_again_sentence
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import Observed
from webapp.jobs.models import Job, Tag
from webapp.jobs.running.recorder import Recorder
from webapp.money.budgets import create_budget
from webapp.money.ledger import DatabaseLedger
from webapp.money.models import Account, Budget
from webapp.money.services import close_books, correct

pytestmark = pytest.mark.django_db

USD = 10**12
FIELDS = {"name": "March", "counts": "project", "limit": "4", "period": "monthly", "at_line": "fewer"}


class Visitor:
    """Someone with a password, signed in, and a project."""

    def __init__(self) -> None:
        self.user = make_user(password="a long pass phrase")
        self.project = make_project(self.user)
        self.client = Client()
        self.client.force_login(self.user, backend="django.contrib.auth.backends.ModelBackend")

    def address(self, name: str, **parts: Any) -> str:
        return reverse(f"budgets:{name}", kwargs={"slug": self.project.slug, **parts})

    def sees(self, name: str, **parts: Any) -> str:
        return self.client.get(self.address(name, **parts)).content.decode()

    def sets(self, **fields: Any) -> Any:
        return self.client.post(self.address("new"), {**FIELDS, "thresholds": "50, 90 %", **fields})


@pytest.fixture
def visitor() -> Visitor:
    return Visitor()


def test_a_project_without_budgets_shows_what_they_are_for(visitor: Visitor) -> None:
    assert "No budget limits" in visitor.sees("list")


def test_a_budget_is_set_for_a_tag_that_no_job_has_yet(visitor: Visitor) -> None:
    """The line stands before the first job that it counts."""
    for fields in ({"new_tag": ""}, {"new_tag": "a, b"}, {"counts": "project", "new_tag": "draft"}):
        assert visitor.sets(**{"counts": "new-tag", **fields}).status_code == 422
    assert not Tag.objects.exists()
    assert visitor.sets(counts="new-tag", new_tag="draft").status_code == 302
    budget = Budget.objects.get()
    assert (budget.scope, budget.tag) == ("tag", Tag.objects.get(name="draft"))
    job = make_job(visitor.project, visitor.user, spec=make_spec(tags=["draft"]))
    assert budget.accounts.get() == job.account


def test_a_budget_is_set_and_shown_with_its_figures(visitor: Visitor) -> None:
    job, epoch = make_running_job(project=visitor.project, spec=make_spec("hopper-simulated"))
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", USD), reservation("b", USD // 100)])
    ledger.settle([settlement("a", 85 * USD // 100)])
    assert visitor.sets(limit="$1.00").status_code == 302
    budget = Budget.objects.get()
    assert (budget.limit_picodollars, budget.period, budget.at_line) == (USD, "monthly", "fewer")
    assert (budget.thresholds, budget.created_by) == ([50, 90], visitor.user)
    page = visitor.sees("list")
    for words in (
        "March",
        "85 % spent",
        "<b>$0.850</b> spent",
        "all jobs of this project",
        "a month, resets 1",
    ):
        assert words in page, words


def test_what_counts_is_chosen_from_what_the_project_has(visitor: Visitor) -> None:
    make_job(visitor.project, spec=make_spec(tags=["sweep"], group="seeds"))
    foreign = Tag.objects.create(project=make_project(), name="theirs")
    page = visitor.sees("new")
    assert "Jobs tagged sweep" in page
    assert "the group seeds" in page
    assert f"Jobs of {visitor.user}" in page
    assert "theirs" not in page
    assert visitor.sets(counts=f"tag:{foreign.pk}").status_code == 422
    assert visitor.sets(counts=f"tag:{Tag.objects.get(name='sweep').pk}").status_code == 302
    assert Budget.objects.get().accounts.count() == 1


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"limit": ""}, "field is required"),
        ({"limit": "much"}, "is no amount"),
        ({"limit": "0"}, "than or equal"),
        ({"limit": "0.1234567"}, "six decimals"),
        ({"thresholds": "50, 200"}, "percent between 1 and 100"),
        ({"name": ""}, "field is required"),
    ],
)
def test_what_cannot_be_is_said(visitor: Visitor, fields: dict[str, str], words: str) -> None:
    answer = visitor.sets(**fields)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not Budget.objects.exists()


@pytest.mark.parametrize(
    "typed", ["1,5", "1,50", "0,500", "1234,567", "1.500,00", "1,2345", "1 5", "1e400", "nan", "-1"]
)
def test_an_amount_that_may_mean_another_is_refused_and_changes_nothing(visitor: Visitor, typed: str) -> None:
    answer = visitor.sets(limit=typed)
    assert answer.status_code == 422
    assert f'value="{typed}"' in answer.content.decode(), "what was typed stays"
    assert not Budget.objects.exists()
    job = make_job(visitor.project, visitor.user)
    confirm(visitor.client, visitor.user)
    address = reverse("jobs:raise_budget", args=[visitor.project.slug, job.pk])
    visitor.client.post(address, {"limit_usd": typed})
    assert Account.objects.get().limit_picodollars == job.account.limit_picodollars
    what_if = reverse("predictions:predicted", args=[visitor.project.slug, job.pk])
    assert visitor.client.get(what_if, {"limit_usd": typed}).status_code == 200


@pytest.mark.parametrize(
    ("typed", "understood"), [("1,500", "$1,500.00"), ("$ 1 500.5", "$1,500.50"), ("0.5", "$0.500")]
)
def test_a_set_budget_is_echoed_as_it_was_understood(visitor: Visitor, typed: str, understood: str) -> None:
    assert visitor.sets(limit=typed).status_code == 302
    assert f"“March”, {understood} a month" in visitor.sees("list")
    address = visitor.address("detail", budget_id=Budget.objects.get().pk)
    answer = visitor.client.post(address, {**FIELDS, "limit": typed, "thresholds": "50"}, follow=True)
    assert f"“March”, {understood} a month" in answer.content.decode()


def test_a_limit_below_what_is_spent_is_refused(visitor: Visitor) -> None:
    job, epoch = make_running_job(project=visitor.project)
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", USD)])
    answer = visitor.sets(limit="0.5")
    assert answer.status_code == 422
    assert "$1.00 of it" in answer.content.decode()


def test_raising_wants_the_password_and_goes_on_from_there(visitor: Visitor) -> None:
    budget = create_budget(project=visitor.project, name="March", limit_picodollars=USD)
    fields = {"name": "April", "limit": "2", "at_line": "stop", "thresholds": "50"}
    answer = visitor.client.post(visitor.address("detail", budget_id=budget.pk), fields)
    assert answer.status_code == 302
    assert answer.url.startswith("/accounts/reauthenticate/")
    budget.refresh_from_db()
    assert budget.limit_picodollars == USD
    answer = visitor.client.post(answer.url, {"password": "a long pass phrase"})
    assert answer.url == visitor.address("list")
    budget.refresh_from_db()
    assert (budget.limit_picodollars, budget.name, budget.at_line, budget.arming) == (
        2 * USD,
        "April",
        "stop",
        1,
    )


def test_lowering_and_renaming_want_no_password(visitor: Visitor) -> None:
    budget = create_budget(project=visitor.project, name="March", limit_picodollars=USD)
    fields = {"name": "Less", "limit": "0.5", "at_line": "drain", "thresholds": "50"}
    answer = visitor.client.post(visitor.address("detail", budget_id=budget.pk), fields)
    assert answer.url == visitor.address("list")
    assert Budget.objects.get().limit_picodollars == USD // 2


def test_taking_a_budget_away_wants_the_password_too(visitor: Visitor) -> None:
    budget = create_budget(project=visitor.project, name="March", limit_picodollars=USD)
    close = visitor.address("close", budget_id=budget.pk)
    assert visitor.client.post(close).url.startswith("/accounts/reauthenticate/")
    confirm(visitor.client, visitor.user)
    assert visitor.client.post(close).url == visitor.address("list")
    assert Budget.objects.get().closed_at is not None
    assert visitor.client.get(visitor.address("detail", budget_id=budget.pk)).status_code == 404


def test_raising_a_jobs_budget_wants_the_password(visitor: Visitor) -> None:
    job = make_job(visitor.project)
    address = reverse("jobs:raise_budget", args=[visitor.project.slug, job.pk])
    answer = visitor.client.post(address, {"limit_usd": "3"})
    assert answer.url.startswith("/accounts/reauthenticate/")
    answer = visitor.client.post(answer.url, {"password": "a long pass phrase"})
    assert answer.url == reverse("jobs:detail", args=[visitor.project.slug, job.pk])
    assert Account.objects.get(job=job).limit_picodollars == 3 * USD


def test_a_job_that_an_assumed_cost_stopped_can_resume_once_the_bill_is_corrected(visitor: Visitor) -> None:
    create_budget(project=visitor.project, name="March", limit_picodollars=9 * USD // 100)
    spec = make_spec("hopper-simulated", training__stop__env_steps=8192)
    job, epoch = make_running_job(project=visitor.project, spec=spec)
    DatabaseLedger(job.account.pk, epoch).reserve([reservation("a", 8 * USD // 100)])
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(stopped("budget"))
    close_books(job_id=job.pk, before_epoch=epoch + 1, clock=SYSTEM_CLOCK)
    alerts = Alert.objects.filter(kind=AlertKind.BUDGET, project=visitor.project).exclude(
        state=AlertState.RESOLVED
    )
    sources.raise_crossings()
    sources.end_outdated()
    assert alerts.count() == 1
    address = reverse("jobs:detail", args=[visitor.project.slug, job.pk])
    assert "There is room" not in visitor.client.get(address).content.decode()

    less = settlement("a", USD // 1000)
    assert correct(account_id=job.account.pk, epoch=epoch, name="a", settlement=less)
    sources.end_outdated()
    assert not alerts.exists()
    words = Alert.objects.get(kind=AlertKind.BUDGET, subject__startswith="budget:").over_words
    assert figures_in(words) == ["$0.00100", "$0.0900"]
    page = visitor.client.get(address).content.decode()
    assert room_again_sentence([890 * USD // 10_000]).split(" Its page")[0] in page
    go_on = reverse("jobs:go_on", args=[visitor.project.slug, job.pk])
    visitor.client.post(go_on)
    assert Job.objects.get(pk=job.pk).observed == Observed.QUEUED


def test_a_stopped_job_goes_on_from_its_page_or_says_why_not(visitor: Visitor) -> None:
    budget = create_budget(project=visitor.project, name="March", limit_picodollars=9 * USD // 100)
    spec = make_spec("hopper-simulated", training__stop__env_steps=8192)
    job, epoch = make_running_job(project=visitor.project, spec=spec)
    ledger = DatabaseLedger(job.account.pk, epoch)
    ledger.reserve([reservation("a", 8 * USD // 100)])
    ledger.settle([settlement("a", 8 * USD // 100)])
    Recorder(job.pk, epoch, keep_checkpoints=3).finish(stopped("budget"))
    page = visitor.client.get(reverse("jobs:detail", args=[visitor.project.slug, job.pk])).content.decode()
    assert "Resume within" in page
    assert "and go on" not in page, "its own limit is not what stopped it"
    raise_it = f"{visitor.address('detail', budget_id=budget.pk)}?job={job.pk}"
    assert f'href="{raise_it}"' in page
    assert 'value="0.18"' in visitor.client.get(raise_it).content.decode()
    assert job.name in visitor.sees("list")
    go_on = reverse("jobs:go_on", args=[visitor.project.slug, job.pk])
    page = visitor.client.post(go_on, follow=True).content.decode()
    assert "of its $0.0900 free" in page
    fields = {"name": "March", "limit": "1", "at_line": "drain", "thresholds": "50"}
    confirm(visitor.client, visitor.user)
    assert visitor.client.post(raise_it, fields).url == reverse(
        "jobs:detail", args=[visitor.project.slug, job.pk]
    )
    visitor.client.post(go_on)
    job.refresh_from_db()
    assert job.observed == "queued"


def test_staff_sets_and_raises_what_stands_above_all_projects(visitor: Visitor) -> None:
    assert "?above" not in visitor.sees("list")
    new = f"{visitor.address('new')}?above"
    assert "of this installation" not in visitor.client.get(new).content.decode()
    User.objects.filter(pk=visitor.user.pk).update(is_staff=True)
    stranger = make_job(spec=make_spec()).created_by
    assert "?above" in visitor.sees("list")
    page = visitor.client.get(new).content.decode()
    assert "of this installation" in page
    assert f"Jobs of {stranger}" in page
    assert "jobs of this project" not in page
    fields = {**FIELDS, "name": "House", "counts": "everything", "thresholds": "50"}
    assert visitor.client.post(new, fields).status_code == 302
    budget = Budget.objects.get()
    assert (budget.project, budget.scope, budget.accounts.count()) == (None, "everything", 1)
    address = visitor.address("detail", budget_id=budget.pk)
    raised = {"name": "House", "limit": "9", "at_line": "stop", "thresholds": "50"}
    assert visitor.client.post(address, raised).url.startswith("/accounts/reauthenticate/")
    confirm(visitor.client, visitor.user)
    visitor.client.post(address, raised)
    budget.refresh_from_db()
    assert budget.limit_picodollars == 9 * USD
    User.objects.filter(pk=visitor.user.pk).update(is_staff=False)
    assert visitor.client.get(address).status_code == 404


def test_what_stands_above_all_projects_is_shown_without_whose_money_it_is(visitor: Visitor) -> None:
    create_budget(project=None, name="House", limit_picodollars=7 * USD, scope="everything")
    page = visitor.sees("list")
    assert "Above all projects" in page
    assert "$7.00 of $7.00 is free" in page
