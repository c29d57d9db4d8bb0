"""Tokens: create, look up, revoke, and audit their actions. All writes of this app."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import F, Q, QuerySet

from webapp.accounts.models import Project, User
from webapp.api.models import ApiToken, Caller, Deed, TokenScope
from webapp.clock import SYSTEM_CLOCK, Clock

PREFIX = "starling_pat_"
"""A prefix by which scanners find tokens in repositories."""
_USED_AGAIN_AFTER = timedelta(minutes=1)
TOKENS_EACH = 50
DAYS_BY_DEFAULT = 90


class TooManyTokens(ValueError):
    """The person has too many valid tokens; the text says so."""


@transaction.atomic
def make_token(
    *,
    user: User,
    name: str,
    scopes: Iterable[str],
    project: Project | None = None,
    days: int = DAYS_BY_DEFAULT,
    clock: Clock = SYSTEM_CLOCK,
) -> tuple[ApiToken, str]:
    """A new token and its key, which cannot be shown again. TooManyTokens at the limit."""
    now = clock.now()
    if valid_tokens(user, clock=clock).count() >= TOKENS_EACH:
        raise TooManyTokens(f"You have {TOKENS_EACH} valid tokens. Revoke one that you no longer need.")
    key = PREFIX + secrets.token_urlsafe(32)
    token = ApiToken.objects.create(
        user_id=user.pk,
        project=project,
        name=name,
        scopes=[scope.value for scope in TokenScope if scope in {TokenScope.READ, *scopes}],
        sha256=_digest(key),
        hint=key[-4:],
        created_at=now,
        expires_at=now + timedelta(days=days),
        access_epoch=user.access_epoch,
    )
    record_action(token, "Token made", clock=clock)
    return token, key


@transaction.atomic
def revoke_token(*, token: ApiToken, clock: Clock = SYSTEM_CLOCK) -> None:
    """Revoke the token. Revoking it again changes nothing."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=clock.now()):
        record_action(token, "Token revoked", clock=clock)


def revoke_for_member(*, user_id: int, project_id: int, clock: Clock = SYSTEM_CLOCK) -> None:
    for token in ApiToken.objects.filter(user_id=user_id, project_id=project_id, revoked_at=None):
        revoke_token(token=token, clock=clock)


def caller_of_key(key: str, *, clock: Clock = SYSTEM_CLOCK) -> Caller | None:
    """The caller of a key. None if the key is invalid, expired or revoked, or its person is inactive."""
    if not key.startswith(PREFIX):
        return None
    now = clock.now()
    token = (
        ApiToken.objects.filter(_is_valid(now), sha256=_digest(key), user__is_active=True)
        .select_related("project", "user")
        .first()
    )
    if token is None:
        return None
    if token.last_used_at is None or now - token.last_used_at >= _USED_AGAIN_AFTER:
        with suppress(DatabaseError):  # a read needs no write: the disk may be full
            ApiToken.objects.filter(pk=token.pk).update(last_used_at=now)
    callers: QuerySet[Caller] = QuerySet(Caller)
    caller = callers.get(pk=token.user_id)
    caller.token = token
    return caller


def record_action(
    token: ApiToken, what: str, *, outcome: str = "", address: str = "", clock: Clock = SYSTEM_CLOCK
) -> None:
    """Write an audit record."""
    Deed.objects.create(
        token=token,
        token_name=str(token),
        person=token.user.email,
        at=clock.now(),
        what=what[:200],
        outcome=outcome,
        address=address[:45],
    )


def valid_tokens(user: User, *, clock: Clock = SYSTEM_CLOCK) -> QuerySet[ApiToken]:
    """The person's valid tokens, newest first."""
    mine = ApiToken.objects.filter(_is_valid(clock.now()), user_id=user.pk)
    return mine.select_related("project").order_by("-created_at", "pk")


def valid_among(token_ids: Iterable[str], *, clock: Clock = SYSTEM_CLOCK) -> QuerySet[ApiToken]:
    """Those of the tokens whose keys `caller_of_key` would take now."""
    return ApiToken.objects.filter(_is_valid(clock.now()), pk__in=token_ids, user__is_active=True)


def ended_tokens(user: User, *, clock: Clock = SYSTEM_CLOCK) -> QuerySet[ApiToken]:
    """The person's revoked and expired tokens, newest first."""
    mine = ApiToken.objects.filter(~_is_valid(clock.now()), user_id=user.pk)
    return mine.select_related("project").order_by("-created_at", "pk")


def _is_valid(now: Any) -> Q:
    return Q(revoked_at=None, expires_at__gt=now, access_epoch=F("user__access_epoch"))


def _digest(key: str) -> str:
    # A random key of 256 bits needs no slow hash.
    return hashlib.sha256(key.encode()).hexdigest()
