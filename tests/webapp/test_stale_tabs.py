"""A tab that was open while others changed what it shows overwrites nothing: it says what changed, and asks again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone

from tests.factories import make_connection, make_job, make_project, make_running_job, make_user, make_webhook
from tests.members import add_member
from tests.signed_in import signed_in
from tests.webapp.site_reading import text_of
from webapp.accounts.models import Membership, Project
from webapp.alerts.models import Channel
from webapp.connections.models import Connection, SealedSecret, SetUp
from webapp.jobs.models import Job
from webapp.money.budgets import create_budget
from webapp.money.models import Account, Budget
from webapp.trackers.models import Tracker

pytestmark = pytest.mark.django_db
USD = 10**12


@dataclass(frozen=True)
class Tab:
    """A form on a page. `change`: what another tab does meanwhile; `differs`: what the stale one then reads."""

    page: str
    action: str
    rows: QuerySet[Any]
    typed: dict[str, Any]
    change: Callable[[], Any]
    differs: str


def budget_tab(project: Any) -> Tab:
    budget = create_budget(project=project, name="March", limit_picodollars=USD // 2)
    page = f"/p/{project.slug}/budgets/{budget.pk}/"
    rows = Budget.objects.filter(pk=budget.pk)
    typed = {"name": "April", "limit": "0.5", "at_line": "drain", "thresholds": "50, 80, 100"}
    differs = "Limit was “0.5” and is “0.08” now; you sent “0.5”."
    return Tab(page, "", rows, typed, lambda: rows.update(limit_picodollars=8 * USD // 100), differs)


def budget_close_tab(project: Any) -> Tab:
    tab = budget_tab(project)
    return Tab(tab.page, f"{tab.page}close/", tab.rows, {}, tab.change, "Limit was “0.5” and is “0.08” now.")


def _member(project: Any) -> tuple[str, QuerySet[Membership]]:
    member = add_member(project, make_user("bob@example.org").email, "viewer")
    return f"/p/{project.slug}/members/{member.pk}/", Membership.objects.filter(pk=member.pk)


def role_tab(project: Any) -> Tab:
    base, rows = _member(project)
    differs = "The role was “Viewer” and is “Owner” now; you sent “Editor”."
    page = f"/p/{project.slug}/members/"
    return Tab(page, f"{base}role/", rows, {"role": "editor"}, lambda: rows.update(role="owner"), differs)


def remove_member_tab(project: Any) -> Tab:
    base, rows = _member(project)
    differs = "The role was “Viewer” and is “Owner” now."
    page = f"/p/{project.slug}/members/"
    return Tab(page, f"{base}remove/", rows, {}, lambda: rows.update(role="owner"), differs)


def tracker_tab(project: Any) -> Tab:
    Tracker.objects.create(
        project=project,
        kind="mlflow",
        address="https://127.0.0.1:5000",
        place="Starling",
        created_at=timezone.now(),
    )
    rows = Tracker.objects.filter(project=project)
    page = f"/p/{project.slug}/trackers/mlflow/"
    typed = {"address": "https://127.0.0.1:5000", "place": "Mine", "on": "on"}
    differs = "Send every job's rounds here was “on” and is “off” now; you sent “on”."
    return Tab(page, "", rows, typed, lambda: rows.update(on=False), differs)


def remove_tracker_tab(project: Any) -> Tab:
    tab = tracker_tab(project)
    differs = "Send every job's rounds here was “on” and is “off” now."
    return replace(tab, action=f"{tab.page}remove/", typed={}, differs=differs)


def remove_connection_tab(project: Any) -> Tab:
    """Another owner stored another secret after the dialog was drawn."""
    tab = secret_tab(project)
    return replace(tab, action=f"{tab.page}remove/", typed={})


def remove_channel_tab(project: Any) -> Tab:
    tab = channel_tab(project)
    differs = "Alerts go out here was “on” and is “off” now."
    return replace(tab, action=f"{tab.page}remove/", typed={}, differs=differs)


def identity_tab(project: Any) -> Tab:
    connection = make_connection(project)
    page = f"/p/{project.slug}/clouds/{connection.pk}/"
    rows = Connection.objects.filter(pk=connection.pk)
    typed = {"access_key_id": "AKIAABCDEFGHIJKLMNOP", "secret_access_key": "another+secret=of/twenty"}
    differs = "Access key ID was “AKIAABCDEFGHIJKLMNOP” and is “AKIAZZZZZZZZZZZZZZZZ” now"
    change = lambda: rows.update(access_key_id="AKIAZZZZZZZZZZZZZZZZ")  # noqa: E731
    return Tab(page, f"{page}identity/", rows, typed, change, differs)


def secret_tab(project: Any) -> Tab:
    """Only the secret was replaced: the page never shows it, but when it was set."""
    tab = identity_tab(project)
    secrets = SealedSecret.objects.filter(connection__project=project)
    change = lambda: secrets.update(set_at=timezone.now() + timedelta(hours=1))  # noqa: E731
    return Tab(tab.page, tab.action, secrets, tab.typed, change, "The secret was “set ")


def set_up_tab(project: Any) -> Tab:
    connection = make_connection(project)
    SetUp.objects.create(
        connection=connection, aim="set_up", requested_mb=[1024], ready_mb=[1024], since=timezone.now()
    )
    rows = SetUp.objects.filter(connection=connection)
    page = f"/p/{project.slug}/clouds/{connection.pk}/"
    differs = "Memory was “1024” and is “512, 1024” now; you sent “2048”."
    change = lambda: rows.update(requested_mb=[512, 1024])  # noqa: E731
    return Tab(page, f"{page}set-up/", rows, {"memory_mb": "2048"}, change, differs)


def channel_tab(project: Any) -> Tab:
    channel = make_webhook(project)
    rows = Channel.objects.filter(pk=channel.pk)
    page = f"/p/{project.slug}/alerts/channels/{channel.pk}/"
    typed = {"name": "New", "on": "on", "kinds": ["orphan"]}
    differs = "Alerts go out here was “on” and is “off” now; you sent “on”."
    return Tab(page, f"{page}change/", rows, typed, lambda: rows.update(on=False), differs)


def raise_budget_tab(project: Any) -> Tab:
    job = make_job(project)
    Job.objects.filter(pk=job.pk).update(observed="paused", desired="run", reason_code="budget")
    rows = Account.objects.filter(job=job)
    page = f"/p/{project.slug}/jobs/{job.pk}/"
    change = lambda: rows.update(limit_picodollars=USD * 3 // 2)  # noqa: E731
    differs = "The budget was “1” and is “1.5” now; you sent “2”."
    return Tab(page, f"{page}budget/", rows, {"limit_usd": "2"}, change, differs)


def bounds_tab(project: Any) -> Tab:
    job, _ = make_running_job(project=project)
    rows = Job.objects.filter(pk=job.pk)
    page = f"/p/{project.slug}/jobs/{job.pk}/"
    typed = {"least": "", "most": "3"}
    differs = "The most actors was empty and is “2” now; you sent “3”."
    return Tab(page, f"{page}actors/bounds/", rows, typed, lambda: rows.update(actors_most=2), differs)


def what_if_tab(project: Any) -> Tab:
    job, _ = make_running_job(project=project)
    rows = Account.objects.filter(job=job)
    page = f"/p/{project.slug}/jobs/{job.pk}/what-if/"
    change = lambda: rows.update(limit_picodollars=USD * 3 // 2)  # noqa: E731
    differs = "The budget was “1” and is “1.5” now; you sent “1”."
    return Tab(page, f"{page}apply/", rows, {"actors": "1", "limit_usd": "1"}, change, differs)


def project_tab(project: Any) -> Tab:
    rows = Project.objects.filter(pk=project.pk)
    change = lambda: rows.update(name="Robots")  # noqa: E731
    differs = "Name was “Walking” and is “Robots” now; you sent “Hopping”."
    return Tab(f"/p/{project.slug}/settings/", "", rows, {"name": "Hopping"}, change, differs)


TABS = [
    budget_tab,
    budget_close_tab,
    role_tab,
    remove_member_tab,
    tracker_tab,
    remove_tracker_tab,
    remove_connection_tab,
    remove_channel_tab,
    identity_tab,
    secret_tab,
    set_up_tab,
    channel_tab,
    raise_budget_tab,
    bounds_tab,
    what_if_tab,
    project_tab,
]


def form_on(page: str, action: str) -> str:
    """The markup of the form that is sent to this address; without an address, the first that names none."""
    forms = re.findall(r"<form\b.*?</form>", page, re.DOTALL)
    named = f'action="{action}"'
    if "what-if" in action:
        named = f'formaction="{action}"'
    found = [one for one in forms if (named in one if action else "action=" not in one.split(">")[0])]
    return next(one for one in found if 'method="get"' not in one or "formaction" in one)


def version_in(form: str) -> str:
    found = re.search(r'name="drawn_from" value="([^"]+)"', form)
    assert found is not None, f"no version in {form}"
    return unescape(found[1])


@pytest.mark.parametrize("make", TABS, ids=lambda make: make.__name__.removesuffix("_tab"))
def test_a_stale_tab_changes_nothing_and_says_what_changed(make: Callable[[Any], Tab]) -> None:
    owner = make_user("ada@example.org")
    tab = make(make_project(owner, "Walking"))
    client = signed_in(owner)
    page = client.get(tab.page).content.decode()
    sent = {**tab.typed, "drawn_from": version_in(form_on(page, tab.action))}
    tab.change()
    before = list(tab.rows.values())
    answer = client.post(tab.action or tab.page, sent, follow=True)
    said = text_of(answer.content.decode())
    assert "Nothing was changed," in said
    assert tab.differs in said
    assert list(tab.rows.values()) == before


def test_the_form_that_comes_back_can_be_sent_again() -> None:
    owner = make_user("ada@example.org")
    tab = budget_tab(make_project(owner, "Walking"))
    client = signed_in(owner)
    sent = {**tab.typed, "drawn_from": version_in(form_on(client.get(tab.page).content.decode(), ""))}
    tab.change()
    back = client.post(tab.page, sent)
    assert back.status_code == 422
    assert 'value="April"' in back.content.decode(), "what was typed is kept"
    client.post(
        tab.page, {**sent, "limit": "0.08", "drawn_from": version_in(form_on(back.content.decode(), ""))}
    )
    assert tab.rows.get().name == "April"
    assert tab.rows.get().limit_picodollars == 8 * USD // 100


def test_a_version_that_is_forged_or_of_another_page_changes_nothing() -> None:
    owner = make_user("ada@example.org")
    project = make_project(owner, "Walking")
    tab, other = budget_tab(project), project_tab(project)
    client = signed_in(owner)
    foreign = version_in(form_on(client.get(other.page).content.decode(), ""))
    for version in ("", "nonsense", foreign, foreign[:-1]):
        answer = client.post(tab.page, {**tab.typed, "drawn_from": version})
        assert answer.status_code == 422
        assert "page again" in text_of(answer.content.decode())
    assert tab.rows.get().name == "March"
