"""What pages read of memory profiles."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404

from cloud.accounts.profiling import ProfiledCall
from webapp.accounts.models import Project
from webapp.connections.models import Connection
from webapp.connections.queries import connection_in
from webapp.resources.profiling.models import MemoryProfile

SIMULATED = "simulated"
"""The simulated cloud's place in addresses, where an account has its connection's id."""


def account_in(project: Project, connection_id: str) -> Connection | None:
    """The connection to profile; None for the simulated cloud."""
    return None if connection_id == SIMULATED else connection_in(project, connection_id)


def profiles_of(project: Project, connection: Connection | None) -> QuerySet[MemoryProfile]:
    """The profiles of one account or of the simulated cloud, newest first."""
    return MemoryProfile.objects.filter(project=project, connection=connection)


def profile_in(project: Project, connection: Connection | None, profile_id: int) -> MemoryProfile:
    """That profile of the account, or of the simulated cloud; Http404 for any other."""
    profile = profiles_of(project, connection).filter(pk=profile_id).first()
    if profile is None:
        raise Http404("There is no such profile of this account in this project.")
    return profile


def runs_of(profile: MemoryProfile) -> list[ProfiledCall]:
    return [ProfiledCall(**run) for run in profile.runs]
