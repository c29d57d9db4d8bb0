"""Tables of the API: tokens by hash, and their actions. Written only by `tokens` and `idempotency`."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models

from webapp.accounts.models import User

_ID_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def new_token_id() -> str:
    return "tok_" + "".join(secrets.choice(_ID_LETTERS) for _ in range(10))


class TokenScope(models.TextChoices):
    """What a token may do, beside what its person may: each of the later ones can read as well.

    MANAGE is for what only owners may do. In the window a person at a keyboard does that, in a session that ends; a
    token lies in a file for months, and a thief could become an owner with it, or run jobs in another account. So the
    scopes for running jobs and raising budgets do not include it.
    """

    READ = "read", "Read"
    JOBS = "jobs", "Run jobs"
    BUDGET = "budget", "Raise budgets"
    MANAGE = "manage", "Manage people, clouds and channels"


class ApiToken(models.Model):
    """A person's key for programs, in one project or in all of theirs. The key itself is shown once.

    It allows what the person's present role allows, limited by its scopes.
    """

    id = models.CharField(primary_key=True, max_length=20, default=new_token_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    project = models.ForeignKey(
        "accounts.Project", on_delete=models.CASCADE, null=True, blank=True, related_name="api_tokens"
    )
    name = models.CharField(max_length=60)
    scopes = models.JSONField(default=list)
    sha256 = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=4)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    access_epoch = models.PositiveIntegerField(default=0)
    """The person's epoch at its creation: a new password or signing out everywhere ends the token."""

    class Meta:
        indexes = [models.Index(fields=["user", "-created_at"], name="api_token_of_person")]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class Deed(models.Model):
    """An audit record: a token was made or revoked, or it changed something. Reads are not recorded.

    It outlives the token, its person and its project, and stores which token it was and whose.
    """

    token = models.ForeignKey(ApiToken, on_delete=models.SET_NULL, null=True, related_name="deeds")
    token_name = models.CharField(max_length=90)
    person = models.CharField(max_length=254)
    at = models.DateTimeField()
    what = models.CharField(max_length=200)
    outcome = models.CharField(max_length=20, blank=True, default="")
    address = models.CharField(max_length=45, blank=True, default="")

    class Meta:
        indexes = [models.Index(fields=["token", "-at"], name="deed_of_token")]

    def __str__(self) -> str:
        return self.what


class Made(models.Model):
    """The row that an Idempotency-Key created, for tables without a key of their own, and the hash of the request."""

    project = models.ForeignKey("accounts.Project", on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=40)
    key = models.CharField(max_length=100)
    sha256 = models.CharField(max_length=64)
    made_id = models.CharField(max_length=40, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "kind", "key"], name="api_key_made_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.made_id}"


class Caller(User):
    """The person of a token. As text it names the token, for records of requests."""

    token: ApiToken

    class Meta:
        proxy = True

    def __str__(self) -> str:
        return f"{self.email} (token “{self.token.name}”)"
