"""Tables of money, in whole picodollars (1 USD = 10**12). Written only by this app's services.

Rows of several of these tables are locked in this order: job, account, budgets by id.
"""

from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from training.calls import KINDS


class Account(models.Model):
    """What one job may spend. A database constraint enforces the limit.

    `granted` is what the budgets above hold for it, spent and unspent: calls are reserved within it, and it
    grows before it is used up.
    """

    job = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="account")
    budgets: "models.ManyToManyField[Budget, Any]" = models.ManyToManyField("Budget", related_name="accounts")
    limit_picodollars = models.BigIntegerField()
    granted_picodollars = models.BigIntegerField(default=0)
    reserved_picodollars = models.BigIntegerField(default=0)
    spent_picodollars = models.BigIntegerField(default=0)
    overrun_picodollars = models.BigIntegerField(default=0)
    frozen = models.BooleanField(default=False)
    arming = models.IntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(limit_picodollars__gt=0), name="account_limit_positive"),
            models.CheckConstraint(
                condition=Q(reserved_picodollars__gte=0), name="account_reserved_not_negative"
            ),
            models.CheckConstraint(condition=Q(spent_picodollars__gte=0), name="account_spent_not_negative"),
            models.CheckConstraint(
                condition=Q(overrun_picodollars__gte=0), name="account_overrun_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(limit_picodollars__gte=F("spent_picodollars") + F("reserved_picodollars")),
                name="account_within_limit",
            ),
            models.CheckConstraint(
                condition=Q(
                    granted_picodollars__gte=F("spent_picodollars") + F("reserved_picodollars"),
                    granted_picodollars__lte=F("limit_picodollars"),
                ),
                name="account_within_grant",
            ),
        ]

    def __str__(self) -> str:
        return f"account of {self.job_id}"


class BudgetScope(models.TextChoices):
    EVERYTHING = "everything", "Everything"
    PROJECT = "project", "This project"
    USER = "user", "A person"
    CLOUD = "cloud", "A cloud"
    TAG = "tag", "A tag"
    GROUP = "group", "A group of jobs"


class Period(models.TextChoices):
    TOTAL = "total", "In all"
    MONTHLY = "monthly", "A month"
    WEEKLY = "weekly", "A week"


class AtLine(models.TextChoices):
    """What jobs do at a budget's limit. None exceeds it."""

    FEWER = "fewer", "From 80 % on with fewer actors, then as below"
    DRAIN = "drain", "End the round, save a checkpoint, pause"
    STOP = "stop", "Use it up: the last round may be cut off"


def default_thresholds() -> list[int]:
    return [50, 80, 90, 100]


class Budget(models.Model):
    """A limit over the accounts of many jobs: what they hold and spend in a period never exceeds it.

    `reserved` is what its accounts were granted and have not spent; `spent` what was booked since
    `period_start` (always a UTC midnight; of a total, the time from which everything counts). Without a
    project it belongs to the installation. A closed budget limits no job.
    """

    name = models.CharField(max_length=80)
    project = models.ForeignKey(
        "accounts.Project", on_delete=models.CASCADE, null=True, blank=True, related_name="budgets"
    )
    scope = models.CharField(max_length=12, choices=BudgetScope)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    cloud = models.CharField(max_length=30, blank=True, default="")
    tag = models.ForeignKey("jobs.Tag", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    group = models.ForeignKey(
        "jobs.JobGroup", on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    period = models.CharField(max_length=10, choices=Period, default=Period.TOTAL)
    period_start = models.DateTimeField()
    limit_picodollars = models.BigIntegerField()
    reserved_picodollars = models.BigIntegerField(default=0)
    spent_picodollars = models.BigIntegerField(default=0)
    overrun_picodollars = models.BigIntegerField(default=0)
    at_line = models.CharField(max_length=10, choices=AtLine, default=AtLine.DRAIN)
    thresholds = models.JSONField(default=default_thresholds)
    arming = models.IntegerField(default=0)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    created_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(limit_picodollars__gt=0), name="budget_limit_positive"),
            models.CheckConstraint(
                condition=Q(
                    reserved_picodollars__gte=0, spent_picodollars__gte=0, overrun_picodollars__gte=0
                ),
                name="budget_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(limit_picodollars__gte=F("spent_picodollars") + F("reserved_picodollars")),
                name="budget_within_limit",
            ),
            models.CheckConstraint(
                condition=Q(scope="everything", project__isnull=True)
                | Q(scope="project", project__isnull=False)
                | Q(scope="user", user__isnull=False)
                | (Q(scope="cloud") & ~Q(cloud=""))
                | Q(scope="tag", tag__isnull=False, project__isnull=False)
                | Q(scope="group", group__isnull=False, project__isnull=False),
                name="budget_scope_named",
            ),
        ]
        indexes = [models.Index(fields=["project", "scope"], condition=Q(closed_at=None), name="budget_open")]

    def __str__(self) -> str:
        return self.name


class CrossingKind(models.TextChoices):
    ACTUAL = "actual", "Spent"
    FORECAST = "forecast", "Forecast"


class Crossing(models.Model):
    """A threshold that was reached, once for each arming: a raised limit, a new period or a
    correction below it rearms it.

    `threshold` is in percent. `actual` is written in the transaction of the booking that crossed it,
    `forecast` when it is first expected. Alerts set `handled_at`. Belongs to an account or a budget.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, null=True, related_name="crossings")
    budget = models.ForeignKey(Budget, on_delete=models.CASCADE, null=True, related_name="crossings")
    kind = models.CharField(max_length=10, choices=CrossingKind)
    threshold = models.IntegerField()
    arming = models.IntegerField()
    at = models.DateTimeField()
    spent_picodollars = models.BigIntegerField()
    limit_picodollars = models.BigIntegerField()
    expected_at = models.DateTimeField(null=True, blank=True)
    handled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "kind", "threshold", "arming"], name="crossing_of_account_once"
            ),
            models.UniqueConstraint(
                fields=["budget", "kind", "threshold", "arming"], name="crossing_of_budget_once"
            ),
            models.CheckConstraint(
                condition=Q(account__isnull=False, budget__isnull=True)
                | Q(account__isnull=True, budget__isnull=False),
                name="crossing_of_one",
            ),
        ]
        indexes = [models.Index(fields=["at"], condition=Q(handled_at=None), name="crossing_to_tell")]

    def __str__(self) -> str:
        return f"{self.threshold} % {self.kind}"


RENT = "rent"
"""The kind of a charge for a slice of rent. Any other is a kind of call (`training.calls.KINDS`)."""


def charge_kinds() -> list[tuple[str, str]]:
    """Return the kinds of charges with their words, in the order of bills."""
    return [*((kind.name, kind.title) for kind in KINDS.values()), (RENT, "Rent")]


class ChargeState(models.TextChoices):
    OPEN = "open", "Open"
    SETTLED = "settled", "Settled"
    RELEASED = "released", "Released"


class Basis(models.TextChoices):
    METERED = "metered", "Metered"
    ASSUMED = "assumed", "Assumed"


class Charge(models.Model):
    """One reservation and its cost. `name` is the id of the call or of a slice of rent.

    A resumed run may use a name again, so a charge is unique by epoch and name. A corrected charge keeps its
    first booking in `assumed`, and counts at the time of that booking (`resolved_at`).
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="charges")
    epoch = models.BigIntegerField()
    name = models.CharField(max_length=120)
    round_no = models.BigIntegerField()
    kind = models.CharField(max_length=20, choices=charge_kinds)
    state = models.CharField(max_length=10, choices=ChargeState, default=ChargeState.OPEN)
    basis = models.CharField(max_length=10, choices=Basis, blank=True, default="")
    reserved_picodollars = models.BigIntegerField()
    settled_picodollars = models.BigIntegerField(null=True, blank=True)
    assumed_picodollars = models.BigIntegerField(null=True, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    lines = models.JSONField(default=list, blank=True)
    opened_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True)
    corrected_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "epoch", "name"], name="charge_once"),
            models.CheckConstraint(condition=~Q(kind=""), name="charge_has_a_kind"),
            models.CheckConstraint(
                condition=Q(reserved_picodollars__gte=0), name="charge_reserved_not_negative"
            ),
            models.CheckConstraint(
                condition=Q(state="settled", settled_picodollars__gte=0)
                | (~Q(state="settled") & Q(settled_picodollars__isnull=True)),
                name="charge_settled_has_amount",
            ),
        ]
        indexes = [
            models.Index(fields=["account"], condition=Q(state="open"), name="charge_open"),
            models.Index(fields=["account", "round_no"], name="charge_of_round"),
            # Not partial: SQLite uses a partial index only if the query repeats its condition.
            models.Index(fields=["account", "basis"], name="charge_by_basis"),
            models.Index(fields=["resolved_at"], name="charge_resolved"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class LaunchForecast(models.Model):
    """A job's forecast at launch, kept for comparison with the result.

    `alike` is the key of jobs of the same kind. `past_runs` is the number of runs that corrected this
    forecast; the factors are their correction of cost and time. `parts` are picodollars by part of the forecast, as the
    corrected p50 has them; empty for jobs from before they were stored.
    """

    job = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="launch_forecast")
    at = models.DateTimeField()
    alike = models.CharField(max_length=64, db_index=True)
    past_runs = models.IntegerField(default=0)
    cost_p10_picodollars = models.BigIntegerField()
    cost_p50_picodollars = models.BigIntegerField()
    cost_p90_picodollars = models.BigIntegerField()
    time_p10_s = models.FloatField()
    time_p50_s = models.FloatField()
    time_p90_s = models.FloatField()
    first_round_picodollars = models.BigIntegerField()
    parts = models.JSONField(default=dict)
    cost_factor = models.FloatField(default=1.0)
    time_factor = models.FloatField(default=1.0)

    def __str__(self) -> str:
        return f"forecast of {self.job_id}"


class BillSheet(models.Model):
    """A job's latest stored bill by part, with its cost on other clouds.

    `final`: it cannot change. Otherwise it is drawn up again after `again_at`.
    """

    job = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="bill")
    at = models.DateTimeField()
    round_no = models.BigIntegerField()
    total_picodollars = models.BigIntegerField()
    final = models.BooleanField(default=False)
    again_at = models.DateTimeField(null=True, blank=True)
    document = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"bill of {self.job_id}"
