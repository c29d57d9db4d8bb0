"""Tables of alerts. Written only by services, read by `queries`.

An alert describes a present condition. It is raised once when the condition begins, however often that is found, and
can be raised again once it is over. A delivery is the sending of an alert by one channel. Its row is written together
with the alert, so that no alert is lost, and there is one for each sending, so that none is sent twice.
"""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.connections.models import SealedRow
from webapp.connections.sealing import SealedPlace

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def _new_id(prefix: str, letters: int) -> str:
    return prefix + "".join(secrets.choice(_LETTERS) for _ in range(letters))


def new_channel_id() -> str:
    """50 random bits, as letters that survive being read aloud."""
    return _new_id("chn_", 10)


def new_delivery_id() -> str:
    """100 random bits, by which receivers recognise a delivery."""
    return _new_id("dlv_", 20)


class AlertKind(models.TextChoices):
    """The kinds of alerts. A new kind is one row here and its icon in `text`."""

    BUDGET = "budget", "Budget line"
    FORECAST = "forecast", "Forecast over budget"
    JOB_STOPPED = "job_stopped", "Stopped by its budget"
    JOB_FAILED = "job_failed", "Job failed"
    JOB_FINISHED = "job_finished", "Job finished"
    BURN = "burn", "Spending too fast"
    RETRIES = "retries", "Calls keep failing"
    NO_STEPS = "no_steps", "Spending without steps"
    ORPHAN = "orphan", "Unused cloud resource"
    REPORT = "report", "Report"
    BILL = "bill", "Cloud's bill differs"
    CHANNEL = "channel", "Channel failing"
    DISK = "disk", "Disk nearly full"
    RULE = "rule", "Rule of the project"
    TEST = "test", "Test message"


class About(models.TextChoices):
    """The subjects of alerts. Each has its page in `_PLACES` of `message`."""

    JOB = "job", "Job"
    GROUP = "group", "Group of jobs"
    BUDGET = "budget", "Budget"
    CONNECTION = "connection", "Connection"
    CHANNEL = "channel", "Channel"
    BILL = "bill", "Cloud's bill"
    DISK = "disk", "Disk"

    def subject(self, key: object) -> str:
        """As in job:job_abc or budget:12."""
        return f"{self.value}:{key}"


class Severity(models.TextChoices):
    """The severity of an alert, least first."""

    INFO = "info", "Good to know"
    WARNING = "warning", "Look at it"
    CRITICAL = "critical", "Act now"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class AlertState(models.TextChoices):
    OPEN = "open", "Open"
    ACKNOWLEDGED = "acknowledged", "Acknowledged"
    SNOOZED = "snoozed", "Snoozed"
    RESOLVED = "resolved", "Over"


class Alert(models.Model):
    """An alert about `subject` (see `About`).

    Without a project it belongs to the installation and is for its staff. `send_count` is how often it was sent: once
    when it began, and again when it grew worse or a snooze ended. `unreal` names the kind of money if no one pays it.
    `over_words` say how it ended, if it ended by itself. `covers` are the keys of the ends that it reports, if it
    is about several jobs.
    """

    project = models.ForeignKey(
        "accounts.Project", on_delete=models.CASCADE, related_name="alerts", null=True, blank=True
    )
    kind = models.CharField(max_length=16, choices=AlertKind)
    subject = models.CharField(max_length=120)
    sentence = models.TextField()
    severity = models.CharField(max_length=8, choices=Severity)
    dedupe_key = models.CharField(max_length=200)
    unreal = models.CharField(max_length=32, blank=True, default="")
    over_words = models.TextField(blank=True, default="")
    covers = models.JSONField(blank=True, default=list)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()
    told_at = models.DateTimeField()
    raise_count = models.IntegerField(default=1)
    send_count = models.IntegerField(default=1)

    state = models.CharField(max_length=12, choices=AlertState, default=AlertState.OPEN)
    state_at = models.DateTimeField()
    state_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    snoozed_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["project", "-told_at"], name="alert_of_project"),
            models.Index(fields=["project", "dedupe_key"], name="alert_by_key"),
            models.Index(fields=["snoozed_until"], condition=Q(state="snoozed"), name="alert_to_wake"),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "dedupe_key"],
                condition=~Q(state="resolved") & Q(project__isnull=False),
                name="alert_stands_once",
            ),
            models.UniqueConstraint(
                fields=["dedupe_key"],
                condition=~Q(state="resolved") & Q(project__isnull=True),
                name="installation_alert_stands_once",
            ),
            models.CheckConstraint(condition=Q(kind__in=AlertKind.values), name="alert_kind_known"),
            models.CheckConstraint(condition=Q(severity__in=Severity.values), name="alert_severity_known"),
            models.CheckConstraint(condition=Q(state__in=AlertState.values), name="alert_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.subject}"


class ChannelKind(models.TextChoices):
    EMAIL = "email", "E-mail"
    CHAT = "chat", "Chat"
    WEBHOOK = "webhook", "Webhook"


SECRET_FIELDS: dict[str, tuple[str, ...]] = {
    ChannelKind.EMAIL: (),
    ChannelKind.CHAT: ("url",),
    ChannelKind.WEBHOOK: ("url", "signing_key"),
}
"""A channel's sealed fields, by way."""


class Rule(models.Model):
    """An alert rule of a project, for each of its running jobs. `text` is as `rules.parse` writes it."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="alert_rules")
    text = models.CharField(max_length=80)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, related_name="+", null=True, blank=True
    )
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["project", "text"], name="alert_rule_once")]

    def __str__(self) -> str:
        return self.text


class Channel(models.Model):
    """A channel that sends a project's alerts. The bell is no channel: it always shows all alerts.

    `silent_kinds` are not sent here; kinds added later are. The built-in channel mails the project's owners (without a
    project: the installation's staff) and needs no set-up. `place` is the part of a secret address that may be shown.
    `failures` counts failed attempts since the last success.
    """

    id = models.CharField(primary_key=True, max_length=20, default=new_channel_id, editable=False)
    project = models.ForeignKey(
        "accounts.Project", on_delete=models.CASCADE, related_name="channels", null=True, blank=True
    )
    way = models.CharField(max_length=8, choices=ChannelKind)
    name = models.CharField(max_length=60)
    built_in = models.BooleanField(default=False)
    on = models.BooleanField(default=True)
    silent_kinds = models.JSONField(default=list, blank=True)
    addresses = models.JSONField(default=list, blank=True)
    place = models.CharField(max_length=200, blank=True, default="")
    created_at = models.DateTimeField()
    failures = models.IntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    last_sent_at = models.DateTimeField(null=True, blank=True)
    last_failed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-built_in", "name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="channel_name_once"),
            models.UniqueConstraint(
                fields=["project"], condition=Q(built_in=True, project__isnull=False), name="built_in_once"
            ),
            models.UniqueConstraint(
                fields=["built_in"],
                condition=Q(built_in=True, project__isnull=True),
                name="built_in_of_installation_once",
            ),
            models.CheckConstraint(condition=Q(way__in=ChannelKind.values), name="channel_way_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    def sealed_place(self, field: str) -> SealedPlace:
        """The place that a secret of this channel is sealed for."""
        return SealedPlace(self.project_id or 0, self.pk, field)


class ChannelSecret(SealedRow):
    """A sealed secret of a channel."""

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="secrets")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["channel", "field"], name="channel_secret_once")]

    def __str__(self) -> str:
        return f"{self.field} of {self.channel_id}"

    def place(self) -> SealedPlace:
        return self.channel.sealed_place(self.field)


class DeliveryState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    SENDING = "sending", "Sending"
    SENT = "sent", "Sent"
    FAILED = "failed", "Given up"


class Delivery(models.Model):
    """One sending of an alert by one channel, and its outcome. `over`: the message says that the alert is over.

    The sender holds the row: `holder` and `held_until` say which process, and until when. `replays` counts how often
    people sent it again.
    """

    id = models.CharField(primary_key=True, max_length=30, default=new_delivery_id, editable=False)
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    turn = models.IntegerField()
    over = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=DeliveryState, default=DeliveryState.WAITING)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField()
    attempts = models.IntegerField(default=0)
    replays = models.IntegerField(default=0)
    holder = models.CharField(max_length=160, blank=True, default="")
    held_until = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    last_error = models.TextField(blank=True, default="")
    response_status = models.IntegerField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state="waiting"), name="delivery_due"),
            models.Index(fields=["held_until"], condition=Q(state="sending"), name="delivery_held"),
            models.Index(fields=["channel", "-created_at"], name="delivery_log"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["alert", "channel", "turn"], name="delivery_once"),
            models.CheckConstraint(condition=Q(state__in=DeliveryState.values), name="delivery_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


class Seen(models.Model):
    """When a person last looked at a project's alerts. Alerts sent later are new to them."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "project"], name="seen_once")]

    def __str__(self) -> str:
        return f"{self.user_id} of {self.project_id}"


class MailConsent(models.Model):
    """Whether a person outside a project agreed to get its alerts by mail.

    `ask_at`: when to send the consent mail, null once it was sent. No other mail is sent before an answer.
    """

    class Answer(models.TextChoices):
        NONE = "", "No answer"
        YES = "yes", "Agreed"
        NO = "no", "Declined"

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="mail_consents")
    address = models.EmailField()
    ask_at = models.DateTimeField(null=True, blank=True)
    attempts = models.IntegerField(default=0)
    asked_at = models.DateTimeField(null=True, blank=True)
    answer = models.CharField(max_length=3, choices=Answer, blank=True, default=Answer.NONE)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["ask_at"], condition=Q(ask_at__isnull=False), name="mail_consent_to_ask"),
            models.Index(fields=["address", "asked_at"], name="mail_consent_of_address"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["project", "address"], name="mail_consent_once"),
            models.CheckConstraint(
                condition=Q(answer__in=["", "yes", "no"]), name="mail_consent_answer_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.address} and {self.project_id}: {self.get_answer_display()}"


class HourlyUse(models.Model):
    """The use of one of a project's hourly limits (`project_mail`). Without a project, of the installation's."""

    class What(models.TextChoices):
        MAIL = "mail", "Mails"
        TEST = "test", "Test messages"

    project = models.ForeignKey(
        "accounts.Project", on_delete=models.CASCADE, related_name="+", null=True, blank=True
    )
    what = models.CharField(max_length=4, choices=What)
    at = models.DateTimeField()
    count = models.IntegerField()

    class Meta:
        indexes = [models.Index(fields=["project", "what", "at"], name="hourly_use_of_project")]
        constraints = [
            models.CheckConstraint(condition=Q(what__in=["mail", "test"]), name="hourly_use_known"),
            models.CheckConstraint(condition=Q(count__gt=0), name="hourly_use_is_some"),
        ]

    def __str__(self) -> str:
        return f"{self.count} of {self.what} by {self.project_id}"
