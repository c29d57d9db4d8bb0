"""Scheduled reports: one letter for each period, with its files, to members only; what goes wrong is said."""

from __future__ import annotations

import smtplib
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.db import connection
from django.test import override_settings
from django.urls import reverse

from tests.factories import FixedClock, make_project, make_running_job, make_user
from tests.members import add_member
from tests.webapp.settled import settle
from training.engine.ports import PriceLine
from webapp.alerts import project_mail
from webapp.alerts.models import Alert
from webapp.reports import schedules
from webapp.reports.models import Schedule, Sending, SendingState

pytestmark = pytest.mark.django_db(transaction=True)
_TO_FILES = "django.core.mail.backends.filebased.EmailBackend"


class Scene:
    """On Wednesday 4 November 2026 a weekly report is set up; 1.25 dollars are spent on Thursday."""

    def __init__(self) -> None:
        self.clock = FixedClock(datetime(2026, 11, 4, 12, tzinfo=UTC))
        self.owner, self.member = make_user(), make_user()
        self.project = make_project(self.owner, "Robots\r\nBcc: all@example.org")
        add_member(self.project, self.member.email, "viewer")
        job, epoch = make_running_job(project=self.project, user=self.owner)
        line = PriceLine("local.learner", "1", "h", 10**12 // 8)
        settle(job, epoch, "r1-s0-a1", [line], at=datetime(2026, 11, 5, 12, tzinfo=UTC))
        self.schedule = schedules.add_schedule(
            project=self.project,
            user=self.owner,
            every="week",
            by="job",
            prices="actual",
            formats=["pdf", "csv"],
            recipients=[self.owner, self.member],
            clock=self.clock,
        )

    def send(self) -> int:
        return schedules.send_due(clock=self.clock)

    def to_monday(self) -> None:
        self.clock.moment = datetime(2026, 11, 9, 0, 0, 5, tzinfo=UTC)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_week_is_sent_once_when_it_is_over(scene: Scene) -> None:
    assert scene.send() == 0, "the week before was over when it was set up"
    scene.to_monday()
    assert [scene.send() for _ in range(3)] == [1, 0, 0]
    (letter,) = mail.outbox
    assert letter.to == sorted([scene.owner.email, scene.member.email])
    assert letter.subject == "Starling: Robots Bcc: all@example.org cost $0.125, 2026-11-02 to 2026-11-08"
    assert letter.bcc == []
    names = [name for name, _, _ in letter.attachments]
    assert [name.rpartition(".")[2] for name in names] == ["pdf", "csv"]
    assert "0.125" in letter.attachments[1][1]
    assert letter.attachments[0][1].startswith(b"%PDF")
    assert "from=2026-11-02&to=2026-11-08" in letter.body
    scene.clock.forward(timedelta(days=7).total_seconds())
    assert scene.send() == 1, "and the next one"


def test_many_ticks_at_once_send_it_once(scene: Scene) -> None:
    scene.to_monday()

    def tick(_: int) -> int:
        try:
            return scene.send()
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(tick, range(6))) == 1
    assert len(mail.outbox) == 1
    assert Sending.objects.get().state == SendingState.SENT


def test_a_server_that_refuses_is_tried_again_for_an_hour(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> int:
        raise smtplib.SMTPServerDisconnected("down")

    with monkeypatch.context() as down:
        down.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", refuse)
        scene.to_monday()
        assert scene.send() == 0
        sending = Sending.objects.get()
        assert sending.state == SendingState.WAITING
        assert "tried again" in sending.reason
        assert scene.send() == 0
        assert Sending.objects.get().attempts == 1, "not before its time"
    scene.clock.forward(601)
    assert scene.send() == 1
    assert Sending.objects.get().state == SendingState.SENT


def test_without_a_mail_server_it_says_so(scene: Scene, client: Any) -> None:
    with override_settings(EMAIL_BACKEND=_TO_FILES):
        scene.to_monday()
        assert scene.send() == 0
        client.force_login(scene.member)
        page = client.get(reverse("reports:page", args=[scene.project.slug])).content.decode()
    assert Sending.objects.get().state == SendingState.FAILED
    assert page.count("STARLING_SMTP_URL") >= 2, "above the list and at the week"
    assert Alert.objects.filter(project=scene.project, severity="warning").exists()


def test_who_is_no_member_any_more_gets_nothing(scene: Scene) -> None:
    scene.project.memberships.filter(user=scene.member).delete()
    scene.to_monday()
    scene.send()
    assert mail.outbox[0].to == [scene.owner.email]
    scene.schedule.recipients.set([scene.member])
    scene.clock.forward(timedelta(days=7).total_seconds())
    assert scene.send() == 0
    assert "No recipient" in Sending.objects.order_by("-first_day")[0].reason


def test_a_worker_that_died_while_it_sent_leaves_a_word_and_no_second_letter(scene: Scene) -> None:
    scene.to_monday()
    period = schedules.period_before(scene.schedule, scene.clock.now().date())
    Sending.objects.create(
        schedule=scene.schedule, first_day=period.first_day, last_day=period.last_day, since=scene.clock.now()
    )
    scene.clock.forward(3600)
    assert scene.send() == 0
    assert mail.outbox == []
    assert Sending.objects.get().reason == schedules.UNSURE


def test_a_month_is_due_on_its_first_day(scene: Scene) -> None:
    Schedule.objects.update(every="month")
    scene.clock.moment = datetime(2026, 11, 30, 23, 59, tzinfo=UTC)
    assert scene.send() == 0
    scene.clock.forward(120)
    assert scene.send() == 1
    assert "2026-11-01 to 2026-11-30" in mail.outbox[0].subject


def test_editors_set_it_up_for_members_only(scene: Scene, client: Any) -> None:
    client.force_login(scene.owner)
    address = reverse("reports:schedule", args=[scene.project.slug])
    form = {"every": "month", "by": "service", "prices": "actual", "formats": ["xlsx"]}
    client.post(address, {**form, "recipients": [make_user().pk]})
    assert Schedule.objects.count() == 1, "a stranger is not written to"
    client.post(address, {**form, "recipients": [scene.member.pk]})
    made = Schedule.objects.latest("pk")
    assert (made.every, made.by, list(made.recipients.all())) == ("month", "service", [scene.member])
    client.post(reverse("reports:unschedule", args=[scene.project.slug, made.pk]))
    made.refresh_from_db()
    assert made.stopped_at is not None
    Schedule.objects.exclude(pk=made.pk).delete()
    scene.clock.forward(timedelta(days=40).total_seconds())
    assert scene.send() == 0
    assert mail.outbox == []


def test_a_member_who_never_confirmed_the_address_gets_no_letter(scene: Scene) -> None:
    EmailAddress.objects.filter(user=scene.member).update(verified=False)
    scene.to_monday()
    assert scene.send() == 1
    assert mail.outbox[0].to == [scene.owner.email]
    EmailAddress.objects.filter(user=scene.owner).update(verified=False)
    scene.clock.forward(timedelta(days=7).total_seconds())
    assert scene.send() == 0
    assert Sending.objects.latest("since").reason == schedules.NO_CONFIRMED_ADDRESS
    assert len(mail.outbox) == 1


def test_a_letter_waits_until_the_projects_hour_has_room_and_is_not_given_up(scene: Scene) -> None:
    scene.to_monday()
    scene.clock.forward(-1800)
    project_mail.take(scene.project.pk, "mail", 99, clock=scene.clock)
    scene.clock.forward(1800)
    for _ in range(schedules.MOST_ATTEMPTS + 2):
        assert scene.send() == 0
        Sending.objects.update(since=scene.clock.now() - schedules.TRY_AGAIN_AFTER)
    assert Sending.objects.get().state == SendingState.WAITING
    assert "100 mails an hour" in Sending.objects.get().reason
    assert mail.outbox == []
    scene.clock.forward(1801)
    assert scene.send() == 1
    assert len(mail.outbox) == 1
