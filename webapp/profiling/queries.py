"""What pages read of memory profiles."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from cloud.profiling import Run
from webapp.credentials.models import Connection
from webapp.credentials.queries import NOBODY_CAME_AFTER
from webapp.profiling.models import MemoryProfile, State

GIVEN_UP_AFTER = timedelta(minutes=5)
"""A profile that began has told nothing for so long: whoever worked on it is gone."""


def profiles_of(project: Any, connection: Connection | None) -> QuerySet[MemoryProfile]:
    """Those of one account, or of the simulated cloud; newest first."""
    return MemoryProfile.objects.filter(project=project, connection=connection)


def runs_of(profile: MemoryProfile) -> list[Run]:
    return [Run(**run) for run in profile.runs]


def under_way(profile: MemoryProfile) -> bool:
    return profile.state in (State.ASKED, State.RUNNING)


def given_up(profile: MemoryProfile, now: datetime) -> bool:
    """Whether nobody seems to work on it."""
    if not under_way(profile):
        return False
    patience = NOBODY_CAME_AFTER if profile.state == State.ASKED else GIVEN_UP_AFTER
    return now - profile.since > patience
