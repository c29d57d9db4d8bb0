"""Made-up alerts and channels for looking at pages: in every state that one can be in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from webapp.accounts.models import Project, User
from webapp.alerts import channels, mail_consent, services
from webapp.alerts import secrets as alerts_secrets
from webapp.alerts.models import Alert, Channel, ChannelKind, Delivery, DeliveryState, Seen
from webapp.clock import SYSTEM_CLOCK
from webapp.connections.sealing import Secret

_ROWS: tuple[tuple[str, str, str, str, float], ...] = (
    (
        "job_finished",
        "info",
        "",
        "Cart pole, first try finished after 61,440 steps and a return of 493. Reached 475 three times.",
        4000,
    ),
    ("channel", "warning", "channel", "Ops webhook cannot send alerts. It answered 503.", 190),
    (
        "orphan",
        "critical",
        "function:starling-3f2a",
        "A function that no job needs has existed in Lab account for 14 minutes and would cost $0.31 a day."
        " It is being removed; see Clouds if it stays.",
        42,
    ),
    (
        "job_failed",
        "critical",
        "",
        "Hopper, local, seed 3 failed. The update ran out of memory. Its page tells what led to it; a clone starts"
        " from the same settings.",
        25,
    ),
    (
        "burn",
        "warning",
        "",
        "Hopper, wide spends $4.12 an hour, 3.4 times what was forecast ($1.21). Look at its actors and failed calls,"
        " or stop it; it cannot spend more than $0.250 in all.",
        12,
    ),
    (
        "budget",
        "warning",
        "budget:1",
        "The budget March has spent $41.20 of $50.00, 80 % of its limit. At the limit its jobs end their round, save"
        " a checkpoint and pause. Raise the budget if they should continue.",
        3,
    ),
    (
        "forecast",
        "warning",
        "budget:1",
        "The budget March will reach its limit of $50.00 at about 14:20 UTC on 28 March; $41.20 is spent."
        " Raise the budget if its jobs should go on.",
        0.4,
    ),
)


def alerts_in_every_state(project: Project, user: User, names: dict[str, Any]) -> dict[str, Channel]:
    """A project that has been told things for a while, and its channels by what they show."""
    made = _channels(project)
    alerts: dict[str, Alert] = {}
    subjects = {
        "job_finished": "Cart pole, first try",
        "job_failed": "Hopper, local, seed 3",
        "burn": "Hopper, wide",
    }
    for kind, severity, subject, sentence, minutes in _ROWS:
        if kind in subjects:
            subject = f"job:{names[subjects[kind]].pk}"
        elif subject == "channel":
            subject = f"channel:{made['failing'].pk}"
        alerts[kind] = services.raise_alert(
            project_id=project.pk,
            kind=kind,
            subject=subject,
            sentence=sentence,
            severity=severity,
            dedupe_key=f"scene:{kind}",
        )
        moment = SYSTEM_CLOCK.now() - timedelta(minutes=minutes)
        Alert.objects.filter(pk=alerts[kind].pk).update(
            told_at=moment, first_at=moment, last_at=moment, state_at=moment
        )
    services.acknowledge(alert=alerts["job_failed"], user=user)
    services.snooze(alert=alerts["channel"], user=user, how_long="day")
    services.mark_seen(user=user, project=project)
    old = SYSTEM_CLOCK.now() - timedelta(minutes=15)
    Seen.objects.filter(user=user, project=project).update(at=old)
    _log(made["working"])
    _log(made["failing"])
    return made


def _channels(project: Project) -> dict[str, Channel]:
    now = SYSTEM_CLOCK.now()
    working = _made(project, ChannelKind.CHAT, "Lab channel", "Slack", {"url": "slack://made/up/one"})
    failing = _made(
        project,
        ChannelKind.WEBHOOK,
        "Ops webhook",
        "hooks.lab.example.org",
        {"url": "https://hooks.lab.example.org/x", "signing_key": "whsec_x"},
    )
    Channel.objects.filter(pk=working.pk).update(last_sent_at=now - timedelta(minutes=3))
    Channel.objects.filter(pk=failing.pk).update(
        failures=4, last_error="It answered 503.", last_failed_at=now
    )
    on_call = ["night@lab.example.org", "day@lab.example.org", "weekend@lab.example.org", "ada@example.org"]
    mail = channels.add_mail(project=project, name="On call", addresses=on_call)
    _answers(project)
    return {"working": working, "failing": failing, "mail": mail}


def _answers(project: Project) -> None:
    """One agreed, one declined, one is to be asked."""
    consents = {one.address.partition("@")[0]: one for one in mail_consent.consents_of(project.pk)}
    mail_consent.answer(consents["night"], agrees=True)
    mail_consent.answer(consents["day"], agrees=False)


def _made(project: Project, way: ChannelKind, name: str, place: str, secrets: dict[str, str]) -> Channel:
    channel = Channel.objects.create(
        project=project, way=way, name=name, place=place, created_at=SYSTEM_CLOCK.now()
    )
    for field, value in secrets.items():
        alerts_secrets.seal_secret(channel, field, Secret(value))
    return channel


def _log(channel: Channel) -> None:
    """Some that got through, one that was given up, one that waits."""
    now, failing = SYSTEM_CLOCK.now(), bool(Channel.objects.get(pk=channel.pk).failures)
    status = 204 if channel.way == ChannelKind.WEBHOOK else None
    for number, delivery in enumerate(Delivery.objects.filter(channel=channel).order_by("-alert__told_at")):
        at = now - timedelta(minutes=4 * number + 1)
        given: dict[str, Any] = {
            "state": DeliveryState.SENT,
            "sent_at": at,
            "response_status": status,
            "attempts": 1,
        }
        if failing and number < 2:
            given = {
                "state": DeliveryState.WAITING if number == 0 else DeliveryState.FAILED,
                "attempts": 3 if number == 0 else 8,
                "last_error": "It answered 503.",
                "response_status": 503,
                "due_at": now + timedelta(seconds=40),
            }
        Delivery.objects.filter(pk=delivery.pk).update(created_at=at, **given)
