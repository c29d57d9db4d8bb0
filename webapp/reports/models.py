"""Tables of reports: files built by the worker, schedules and their e-mails, and lines of clouds' own bills."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from webapp.background import BackgroundWork


class FileState(models.TextChoices):
    QUEUED = "queued", "Waiting"
    BUILDING = "building", "Building"
    READY = "ready", "Ready"
    FAILED = "failed", "Failed"


class ReportFile(BackgroundWork):
    """A report that is too large for one request, so the worker builds it. `question` is a `Question` as JSON."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, null=True, related_name="+")
    question = models.JSONField()
    format = models.CharField(max_length=10)
    state = models.CharField(max_length=10, choices=FileState, default=FileState.QUEUED)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField()
    rows_done = models.BigIntegerField(default=0)
    rows_of = models.BigIntegerField(default=0)
    file = models.CharField(max_length=200, blank=True, default="")
    byte_count = models.BigIntegerField(default=0)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["state", "since"], name="report_file_to_look_after")]
        constraints = [
            models.CheckConstraint(condition=Q(state__in=FileState.values), name="report_file_state_known")
        ]

    def __str__(self) -> str:
        return f"{self.format} report {self.pk}"


class Every(models.TextChoices):
    WEEK = "week", "Every week"
    MONTH = "month", "Every month"


class Schedule(models.Model):
    """A report of each whole week or month, sent to members of the project until it is stopped."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="+")
    every = models.CharField(max_length=10, choices=Every)
    by = models.CharField(max_length=10)
    prices = models.CharField(max_length=10, default="actual")
    formats = models.JSONField()
    recipients = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="+")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    stopped_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.get_every_display()} by {self.by}"


class SendingState(models.TextChoices):
    SENDING = "sending", "Sending"
    WAITING = "waiting", "Trying again"
    SENT = "sent", "Sent"
    FAILED = "failed", "Not sent"


class Sending(models.Model):
    """One period of a schedule: at most one row, so that its e-mail is sent once."""

    schedule = models.ForeignKey(Schedule, on_delete=models.CASCADE, related_name="sendings")
    first_day = models.DateField()
    last_day = models.DateField()
    state = models.CharField(max_length=10, choices=SendingState, default=SendingState.SENDING)
    reason = models.TextField(blank=True, default="")
    attempts = models.IntegerField(default=1)
    since = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["schedule", "first_day"], name="sending_once_a_period")
        ]

    def __str__(self) -> str:
        return f"{self.first_day} to {self.last_day}: {self.state}"


class CloudBill(BackgroundWork):
    """An uploaded bill of a cloud, read once."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="+")
    sha256 = models.CharField(max_length=64)
    name = models.CharField(max_length=200)
    layout = models.CharField(max_length=30)
    state = models.CharField(max_length=10, choices=FileState, default=FileState.QUEUED)
    row_count = models.BigIntegerField(default=0)
    kept_count = models.BigIntegerField(default=0)
    replace_anyway = models.BooleanField(default=False)
    """Whether it may replace stored periods although it is older, or looks like a part."""
    imported_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "sha256"], name="cloud_bill_once")]

    def __str__(self) -> str:
        return self.name


class BilledPeriod(models.Model):
    """A billing period of an account on a bill. The next bill that has it replaces all of its lines.

    `account` is empty where the bill does not name it, and for lines that were read before accounts were kept: the
    next bill of that provider and period replaces them.
    """

    bill = models.ForeignKey(CloudBill, on_delete=models.CASCADE, related_name="periods")
    provider = models.CharField(max_length=30)
    account = models.CharField(max_length=100, blank=True)
    first_day = models.DateField()
    used_from = models.DateField(null=True)
    used_until = models.DateField(null=True)
    line_count = models.BigIntegerField()
    picodollars = models.BigIntegerField()
    replaced_by = models.ForeignKey(CloudBill, on_delete=models.SET_NULL, null=True, related_name="replaced")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["bill", "provider", "account", "first_day"], name="billed_period_once_a_bill"
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.account} from {self.first_day}"


class MatchedBy(models.TextChoices):
    TAG = "tag", "Its tag names the job"
    OURS = "ours", "Its tag or name says that it is Starling's"
    DAY = "day", "Only that day's service"
    NOTHING = "nothing", "Nothing of ours that day"


class CountedLines(models.Manager["BilledLine"]):
    """Lines of bills that were read to their end, without those of periods that a later bill replaced."""

    def get_queryset(self) -> models.QuerySet[BilledLine]:
        lines = super().get_queryset().filter(period__bill__state=FileState.READY)
        return lines.exclude(period__replaced_by__state=FileState.READY)


class EveryLine(models.Manager["BilledLine"]):
    """All lines, also those being written or deleted."""


class BilledLine(models.Model):
    """A line of a cloud's bill.

    A bill is written in many small transactions. None of its lines counts, and none that it replaces is gone, until
    the bill becomes ready: `objects` are the lines that count, `every` also those being written or deleted.
    """

    period = models.ForeignKey(BilledPeriod, on_delete=models.CASCADE, related_name="lines")
    project = models.ForeignKey(
        "accounts.Project", on_delete=models.CASCADE, related_name="+", db_index=False
    )
    day = models.DateField()
    provider = models.CharField(max_length=30)
    service = models.CharField(max_length=100)
    what = models.CharField(max_length=200, blank=True, default="")
    resource = models.CharField(max_length=500, blank=True, default="")
    job = models.ForeignKey("jobs.Job", on_delete=models.SET_NULL, null=True, related_name="+")
    matched_by = models.CharField(max_length=10, choices=MatchedBy)
    picodollars = models.BigIntegerField()

    objects = CountedLines()
    every = EveryLine()

    class Meta:
        base_manager_name = "every"
        indexes = [models.Index(fields=["project", "day"], name="billed_line_of_day")]

    def __str__(self) -> str:
        return f"{self.day} {self.service} {self.what}"
