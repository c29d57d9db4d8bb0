"""The message of a delivery, as a mail, a chat text and a JSON document; and the outcome of an attempt to send it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.conf import settings
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse
from pydantic import BaseModel, ConfigDict

from webapp.alerts.models import About, Alert, AlertKind, Delivery, Severity

_PLACES: dict[str, str] = {
    About.JOB: "jobs:detail",
    About.GROUP: "comparing:group",
    About.BUDGET: "budgets:detail",
    About.CONNECTION: "connections:detail",
    About.CHANNEL: "alerts:channel",
}
"""The page of an alert's subject. All bills are on one page."""


Unreal = Literal[
    "",
    "simulated",
    "emulated",
    "simulated and emulated",
    "partly simulated",
    "partly emulated",
    "partly simulated and emulated",
]


class AlertDocument(BaseModel):
    """The alert as receivers get it."""

    model_config = ConfigDict(frozen=True)

    id: int
    kind: str
    severity: str
    sentence: str
    subject: str
    project: str | None
    unreal: Unreal
    first_at: datetime
    told_at: datetime
    link: str


class WebhookDocument(BaseModel):
    """The body of a webhook. `id` is the delivery's: the same message sent twice has the same one."""

    model_config = ConfigDict(frozen=True)

    version: Literal[1] = 1
    type: Literal["alert", "over", "test"] = "alert"
    id: str
    alert: AlertDocument


@dataclass(frozen=True)
class AlertMessage:
    """The text of a delivery. `identity` is the same for each attempt, and changes when a person sends it again."""

    delivery_id: str
    identity: str
    title: str
    sentence: str
    severity: Severity
    over: bool
    link: str
    document: WebhookDocument

    @property
    def body(self) -> bytes:
        return self.document.model_dump_json().encode()

    def mail_text(self) -> str:
        return render_to_string("alerts/mail.txt", {"message": self})

    def mail_html(self) -> str:
        return render_to_string("alerts/mail.html", {"message": self})


def message_of(delivery: Delivery) -> AlertMessage:
    """The message of a delivery. Its alert and channel should be loaded."""
    alert = delivery.alert
    project = alert.project
    where = f" – {project.name}" if project else ""
    unreal = f" ({alert.unreal})" if alert.unreal else ""
    link = link_to(alert)
    over = "Over: " if delivery.over else ""
    sentence = f"{alert.over_words} Earlier: {alert.sentence}" if delivery.over else alert.sentence
    return AlertMessage(
        delivery_id=delivery.pk,
        identity=delivery.pk if not delivery.replays else f"{delivery.pk}.{delivery.replays}",
        title=f"{over}{alert.get_kind_display()}{unreal}{where}",
        sentence=sentence,
        severity=Severity(alert.severity),
        over=delivery.over,
        link=link,
        document=WebhookDocument(
            type="test" if alert.kind == AlertKind.TEST else "over" if delivery.over else "alert",
            id=delivery.pk,
            alert=AlertDocument(
                id=alert.pk,
                kind=alert.kind,
                severity=alert.severity,
                sentence=sentence,
                subject=alert.subject,
                project=project.slug if project else None,
                unreal=alert.unreal,
                first_at=alert.first_at,
                told_at=alert.told_at,
                link=link,
            ),
        ),
    )


def path_to(alert: Alert) -> str:
    """The path of the alert's subject, else of the list. Empty for an alert without a project."""
    if alert.project is None:
        return ""
    scope, _, name = alert.subject.partition(":")
    if scope == About.BILL:
        return reverse("reports:bills", args=[alert.project.slug])
    try:
        return reverse(_PLACES[scope], args=[alert.project.slug, name])
    except (KeyError, NoReverseMatch):
        return f"{reverse('alerts:list', args=[alert.project.slug])}?keep={alert.pk}#alert-{alert.pk}"


def link_to(alert: Alert) -> str:
    """The absolute address of `path_to`."""
    return settings.STARLING_BASE_URL + (path_to(alert) or "/")


@dataclass(frozen=True)
class SendingOutcome:
    """Sent, or why not, in words for people; `again` when another attempt may fare better.

    What was not even `tried` is no attempt: the channel may work well.
    """

    sent: bool
    words: str = ""
    again: bool = False
    status: int | None = None
    retry_after_s: float | None = None
    tried: bool = True


def refused(words: str, status: int | None = None) -> SendingOutcome:
    """Trying again would meet the same."""
    return SendingOutcome(False, words, status=status)


def later(words: str, status: int | None = None, retry_after_s: float | None = None) -> SendingOutcome:
    """It may be better in a while."""
    return SendingOutcome(False, words, True, status, retry_after_s)


def postponed(words: str, wait_s: float) -> SendingOutcome:
    """No attempt was made. The delivery waits so long."""
    return SendingOutcome(False, words, True, retry_after_s=wait_s, tried=False)
