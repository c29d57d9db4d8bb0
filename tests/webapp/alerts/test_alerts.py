"""Alerts: raised once for each time that something begins, however often it is found; and what people do to them."""

from __future__ import annotations

import html
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client

from tests.factories import FixedClock, make_job, make_project, make_running_job, make_spec, make_user
from tests.figures import figures_in
from tests.members import add_member
from webapp.alerts import queries, services, sources
from webapp.alerts.message import message_of
from webapp.alerts.models import Alert, AlertKind, AlertState, Delivery
from webapp.jobs.models import Job
from webapp.jobs.services import raise_budget
from webapp.money.budgets import create_budget
from webapp.money.models import Account, Crossing
from webapp.money.thresholds import note_crossings

pytestmark = pytest.mark.django_db
USD = 10**12


def _scan(clock: FixedClock) -> None:
    """As each turn of the worker does."""
    for look in (sources.raise_crossings, sources.raise_job_ends, sources.end_outdated):
        look(clock=clock)


def _raise(project: Any, clock: FixedClock, **changes: Any) -> Alert:
    given = {
        "kind": "orphan",
        "subject": "function:starling-1",
        "sentence": "A function was left over.",
        "severity": "warning",
        "dedupe_key": "orphan:starling-1",
        **changes,
    }
    return services.raise_alert(project_id=project and project.pk, clock=clock, **given)


# Once, and again when it is over


def test_what_stands_is_reported_once_and_rearmed_when_it_is_over() -> None:
    project, clock = make_project(), FixedClock()
    first = _raise(project, clock)
    clock.forward(60)
    again = _raise(project, clock, sentence="A function was left over, for a minute.")
    assert again.pk == first.pk
    assert (again.raise_count, again.send_count) == (2, 1)
    assert again.sentence == "A function was left over, for a minute."
    assert again.told_at == first.told_at
    assert Delivery.objects.count() == 1
    assert services.resolve_alert(project_id=project.pk, dedupe_key="orphan:starling-1", clock=clock)
    assert not services.resolve_alert(project_id=project.pk, dedupe_key="orphan:starling-1", clock=clock)
    assert list(first.deliveries.order_by("turn").values_list("turn", "over")) == [(1, False), (2, True)]
    again = _raise(project, clock)
    assert again.pk != first.pk
    assert Delivery.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_twenty_who_find_it_at_once_tell_it_once() -> None:
    project, clock = make_project(), FixedClock()

    def find(_: int) -> None:
        try:
            _raise(project, clock)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(find, range(20)))
    assert Alert.objects.get().raise_count == 20
    assert Delivery.objects.count() == 1


def test_what_grows_worse_is_reported_again_whatever_was_done_about_it() -> None:
    user = make_user()
    project, clock = make_project(user), FixedClock()
    alert = _raise(project, clock)
    services.snooze(alert=alert, user=user, how_long="change", clock=clock)
    assert _raise(project, clock).state == AlertState.SNOOZED
    worse = _raise(project, clock, severity="critical")
    assert (worse.state, worse.send_count) == (AlertState.OPEN, 2)
    assert Delivery.objects.count() == 2
    better = _raise(project, clock, severity="info")
    assert (better.severity, better.send_count) == ("info", 2)


def test_a_snooze_runs_out_and_the_alert_comes_back() -> None:
    user = make_user()
    project, clock = make_project(user), FixedClock()
    alert = _raise(project, clock)
    services.snooze(alert=alert, user=user, how_long="hour", clock=clock)
    assert (alert.state_by, alert.snoozed_until) == (user, clock.now() + timedelta(hours=1))
    clock.forward(3599)
    assert services.wake_snoozed(clock=clock) == 0
    clock.forward(1)
    assert services.wake_snoozed(clock=clock) == 1
    assert services.wake_snoozed(clock=clock) == 0
    alert.refresh_from_db()
    assert (alert.state, alert.state_by, alert.send_count, alert.told_at) == ("open", None, 2, clock.now())
    assert Delivery.objects.filter(alert=alert).count() == 2


def test_who_did_what_and_when_is_kept_and_what_is_over_stays_over() -> None:
    user = make_user()
    clock = FixedClock()
    alert = _raise(make_project(user), clock)
    clock.forward(30)
    services.acknowledge(alert=alert, user=user, clock=clock)
    assert (alert.state, alert.state_by, alert.state_at) == ("acknowledged", user, clock.now())
    services.settle(alert=alert, user=user, clock=clock)
    services.acknowledge(alert=alert, user=user, clock=clock)
    assert alert.state == AlertState.RESOLVED


def test_what_was_only_good_to_know_is_put_away_after_a_week() -> None:
    project, clock = make_project(), FixedClock()
    good, bad = _raise(project, clock, severity="info"), _raise(project, clock, dedupe_key="other")
    clock.forward(7 * 86_400)
    assert services.put_away_old(clock=clock) == 1
    good.refresh_from_db()
    bad.refresh_from_db()
    assert (good.state, bad.state) == ("resolved", "open")


def test_a_write_that_is_taken_back_takes_alert_and_delivery_with_it() -> None:
    project, clock = make_project(), FixedClock()
    with pytest.raises(RuntimeError), transaction.atomic():
        _raise(project, clock)
        raise RuntimeError
    assert not Alert.objects.exists()
    assert not Delivery.objects.exists()


def test_the_installations_alerts_are_for_its_staff() -> None:
    staff, owner = make_user(), make_user()
    staff.is_staff = True
    staff.save()
    project, clock = make_project(owner), FixedClock()
    add_member(project, staff.email, "viewer")
    _raise(None, clock)
    _raise(None, clock)
    assert queries.alerts_for(staff, project).count() == 1
    assert queries.alerts_for(owner, project).count() == 0
    assert Delivery.objects.get().channel.project is None


# Limits


def _spend(job: Job, before: float, after: float, clock: FixedClock) -> None:
    note_crossings(job.account, round(before * USD), round(after * USD), clock.now())


def _job(clock: FixedClock, usd: str = "1.00") -> Job:
    spec = make_spec().model_copy(update={"budget_usd": Decimal(usd), "name": "Hopper"})
    job, _ = make_running_job(clock=clock, spec=spec)
    return job


def test_each_share_of_a_limit_is_reported_once_and_the_next_takes_its_place() -> None:
    clock = FixedClock()
    job = _job(clock)
    _spend(job, 0.40, 0.55, clock)
    assert sources.raise_crossings(clock=clock) == 1
    assert sources.raise_crossings(clock=clock) == 0
    half = Alert.objects.get()
    assert (half.kind, half.severity, half.subject) == ("budget", "info", f"job:{job.pk}")
    assert half.sentence.startswith("Hopper ")
    assert figures_in(half.sentence)[:3] == ["$0.550", "$1.00", "50"]
    _spend(job, 0.55, 0.83, clock)
    _scan(clock)
    (alert,) = Alert.objects.exclude(state=AlertState.RESOLVED)
    assert "80 %" in alert.sentence
    # That 80 % took the place of 50 % is no end of anything.
    assert (
        Alert.objects.count() == Delivery.objects.filter(over=False).count() == Delivery.objects.count() == 2
    )
    assert not Crossing.objects.filter(handled_at=None).exists()


def test_a_jump_over_several_shares_is_one_alert() -> None:
    clock = FixedClock()
    job = _job(clock)
    _spend(job, 0.0, 1.0, clock)
    assert Crossing.objects.count() == 4
    assert sources.raise_crossings(clock=clock) == 1
    alert = Alert.objects.get()
    assert (alert.severity, Delivery.objects.count()) == ("critical", 1)
    assert "all of its $1.00" in alert.sentence


def test_a_raised_limit_ends_what_was_reported_and_arms_again() -> None:
    clock = FixedClock()
    job = _job(clock)
    _spend(job, 0.40, 0.55, clock)
    _scan(clock)
    raise_budget(job=job, user=job.created_by, limit_usd=Decimal("1.10"), clock=clock)
    _scan(clock)
    assert not Alert.objects.exclude(state=AlertState.RESOLVED).exists()
    over = Delivery.objects.select_related("alert").get(over=True)
    assert figures_in(over.alert.over_words) == ["$0.00", "$1.10"]
    job.account.refresh_from_db()
    _spend(job, 0.5, 0.6, clock)
    _scan(clock)
    assert Alert.objects.exclude(state=AlertState.RESOLVED).count() == 1


def test_a_budgets_alert_carries_the_word_of_the_money_below_it() -> None:
    clock, user = FixedClock(), make_user()
    project = make_project(user)
    budget = create_budget(project=project, name="All", limit_picodollars=9 * USD, user=user, clock=clock)
    for spec, word in (("hopper-simulated", "simulated"), ("cartpole", "partly simulated")):
        job = make_job(project=project, clock=clock, spec=make_spec(spec))
        Account.objects.filter(pk=job.account.pk).update(granted_picodollars=USD // 100)
        job.account.budgets.add(budget)
        alert = _raise(project, clock, subject=f"budget:{budget.pk}", dedupe_key=word)
        assert alert.unreal == word
        assert f"({word})" in message_of(alert.deliveries.get()).title


# Pages


def _signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_the_bell_counts_what_is_new_to_this_person() -> None:
    ada = make_user()
    project, clock = make_project(ada), FixedClock()
    bob, cem = make_user(), make_user()
    for person in (bob, cem):
        add_member(project, person.email, "viewer")
    joined = project.memberships.exclude(user=cem)
    joined.update(created_at=clock.now() - timedelta(days=1))
    _raise(project, clock)
    for person in (ada, bob):
        assert queries.bell_of(person, project).count == "1"
    assert queries.bell_of(cem, project).count == "", (
        "what was raised before a person joined is not new to them"
    )
    assert len(queries.bell_of(cem, project).alerts) == 1
    assert _signed_in(ada).post(f"/p/{project.slug}/alerts/seen/").status_code == 200
    assert queries.bell_of(ada, project).count == ""
    assert len(queries.bell_of(ada, project).alerts) == 1
    assert queries.bell_of(bob, project).count == "1"
    page = _signed_in(bob).get(f"/p/{project.slug}/alerts/bell").content.decode()
    assert "Alerts: 1 new" in page
    assert "No mail server" in page


def test_bell_and_page_show_the_same_alerts_before_and_after_they_were_seen() -> None:
    ada = make_user()
    project, clock = make_project(ada), FixedClock()
    project.memberships.update(created_at=clock.now() - timedelta(days=1))
    _raise(project, clock)
    for number in (1, 2):
        finished = {"kind": AlertKind.JOB_FINISHED, "severity": "info", "sentence": f"Job {number} finished."}
        _raise(project, clock, **finished, dedupe_key=f"job:{number}", subject=f"job:{number}")
    client, path = _signed_in(ada), f"/p/{project.slug}/alerts/"
    bell = queries.bell_of(ada, project)
    assert bell.count == "3"
    opened = client.get(path)
    body = opened.content.decode()
    assert all(alert.sentence in body for alert in bell.alerts)
    assert body.count('class="alert-new"') == 3
    # The open page keeps what was new when it was opened.
    kept = "".join(f"&keep={pk}" for pk in opened.context["kept"])
    assert client.get(f"{path}?rows=1{kept}").content.decode().count("<li") == 3
    bell, body = queries.bell_of(ada, project), client.get(path).content.decode()
    assert (bell.count, [alert.kind for alert in bell.alerts]) == ("", ["orphan"])
    assert "Job 1 finished." not in body
    assert "Job 1 finished." in client.get(f"{path}?state=over").content.decode()


def test_the_list_filters_and_its_buttons_come_back_to_it() -> None:
    ada = make_user()
    project, clock = make_project(ada), FixedClock()
    client, path = _signed_in(ada), f"/p/{project.slug}/alerts/"
    assert "No alerts yet" in client.get(path).content.decode()
    alert = _raise(project, clock)
    assert "was left over" in client.get(path).content.decode()
    answer = client.post(f"{path}{alert.pk}/acknowledge/", {"back": f"{path}?state=open"})
    assert answer.headers["Location"] == f"{path}?state=open&keep={alert.pk}"
    assert f"Acknowledged, by {ada.email}" in client.get(answer.headers["Location"]).content.decode()
    for active in ("", "?state=open"):
        assert "was left over" not in client.get(f"{path}{active}").content.decode()
    page = client.get(f"{path}?state=acknowledged&rows=1").content.decode()
    assert f"Acknowledged, by {ada.email}" in page
    answer = client.post(f"{path}{alert.pk}/snooze/", {"for": "day", "back": "https://example.org/"})
    assert answer.headers["Location"] == f"{path}?keep={alert.pk}"
    alert.refresh_from_db()
    assert alert.state == AlertState.SNOOZED
    assert "was left over" not in client.get(path).content.decode()
    assert "was left over" in client.get(f"{path}?state=snoozed").content.decode()
    client.post(f"{path}{alert.pk}/snooze/", {"for": "ever"})
    client.post(f"{path}{alert.pk}/settle/")
    assert "Resolved, by" in client.get(f"{path}?state=over").content.decode()


def test_alerts_acted_on_one_after_the_other_stay_in_their_places_until_the_list_is_opened_anew() -> None:
    ada = make_user()
    project, clock = make_project(ada), FixedClock()
    client, path = _signed_in(ada), f"/p/{project.slug}/alerts/"
    alerts = [_raise(project, clock, dedupe_key=str(number)) for number in range(3)]
    places = [alert.pk for alert in reversed(alerts)]

    def listed(address: str) -> list[int]:
        return list(map(int, re.findall(r'data-alert="(\d+)"', client.get(address).content.decode())))

    address = path
    for alert in alerts[:2]:
        back = re.search(r'name="back" value="([^"]*)"', client.get(address).content.decode())
        given = {"back": html.unescape(back[1] if back else "")}
        address = client.post(f"{path}{alert.pk}/acknowledge/", given).headers["Location"]
    assert listed(address) == listed(f"{address}&rows=1") == places
    assert listed(path) == places[:1]
    assert listed(f"{path}?keep=nonsense&keep={10**20}") == places[:1]
    stranger = make_project(make_user())
    assert listed(f"{path}?keep={_raise(stranger, clock).pk}") == places[:1], "of this project alone"
