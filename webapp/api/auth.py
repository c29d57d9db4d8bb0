"""Authentication, scopes and rate limits: every route of the API passes here."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from ninja.security import HttpBearer

from webapp.accounts.access import membership_for
from webapp.accounts.limits.counters import RateLimits
from webapp.accounts.models import Membership, Project
from webapp.api.models import Caller, TokenScope
from webapp.api.problems import ApiRefused
from webapp.api.tokens import caller_of_key

_WORDS = {
    TokenScope.READ: "read",
    TokenScope.JOBS: "launch, pause and stop jobs, upload data and test connections",
    TokenScope.BUDGET: "raise budgets",
    TokenScope.MANAGE: "manage people, clouds, channels and bills",
}


pace = RateLimits()


class Token(HttpBearer):
    """A bearer token with a scope. Its caller is at `request.auth`."""

    def __init__(self, scope: str = TokenScope.READ) -> None:
        super().__init__()
        self.scope = TokenScope(scope)

    def authenticate(self, request: HttpRequest, token: str) -> Caller | None:
        caller = caller_of_key(token)
        if caller is None:
            return None
        request.caller = caller  # type: ignore[attr-defined]
        _paced(request, caller.token.pk)
        if self.scope not in caller.token.scopes:
            raise _out_of_scope(caller, self.scope)
        return caller


def _paced(request: HttpRequest, token_id: str) -> None:
    a_minute = settings.STARLING_API_REQUESTS_A_MINUTE
    left, wait_s = pace.take(token_id, a_minute, time.time())
    request.pace = (a_minute, max(0, left), wait_s)  # type: ignore[attr-defined]
    if left < 0:
        raise ApiRefused(
            429,
            "pace",
            "The request was not processed.",
            f"This token has used its {a_minute:,} requests a minute.",
            "Wait as many seconds as Retry-After says, and send fewer requests.",
        )


def _out_of_scope(caller: Caller, scope: TokenScope) -> ApiRefused:
    if scope == TokenScope.BUDGET:
        return ApiRefused(
            403,
            "fresh-sign-in",
            "The budget was not raised.",
            "Raising a budget requires a fresh sign-in, which a token cannot give,"
            " or the scope “budget”, which this token lacks.",
            "Raise it on the job's page, or use a token with the scope “budget”.",
        )
    return ApiRefused(
        403,
        "scope",
        "Nothing was changed.",
        f"The token “{caller.token.name}” may not {_WORDS[scope]}: it has no scope “{scope.value}”.",
        f"Make a token with the scope “{scope.value}” under Account, Tokens.",
    )


def require_scope(request: HttpRequest, scope: TokenScope) -> None:
    """For a part of a route that requires a further scope. Refused without it."""
    caller: Any = request.auth  # type: ignore[attr-defined]
    if scope not in caller.token.scopes:
        raise _out_of_scope(caller, scope)


def project_of(request: HttpRequest, slug: str, needs: str = "viewer") -> Project:
    """The caller's project. Raises if their role there is too low, or if the token is for another project."""
    return member_of(request, slug, needs).project


def archived_project_of(request: HttpRequest, slug: str, needs: str = "viewer") -> Project:
    """As `project_of`, also for changes of an archived project."""
    return member_of_archived(request, slug, needs).project


def member_of_archived(request: HttpRequest, slug: str, needs: str = "viewer") -> Membership:
    """As `member_of`, also for changes of an archived project."""
    return member_of(request, slug, needs, archived=True)


def member_of(
    request: HttpRequest, slug: str, needs: str = "viewer", *, archived: bool = False
) -> Membership:
    """The caller's membership of the project. Raises as `project_of` does."""
    caller: Any = request.auth  # type: ignore[attr-defined]
    member = membership_for(caller, slug, needs, archived=archived)
    if caller.token.project_id not in (None, member.project_id):
        raise ApiRefused(
            404,
            "absent",
            "Nothing was found.",
            f"The token “{caller.token.name}” is for the project {caller.token.project.slug} alone.",
            "Use a token for this project, or one for all of yours.",
        )
    return member
