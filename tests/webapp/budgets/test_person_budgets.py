"""A budget of a person: a hard limit of what their jobs spend a month in a project, which only owners lift."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import make_job, make_project, make_spec, make_user
from tests.members import add_member
from tests.signed_in import PASSWORD, signed_in
from tests.webapp.api_callers import ApiCaller
from webapp.jobs.services import SpecRefused
from webapp.money.budgets import create_budget
from webapp.money.models import Budget

pytestmark = pytest.mark.django_db

USD = 10**12
SIMULATED = "hopper-simulated"


@pytest.fixture
def owner() -> Any:
    return make_user("ada@example.org")


@pytest.fixture
def bob() -> Any:
    return make_user("bob@example.org", PASSWORD)


@pytest.fixture
def project(owner: Any, bob: Any) -> Any:
    project = make_project(owner)
    add_member(project, bob.email, "editor")
    return project


def limit(project: Any, bob: Any, picodollars: int) -> Budget:
    of = {"user": bob}
    return create_budget(
        project=project, name="Bob", limit_picodollars=picodollars, scope="user", of=of, period="monthly"
    )


def test_it_is_set_from_the_members_page(project: Any, owner: Any, bob: Any) -> None:
    client, slug = signed_in(owner), project.slug
    page = client.get(f"/p/{slug}/members/").content.decode()
    assert f"/p/{slug}/budgets/new/?person={bob.pk}" in page
    form = client.get(f"/p/{slug}/budgets/new/?person={bob.pk}").content.decode()
    assert f'<option value="user:{bob.pk}" selected>' in form
    assert 'value="bob@example.org, a month"' in form
    given = {"name": "Bob", "counts": f"user:{bob.pk}", "limit": "50", "period": "monthly"}
    client.post(f"/p/{slug}/budgets/new/", {**given, "at_line": "drain", "thresholds": "80"})
    assert Budget.objects.get().user == bob
    assert "$0.00 of $50.00 a month" in client.get(f"/p/{slug}/members/").content.decode()
    stranger = make_user()
    other = client.get(f"/p/{slug}/budgets/new/?person={stranger.pk}").content.decode()
    assert stranger.email not in other


def test_a_launch_beyond_it_is_refused_with_its_reason_and_others_launch(
    project: Any, owner: Any, bob: Any
) -> None:
    limit(project, bob, 10)
    spec = make_spec(SIMULATED)
    with pytest.raises(SpecRefused, match=r"“Bob” .*bob@example\.org has"):
        make_job(project, bob, spec)
    assert make_job(project, owner, spec).account.budgets.count() == 0


def test_what_a_persons_jobs_hold_counts_in_it(project: Any, bob: Any) -> None:
    budget = limit(project, bob, 50 * USD)
    job = make_job(project, bob, make_spec(SIMULATED))
    budget.refresh_from_db()
    job.account.refresh_from_db()
    assert budget.reserved_picodollars == job.account.granted_picodollars > 0


def test_only_an_owner_raises_or_closes_it(project: Any, owner: Any, bob: Any) -> None:
    """It limits an editor, who raises and closes other budgets."""
    budget = limit(project, bob, 50 * USD)
    page = f"/p/{project.slug}/budgets/{budget.pk}/"
    fields = {"name": "Bob", "at_line": "drain", "thresholds": "80"}
    his = signed_in(bob)
    assert his.post(page, {**fields, "limit": "60"}).status_code == 403
    assert his.post(f"{page}close/").status_code == 403
    address = f"/projects/{project.slug}/budgets/{budget.pk}"
    call = ApiCaller(bob)
    assert call("PUT", address, {"limit_usd": "60"}).status_code == 403
    assert call("DELETE", address).status_code == 403
    budget.refresh_from_db()
    assert (budget.limit_picodollars, budget.closed_at) == (50 * USD, None)
    assert his.post(page, {**fields, "limit": "40"}).status_code == 302
    assert signed_in(owner).post(page, {**fields, "limit": "60"}).status_code == 302
    assert ApiCaller(owner)("DELETE", address).status_code == 200
    budget.refresh_from_db()
    assert (budget.limit_picodollars, budget.closed_at is None) == (60 * USD, False)
