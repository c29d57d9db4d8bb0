"""Alert rules of a project's own: what they mean, when they hold, and that they end."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from hypothesis import example, given
from hypothesis import strategies as st

from tests.factories import (
    FixedClock,
    evaluated,
    make_project,
    make_running_job,
    make_user,
    make_webhook,
    round_finished,
)
from tests.figures import figures_in
from tests.members import add_member
from webapp.alerts.models import Alert, AlertKind, AlertState, Delivery, Rule
from webapp.alerts.rules import (
    MOST_RULES,
    NOT_RUNNING,
    QUIET_FOR,
    REMOVED,
    FigureRule,
    NoImprovement,
    RuleRefused,
    add_rule,
    parse,
    remove_rule,
    scan_rules,
)
from webapp.alerts.services import acknowledge
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder

USD = 10**12


@pytest.mark.parametrize(
    ("text", "meant", "written"),
    [
        ("return > 2,000", FigureRule("return", True, 2000.0), "return > 2,000"),
        ("  KL>0.1 ", FigureRule("kl", True, 0.1), "kl > 0.1"),
        ("return < -5", FigureRule("return", False, -5.0), "return < -5"),
        ("gradient_norm > 1e3", FigureRule("gradient_norm", True, 1000.0), "gradient_norm > 1,000"),
        ("No improvement for $1", NoImprovement(USD), "no improvement for $1.00"),
        ("no improvement for $0.05", NoImprovement(USD // 20), "no improvement for $0.0500"),
    ],
)
def test_a_rule_means_what_it_says(text: str, meant: Any, written: str) -> None:
    assert parse(text) == meant
    assert parse(text).text == written
    assert parse(written) == meant, "as it is kept, it is read again"


@given(
    st.from_regex(r"(return|kl) [<>] -?[0-9,]{0,20}\.?[0-9]{1,20}(e-?[0-9]{1,3})?", fullmatch=True)
    | st.from_regex(r"no improvement for \$[0-9,]{0,9}\.?[0-9]{1,15}", fullmatch=True)
)
@example("return > 1e13")
@example("no improvement for $1234.5678")
@example("no improvement for $0.000000000001")
@example("no improvement for $999999.999")
def test_a_rule_that_is_kept_is_read_again_as_what_it_was(text: str) -> None:
    try:
        meant = parse(text)
    except RuleRefused:
        return
    assert len(meant.text) <= 80
    assert parse(meant.text) == meant


def test_what_is_not_known_holds_nothing() -> None:
    assert not parse("kl > 0.1").holds({"kl": None})  # type: ignore[union-attr]
    assert not parse("kl < 0.1").holds({})  # type: ignore[union-attr]


@pytest.fixture
def running() -> tuple[Job, Recorder, Any]:
    owner = make_user()
    job, epoch = make_running_job(project=make_project(owner), user=owner)
    return job, Recorder(job.pk, epoch, keep_checkpoints=3), owner


def _open(job: Job) -> list[str]:
    alerts = Alert.objects.filter(project=job.project, kind=AlertKind.RULE).exclude(state=AlertState.RESOLVED)
    return [alert.sentence for alert in alerts]


@pytest.mark.django_db
def test_a_rule_raises_once_and_ends_when_it_has_not_held_for_a_while(
    running: tuple[Job, Recorder, Any],
) -> None:
    job, recorder, owner = running
    clock = FixedClock()
    add_rule(project=job.project, user=owner, text="return > 100")
    recorder.record(round_finished(1, mean=90.0))
    assert scan_rules(clock=clock) == 0
    assert _open(job) == []
    recorder.record(round_finished(2, mean=120.0))
    assert scan_rules(clock=clock) == scan_rules(clock=clock) == 1
    (sentence,) = _open(job)
    assert sentence.startswith(job.name)
    assert figures_in(sentence) == ["120", "2", "100"]
    recorder.record(round_finished(3, mean=80.0))
    clock.forward(QUIET_FOR.total_seconds() - 1)
    assert scan_rules(clock=clock) == 0
    assert len(_open(job)) == 1
    clock.forward(1)
    assert scan_rules(clock=clock) == 0
    assert _open(job) == []
    assert figures_in(Alert.objects.get(kind=AlertKind.RULE).over_words) == ["15"]


@pytest.mark.django_db
def test_a_figure_that_crosses_its_bound_each_round_sends_one_message(
    running: tuple[Job, Recorder, Any],
) -> None:
    job, recorder, owner = running
    clock = FixedClock()
    make_webhook(job.project)
    add_rule(project=job.project, user=owner, text="return > 100")
    for round_no in range(1, 13):  # an hour
        recorder.record(round_finished(round_no, mean=120.0 if round_no % 2 else 80.0))
        scan_rules(clock=clock)
        clock.forward(300)
    assert Alert.objects.get(kind=AlertKind.RULE).send_count == 1
    assert Delivery.objects.filter(channel__built_in=False).count() == 1
    for _ in range(2):
        clock.forward(QUIET_FOR.total_seconds())
        scan_rules(clock=clock)
    assert list(Delivery.objects.filter(channel__built_in=False).values_list("over", flat=True)) == [
        False,
        True,
    ]


@pytest.mark.django_db
def test_a_rule_that_crosses_its_bound_stays_acknowledged(running: tuple[Job, Recorder, Any]) -> None:
    job, recorder, owner = running
    clock = FixedClock()
    add_rule(project=job.project, user=owner, text="return > 100")
    for round_no, mean in enumerate((120.0, 80.0, 120.0), 1):
        recorder.record(round_finished(round_no, mean=mean))
        scan_rules(clock=clock)
        if round_no == 1:
            acknowledge(alert=Alert.objects.get(kind=AlertKind.RULE), user=owner, clock=clock)
        clock.forward(60)
    assert Alert.objects.get(kind=AlertKind.RULE).state == AlertState.ACKNOWLEDGED


@pytest.mark.django_db
def test_money_without_a_better_evaluation_is_reported(running: tuple[Job, Recorder, Any]) -> None:
    job, recorder, owner = running
    add_rule(project=job.project, user=owner, text="no improvement for $0.50")
    for no in range(1, 8):
        recorder.record(round_finished(no, spent=no * USD // 10))
        if no in (1, 3, 5):
            recorder.record(evaluated(no, mean={1: 50.0, 3: 40.0, 5: 45.0}[no]))
        holds = scan_rules(clock=FixedClock())
        assert holds == (1 if no >= 6 else 0), no
    (sentence,) = _open(job)
    assert sentence.startswith(job.name)
    assert figures_in(sentence) == ["$0.600", "$0.500"]


@pytest.mark.django_db
def test_a_rule_that_can_no_longer_be_read_stops_no_other(running: tuple[Job, Recorder, Any]) -> None:
    job, recorder, owner = running
    stored = {"project": job.project, "created_by": owner, "created_at": FixedClock().now()}
    Rule.objects.create(text="a_figure_of_an_earlier_version > 1", **stored)
    add_rule(project=job.project, user=owner, text="return > 1")
    recorder.record(round_finished(1, mean=20.0))
    assert scan_rules(clock=FixedClock()) == 1
    assert [figures_in(sentence) for sentence in _open(job)] == [["20", "1", "1"]]


@pytest.mark.django_db
def test_alerts_end_with_their_job_and_with_their_rule(running: tuple[Job, Recorder, Any]) -> None:
    job, recorder, owner = running
    kept = add_rule(project=job.project, user=owner, text="return > 1")
    gone = add_rule(project=job.project, user=owner, text="return > 2")
    recorder.record(round_finished(1, mean=20.0))
    assert scan_rules(clock=FixedClock()) == 2
    remove_rule(rule=gone, clock=FixedClock())
    assert len(_open(job)) == 1
    Job.objects.filter(pk=job.pk).update(observed="succeeded")
    assert scan_rules(clock=FixedClock()) == 0
    assert _open(job) == []
    ended = Alert.objects.filter(kind=AlertKind.RULE).values_list("over_words", flat=True)
    assert sorted(ended) == [NOT_RUNNING, REMOVED]
    assert Rule.objects.get() == kept


@pytest.mark.django_db
def test_rules_are_of_one_project_and_not_too_many(running: tuple[Job, Recorder, Any]) -> None:
    job, recorder, owner = running
    elsewhere = make_project(make_user())
    recorder.record(round_finished(1, mean=20.0))
    add_rule(project=elsewhere, user=owner, text="return > 1")
    assert scan_rules(clock=FixedClock()) == 0
    first = add_rule(project=job.project, user=owner, text="return > 0")
    assert add_rule(project=job.project, user=owner, text="Return  >  0") == first
    for at in range(1, MOST_RULES):
        add_rule(project=job.project, user=owner, text=f"return > {at}")
    with pytest.raises(RuleRefused, match="at most 20 rules"):
        add_rule(project=job.project, user=owner, text="return > 99")


@pytest.mark.django_db
def test_the_page_adds_and_removes_for_editors(client: Client, running: tuple[Job, Recorder, Any]) -> None:
    job, _, owner = running
    client.force_login(owner)
    address = f"/p/{job.project.slug}/alerts/rules/"
    assert "No rule yet" in client.get(address).content.decode()
    refused = client.post(f"{address}add/", {"text": "reward > 3"})
    assert refused.status_code == 422
    assert "is no figure" in refused.content.decode()
    assert 'value="reward &gt; 3"' in refused.content.decode()
    client.post(f"{address}add/", {"text": "return > 2,000"})
    assert "return &gt; 2,000" in client.get(address).content.decode()
    viewer = make_user()
    add_member(job.project, viewer.email, "viewer")
    client.force_login(viewer)
    page = client.get(address).content.decode()
    assert "return &gt; 2,000" in page
    assert "rules/add/" not in page
    client.force_login(owner)
    others = add_rule(project=make_project(make_user()), user=owner, text="kl > 1")
    for one in ("", "x", "9" * 40, str(others.pk)):
        assert client.post(f"{address}remove/", {"rule": one}).status_code == 302
    assert Rule.objects.count() == 2
    client.post(f"{address}remove/", {"rule": str(Rule.objects.exclude(pk=others.pk).get().pk)})
    assert Rule.objects.get() == others
