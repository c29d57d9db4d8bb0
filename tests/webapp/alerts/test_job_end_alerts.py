"""Alerts about the ends of jobs: one for a job alone, one for all of a group that fell, and one when it has ended."""

from __future__ import annotations

import html
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from tests.factories import FixedClock, make_job, make_project, make_spec, make_user
from tests.figures import figures_in
from webapp.alerts import queries, services, sources
from webapp.alerts.message import path_to
from webapp.alerts.models import Alert, AlertKind, AlertState, Delivery
from webapp.alerts.text import GOES_ON, room_again_sentence
from webapp.job_states import Observed
from webapp.jobs.events.event_log import transition
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.reasons import ReasonCode, StateChange
from webapp.money.models import Account

pytestmark = pytest.mark.django_db
USD = 10**12


def _scan(clock: FixedClock) -> None:
    """As each turn of the worker does."""
    for look in (sources.raise_crossings, sources.raise_job_ends, sources.end_outdated):
        look(clock=clock)


def _signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def _ended(job: Job, to: Observed, code: str, clock: FixedClock) -> None:
    Job.objects.filter(pk=job.pk).update(observed=Observed.RUNNING)
    transition(job.pk, StateChange(to, ReasonCode(code), "That was it."), clock=clock)


@pytest.mark.parametrize(
    ("to", "code", "kind", "severity"),
    [
        (Observed.FAILED, "crashed", AlertKind.JOB_FAILED, "critical"),
        (Observed.SUCCEEDED, "steps", AlertKind.JOB_FINISHED, "info"),
        (Observed.PAUSED, "budget", AlertKind.JOB_STOPPED, "warning"),
    ],
)
def test_the_end_of_a_job_is_reported_once(to: Observed, code: str, kind: str, severity: str) -> None:
    clock = FixedClock()
    job = make_job(clock=clock)
    _ended(job, to, code, clock)
    _scan(clock)
    _scan(clock)
    alert = Alert.objects.get()
    assert (alert.kind, alert.severity, alert.subject) == (kind, severity, f"job:{job.pk}")
    assert "That was it." in alert.sentence
    services.settle(alert=alert, user=job.created_by, clock=clock)
    assert sources.raise_job_ends(clock=clock) == 0, "an end that was put away is not news again"


def test_a_group_finishes_with_one_alert_once_its_last_job_has_ended() -> None:
    clock = FixedClock()
    project = make_project()
    group = JobGroup.objects.create(project=project, name="Hopper", of_seeds=True, created_at=clock.now())
    jobs = [make_job(project=project, clock=clock) for _ in range(4)]
    group.jobs.set(jobs)
    for job in jobs[:3]:
        _ended(job, Observed.SUCCEEDED, "steps", clock)
        _scan(clock)
    assert not Alert.objects.exists(), "one still runs"
    _ended(jobs[3], Observed.FAILED, "crashed", clock)
    for _ in range(2):
        _scan(clock)
    failed, finished = Alert.objects.order_by("kind")
    assert (failed.kind, failed.subject) == (AlertKind.JOB_FAILED, f"group:{group.pk}")
    assert (finished.kind, finished.subject) == (AlertKind.JOB_FINISHED, f"group:{group.pk}")
    assert figures_in(finished.sentence) == ["3", "4", "1"]
    assert path_to(finished) == f"/p/{project.slug}/groups/{group.pk}/"
    later = make_job(project=project, clock=clock, spec=make_spec("hopper-simulated"))
    group.jobs.add(later)
    _scan(clock)
    assert Alert.objects.count() == 2
    _ended(later, Observed.SUCCEEDED, "steps", clock)
    _scan(clock)
    newest = Alert.objects.order_by("pk").last()
    assert newest is not None
    assert figures_in(newest.sentence) == ["4", "5", "1"]
    assert newest.unreal == "partly simulated"


def _group_of(count: int, clock: FixedClock, **given: Any) -> tuple[JobGroup, list[Job]]:
    project = given.pop("project", None) or make_project()
    group = JobGroup.objects.create(project=project, name="Hopper", of_seeds=True, created_at=clock.now())
    jobs = [make_job(project=project, clock=clock, **given) for _ in range(count)]
    group.jobs.set(jobs)
    return group, jobs


@pytest.mark.parametrize(
    ("to", "code", "kind", "what"),
    [
        (Observed.FAILED, "crashed", AlertKind.JOB_FAILED, "failed"),
        (Observed.PAUSED, "budget", AlertKind.JOB_STOPPED, "stopped"),
    ],
)
def test_ten_seeds_that_fall_raise_one_alert_and_send_one_message(
    to: Observed, code: str, kind: str, what: str
) -> None:
    clock, ada = FixedClock(), make_user()
    project = make_project(ada)
    project.memberships.update(created_at=clock.now() - timedelta(days=1))
    group, jobs = _group_of(10, clock, project=project)
    for at, job in enumerate(jobs):
        _ended(job, to, code, clock)
        _scan(clock)
        clock.forward(30)
        alert = Alert.objects.get()
        assert figures_in(alert.sentence)[:2] == [str(at + 1), "10"]
        assert f"Hopper {what}" in alert.sentence
    assert (alert.kind, alert.subject) == (kind, f"group:{group.pk}")
    assert path_to(alert) == f"/p/{project.slug}/groups/{group.pk}/"
    assert Delivery.objects.count() == 1
    assert queries.bell_of(ada, project).count == "1"
    page = _signed_in(ada).get(f"/p/{project.slug}/alerts/").content.decode()
    assert page.count('class="alert-new"') == 1
    assert html.escape(alert.sentence) in page
    services.settle(alert=alert, user=ada, clock=clock)
    _scan(clock)
    assert Alert.objects.count() == 1, "what a person put away is not news again"
    later = make_job(project=project, clock=clock)
    group.jobs.add(later)
    _ended(later, to, code, clock)
    _scan(clock)
    assert Alert.objects.count() == 2
    assert figures_in(Alert.objects.latest("pk").sentence)[:2] == ["11", "11"]
    assert f"Hopper {what}" in Alert.objects.latest("pk").sentence


def test_a_group_that_falls_again_a_day_later_is_news() -> None:
    clock = FixedClock()
    _, jobs = _group_of(2, clock)
    for number, job in enumerate(jobs, 1):
        _ended(job, Observed.FAILED, "crashed", clock)
        _scan(clock)
        assert Delivery.objects.filter(over=False).count() == Delivery.objects.count() == number
        clock.forward(86_401)
    assert Alert.objects.exclude(state=AlertState.RESOLVED).count() == 1


def test_the_alert_of_a_stopped_group_ends_once_none_of_its_jobs_is_stopped() -> None:
    clock = FixedClock()
    _, jobs = _group_of(2, clock)
    for job in jobs:
        _ended(job, Observed.PAUSED, "budget", clock)
    _scan(clock)
    for job in jobs:
        assert Alert.objects.get().state == AlertState.OPEN
        Job.objects.filter(pk=job.pk).update(observed=Observed.QUEUED, reason_code="")
        _scan(clock)
    assert Alert.objects.get().over_words == GOES_ON


def test_a_stopped_jobs_alert_ends_with_the_room_for_its_next_round() -> None:
    clock = FixedClock()
    job = make_job(clock=clock, spec=make_spec("hopper-simulated"))
    limit = job.account.limit_picodollars
    Account.objects.filter(pk=job.account.pk).update(spent_picodollars=limit)
    _ended(job, Observed.PAUSED, "budget", clock)
    _scan(clock)
    assert sources.end_stops_with_room(clock=clock) == 0
    Account.objects.filter(pk=job.account.pk).update(spent_picodollars=limit // 10)
    assert sources.end_stops_with_room(clock=clock) == 1
    _scan(clock)
    ended = Delivery.objects.get(over=True)
    assert ended.alert.over_words.startswith(room_again_sentence([0]).split("$")[0])
    assert Alert.objects.count() == 1
    Account.objects.filter(pk=job.account.pk).update(spent_picodollars=0)


def test_a_job_that_goes_on_ends_its_alert_and_its_next_stop_is_news() -> None:
    clock = FixedClock()
    job = make_job(clock=clock)
    for epoch in (1, 2):
        Job.objects.filter(pk=job.pk).update(lease_epoch=epoch)
        _ended(job, Observed.PAUSED, "budget", clock)
        _scan(clock)
        assert Alert.objects.count() == epoch
        Job.objects.filter(pk=job.pk).update(observed=Observed.QUEUED, reason_code="")
        _scan(clock)
        assert not Alert.objects.exclude(state=AlertState.RESOLVED).exists()


def test_what_somebody_stopped_and_what_ended_long_ago_is_no_news() -> None:
    clock = FixedClock()
    _ended(make_job(clock=clock), Observed.CANCELLED, "cancelled", clock)
    _ended(make_job(clock=clock), Observed.FAILED, "crashed", clock)
    clock.forward(86_401)
    assert sources.raise_job_ends(clock=clock) == 0


def test_a_simulated_jobs_alert_carries_the_word() -> None:
    clock = FixedClock()
    job = make_job(clock=clock, spec=make_spec("hopper-simulated"))
    _ended(job, Observed.FAILED, "crashed", clock)
    _scan(clock)
    assert Alert.objects.get().unreal == "simulated"
