"""Tables of money, in whole picodollars (1 USD = 10**12). Written only by `ledger` and `services`."""

from django.db import models
from django.db.models import F, Q


class Account(models.Model):
    """What one job may spend. The database itself refuses more than the limit."""

    job = models.OneToOneField("jobs.Job", on_delete=models.CASCADE, related_name="account")
    limit_picodollars = models.BigIntegerField()
    reserved_picodollars = models.BigIntegerField(default=0)
    spent_picodollars = models.BigIntegerField(default=0)
    overrun_picodollars = models.BigIntegerField(default=0)
    frozen = models.BooleanField(default=False)

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
        ]

    def __str__(self) -> str:
        return f"account of {self.job_id}"


class ChargeKind(models.TextChoices):
    ROLLOUT = "rollout", "Rollout"
    EVALUATE = "evaluate", "Evaluation"
    UPDATE = "update", "Update"
    RENT = "rent", "Rent"


class ChargeState(models.TextChoices):
    OPEN = "open", "Open"
    SETTLED = "settled", "Settled"
    RELEASED = "released", "Released"


class Basis(models.TextChoices):
    METERED = "metered", "Metered"
    ASSUMED = "assumed", "Assumed"


class Charge(models.Model):
    """One reservation and what it came to. `name` is the call's id, or that of a slice of rent.

    A resumed run may use a name again, so a charge is named by its epoch as well.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="charges")
    epoch = models.BigIntegerField()
    name = models.CharField(max_length=120)
    round_no = models.BigIntegerField()
    kind = models.CharField(max_length=10, choices=ChargeKind)
    state = models.CharField(max_length=10, choices=ChargeState, default=ChargeState.OPEN)
    basis = models.CharField(max_length=10, choices=Basis, blank=True, default="")
    reserved_picodollars = models.BigIntegerField()
    settled_picodollars = models.BigIntegerField(null=True, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    lines = models.JSONField(default=list, blank=True)
    opened_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "epoch", "name"], name="charge_once"),
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
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class BillSheet(models.Model):
    """A job's bill by part with what it would have come to elsewhere, as it was drawn up last.

    `final`: nothing more can come to it. Otherwise it is drawn up again once `again_at` has passed.
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
