"""Tokens made, looked up and revoked, and the lines about what was done with them. All writes of this app."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, Q, QuerySet

from webapp.api.models import ApiToken, Caller, Deed, Scope
from webapp.clock import SYSTEM_CLOCK, Clock

PREFIX = "starling_pat_"
"""So that a scanner of repositories finds one that slipped in."""
_USED_AGAIN_AFTER = timedelta(minutes=1)
TOKENS_EACH = 50
DAYS_BY_DEFAULT = 90


class TooManyTokens(ValueError):
    """Enough tokens of this person hold; the text says so."""


@transaction.atomic
def make_token(
    *,
    user: Any,
    name: str,
    scopes: Iterable[str],
    project: Any = None,
    days: int = DAYS_BY_DEFAULT,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[ApiToken, str]:
    """A new token and the key that goes with it, which nobody can be told again."""
    now = clock.now()
    if holding(user, clock=clock).count() >= TOKENS_EACH:
        raise TooManyTokens(
            f"You have {TOKENS_EACH} tokens that hold. Revoke one that is not needed any more."
        )
    key = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user_id=user.pk,
        project=project,
        name=name,
        scopes=[scope.value for scope in Scope if scope in {Scope.READ, *scopes}],
        sha256=_digest(key),
        hint=key[-4:],
        created_at=now,
        expires_at=now + timedelta(days=days),
        access_epoch=user.access_epoch,
    )
    note(token, "Token made", clock=clock)
    return token, key


@transaction.atomic
def revoke_token(*, token: ApiToken, clock: Clock = SYSTEM_CLOCK) -> None:
    """The token opens nothing from now on. Revoking it again changes nothing."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=clock.now()):
        note(token, "Token revoked", clock=clock)


def revoke_for_member(*, user_id: int, project_id: int, clock: Clock = SYSTEM_CLOCK) -> None:
    """Whoever is no member of a project any more has no token that was made for it alone."""
    for token in ApiToken.objects.filter(user_id=user_id, project_id=project_id, revoked_at=None):
        revoke_token(token=token, clock=clock)


def caller_with(key: str, *, clock: Clock = SYSTEM_CLOCK) -> Caller | None:
    """Whom a key stands for; None if it is none of ours, has ended or was revoked, or its person is gone."""
    if not key.startswith(PREFIX):
        return None
    now = clock.now()
    token = (
        ApiToken.objects.filter(_holds(now), sha256=_digest(key), user__is_active=True)
        .select_related("project", "user")
        .first()
    )
    if token is None:
        return None
    if token.last_used_at is None or now - token.last_used_at >= _USED_AGAIN_AFTER:
        ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    caller = Caller.objects.get(pk=token.user_id)
    caller.token = token
    return caller


def note(
    token: ApiToken, what: str, *, outcome: str = "", address: str = "", clock: Clock = SYSTEM_CLOCK
) -> None:
    """A line that stays."""
    Deed.objects.create(
        token=token,
        token_name=str(token),
        person=token.user.email,
        at=clock.now(),
        what=what[:200],
        outcome=outcome,
        address=address[:45],
    )


def holding(user: Any, *, clock: Clock = SYSTEM_CLOCK) -> QuerySet[ApiToken]:
    """The person's tokens that open something, newest first."""
    mine = ApiToken.objects.filter(_holds(clock.now()), user_id=user.pk)
    return mine.select_related("project").order_by("-created_at", "pk")


def ended(user: Any, *, clock: Clock = SYSTEM_CLOCK) -> QuerySet[ApiToken]:
    """Those that did once, newest first."""
    mine = ApiToken.objects.filter(~_holds(clock.now()), user_id=user.pk)
    return mine.select_related("project").order_by("-created_at", "pk")


def _holds(now: Any) -> Q:
    return Q(revoked_at=None, expires_at__gt=now, access_epoch=F("user__access_epoch"))


def _digest(key: str) -> str:
    # A random key of 256 bits needs no slow hash.
    return hashlib.sha256(key.encode()).hexdigest()
