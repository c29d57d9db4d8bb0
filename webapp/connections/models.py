"""Tables of connections. Written only by `services`, `connection_check`, `account_setup` and `account_lease`."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.db.models import Q

from cloud.platforms.model import Cloud
from webapp.connections.sealing import Sealed, SealedPlace

_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def new_connection_id() -> str:
    """50 random bits, as letters that survive being read aloud."""
    return "con_" + "".join(secrets.choice(_ID_LETTERS) for _ in range(10))


def new_external_id() -> str:
    """The external id of a role: 160 random bits, known to this installation and the account's owner."""
    return f"starling-{secrets.token_hex(20)}"


class ConnectionKind(models.TextChoices):
    AWS_ROLE = "aws_role", "AWS role"
    AWS_KEYS = "aws_keys", "AWS access keys"
    AZURE_PRINCIPAL = "azure_principal", "Azure service principal"

    @property
    def cloud(self) -> Cloud:
        return "azure" if self == ConnectionKind.AZURE_PRINCIPAL else "aws"


PLAIN_FIELDS: dict[str, tuple[str, ...]] = {
    ConnectionKind.AWS_ROLE: ("role_arn",),
    ConnectionKind.AWS_KEYS: ("access_key_id",),
    ConnectionKind.AZURE_PRINCIPAL: ("tenant_id", "client_id"),
}
"""The fields of an identity that are not secret, by kind."""
SECRET_FIELDS: dict[str, tuple[str, ...]] = {
    ConnectionKind.AWS_ROLE: (),
    ConnectionKind.AWS_KEYS: ("secret_access_key",),
    ConnectionKind.AZURE_PRINCIPAL: ("client_secret",),
}


class CheckState(models.TextChoices):
    NEVER = "never", "Not tested"
    REQUESTED = "asked", "Waiting"
    RUNNING = "running", "Testing"
    DONE = "done", "Tested"


class Connection(models.Model):
    """How a project reaches one account of a cloud. Its secrets are sealed in `SealedSecret`.

    All names that are given for it in the account begin with `prefix`. An `emulated` connection is never used against
    a real cloud, nor the reverse. `test_no` counts tests, so that a replaced test does not write. `test_report` is the
    report of the last finished test (cloud.accounts.checks.AccountReport).
    """

    id = models.CharField(primary_key=True, max_length=20, default=new_connection_id, editable=False)
    project = models.ForeignKey("accounts.Project", on_delete=models.PROTECT, related_name="connections")
    kind = models.CharField(max_length=16, choices=ConnectionKind)
    name = models.CharField(max_length=60)
    region = models.CharField(max_length=40)
    prefix = models.CharField(max_length=32, editable=False)
    emulated = models.BooleanField(default=False)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()

    role_arn = models.CharField(max_length=600, blank=True, default="")
    external_id = models.CharField(max_length=64, blank=True, default="")
    access_key_id = models.CharField(max_length=128, blank=True, default="")
    account_id = models.CharField(max_length=40, blank=True, default="")
    tenant_id = models.CharField(max_length=40, blank=True, default="")
    client_id = models.CharField(max_length=40, blank=True, default="")
    subscription_id = models.CharField(max_length=40, blank=True, default="")
    resource_group = models.CharField(max_length=90, blank=True, default="")

    test_state = models.CharField(max_length=8, choices=CheckState, default=CheckState.NEVER)
    test_no = models.IntegerField(default=0)
    test_since = models.DateTimeField(null=True, blank=True)
    test_report = models.JSONField(null=True, blank=True)

    class Meta:
        db_table = "credentials_connection"
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["project", "name"], name="connection_name_once"),
            models.UniqueConstraint(
                fields=["external_id"], condition=~Q(external_id=""), name="external_id_once"
            ),
            models.CheckConstraint(condition=Q(kind__in=ConnectionKind.values), name="connection_kind_known"),
            models.CheckConstraint(condition=~Q(prefix=""), name="connection_prefix_given"),
            models.CheckConstraint(
                condition=Q(test_state__in=CheckState.values), name="connection_test_state_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def cloud(self) -> Cloud:
        return ConnectionKind(self.kind).cloud

    @property
    def has_identity(self) -> bool:
        """Whether the identity is set. Its secret is stored in the same transaction."""
        return all(getattr(self, field) for field in PLAIN_FIELDS[self.kind])

    def place(self, field: str) -> SealedPlace:
        """The place that a secret of this connection is sealed for."""
        return SealedPlace(self.project_id, self.pk, field)


class SealedRow(models.Model):
    """One sealed secret. `hint` holds its last letters, so that people can recognise it.

    `rotation` changes the master key of every table of this kind.
    """

    field = models.CharField(max_length=40)
    key_id = models.CharField(max_length=16, db_index=True)
    wrapped_key = models.BinaryField()
    ciphertext = models.BinaryField()
    hint = models.CharField(max_length=4, blank=True, default="")
    set_at = models.DateTimeField()

    class Meta:
        abstract = True

    def sealed(self) -> Sealed:
        return Sealed(self.key_id, bytes(self.wrapped_key), bytes(self.ciphertext))

    def place(self) -> SealedPlace:
        """The place that the secret is sealed for."""
        raise NotImplementedError


class SealedSecret(SealedRow):
    """One secret of one connection."""

    connection = models.ForeignKey(Connection, on_delete=models.CASCADE, related_name="secrets")

    class Meta:
        db_table = "credentials_sealedsecret"
        constraints = [models.UniqueConstraint(fields=["connection", "field"], name="secret_once")]

    def __str__(self) -> str:
        return f"{self.field} of {self.connection_id}"

    def place(self) -> SealedPlace:
        return self.connection.place(self.field)


class Aim(models.TextChoices):
    SET_UP = "set_up", "Set up"
    TAKE_DOWN = "take_down", "Take down"
    PROFILE = "profile", "Profile"


class SetUp(models.Model):
    """What is set up in a connection's account, and the progress of the latest request.

    `requested_mb` lists the memory sizes of functions that may exist. It is written before anything is made, and
    emptied once everything is removed. `ready_mb` are the sizes that jobs may use. A bucket for large networks and, on
    Azure, the image of containers work in the same way. `number` counts requests, so that a replaced one does not
    write; `steps` are those of the latest request (cloud.accounts.provision.steps.SetUpStep).
    """

    connection = models.OneToOneField(Connection, on_delete=models.CASCADE, related_name="set_up")
    aim = models.CharField(max_length=9, choices=Aim)
    state = models.CharField(max_length=8, choices=CheckState, default=CheckState.NEVER)
    number = models.IntegerField(default=0)
    since = models.DateTimeField()
    requested_mb = models.JSONField(default=list)
    ready_mb = models.JSONField(default=list)
    requested_bucket = models.BooleanField(default=False)
    ready_bucket = models.BooleanField(default=False)
    image = models.CharField(max_length=300, blank=True, default="")
    ready_image = models.CharField(max_length=300, blank=True, default="")
    steps = models.JSONField(default=list)

    class Meta:
        db_table = "credentials_setup"
        constraints = [
            models.CheckConstraint(condition=Q(aim__in=Aim.values), name="set_up_aim_known"),
            models.CheckConstraint(condition=Q(state__in=CheckState.values), name="set_up_state_known"),
        ]

    def __str__(self) -> str:
        return f"{self.aim} of {self.connection_id}"

    @property
    def requested(self) -> bool:
        """Whether the account may contain anything that Starling made."""
        return bool(self.requested_mb or self.requested_bucket or self.image)

    @property
    def ready(self) -> bool:
        """Whether jobs may start there."""
        return bool(self.ready_mb or self.ready_image)
