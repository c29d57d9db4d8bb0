"""What pages read of memory profiles."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from cloud.profiling import Run
from webapp.connections.models import Connection
from webapp.connections.queries import GIVEN_UP_AFTER as REQUEST_GIVEN_UP_AFTER
from webapp.connections.queries import connection_in
from webapp.profiling.models import MemoryProfile, State

SIMULATED = "simulated"
"""Stands where an account's connection is named otherwise."""

GIVEN_UP_AFTER = timedelta(minutes=5)
"""A profile that began has told nothing for so long: whoever worked on it is gone."""


def account_in(project: Any, connection_id: str) -> Connection | None:
    """The account that is meant; None is the simulated cloud."""
    return None if connection_id == SIMULATED else connection_in(project, connection_id)


def profiles_of(project: Any, connection: Connection | None) -> QuerySet[MemoryProfile]:
    """Those of one account, or of the simulated cloud; newest first."""
    return MemoryProfile.objects.filter(project=project, connection=connection)


def profile_in(project: Any, connection: Connection | None, profile_id: int) -> MemoryProfile:
    """That profile of the account, or of the simulated cloud; Http404 for any other."""
    found = profiles_of(project, connection).filter(pk=profile_id).first()
    if found is None:
        raise Http404("There is no such profile of this account in this project.")
    return found


def runs_of(profile: MemoryProfile) -> list[Run]:
    return [Run(**run) for run in profile.runs]


def under_way(profile: MemoryProfile) -> bool:
    return profile.state in (State.ASKED, State.RUNNING)


def given_up(profile: MemoryProfile, now: datetime) -> bool:
    """Whether nobody seems to work on it."""
    if not under_way(profile):
        return False
    patience = REQUEST_GIVEN_UP_AFTER if profile.state == State.ASKED else GIVEN_UP_AFTER
    return now - profile.since > patience
