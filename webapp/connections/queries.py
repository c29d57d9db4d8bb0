"""Reads of connections for pages and jobs. Nothing here writes or decrypts a secret."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet

from webapp.accounts.models import Project
from webapp.connections.models import CheckState, Connection, SealedRow, SealedSecret, SetUp
from webapp.http.responses import or_404
from webapp.job_states import TERMINAL

GIVEN_UP_AFTER = timedelta(seconds=30)
"""What no worker has begun for so long counts as given up."""
TEST_SILENT_FOR = 3 * GIVEN_UP_AFTER
SILENT_FOR = timedelta(minutes=5)
"""A running set-up or profile without a report for so long has lost its worker. The slowest step fetches packages."""


def connections_of(project: Project) -> QuerySet[Connection]:
    """The project's connections, by name."""
    return Connection.objects.filter(project=project).order_by("name", "pk")


def connection_in(project: Project, connection_id: str) -> Connection:
    return or_404(connections_of(project).filter(pk=connection_id).first(), "connection")


def secret_of(connection: Connection) -> SealedSecret | None:
    """When the connection's secret was set, and its last letters, without the sealed bytes."""
    return connection.secrets.only("field", "hint", "set_at", "connection_id").first()


def jobs_on(connection: Connection) -> QuerySet[Any]:
    """Every job that was launched on this connection, newest first."""
    jobs = connection.project.jobs.filter(spec__platform__connection=connection.pk)
    return jobs.order_by("-created_at", "pk")


def unfinished_jobs(connection: Connection) -> QuerySet[Any]:
    """The connection's jobs that are not over, and so still need it."""
    return jobs_on(connection).exclude(observed__in=TERMINAL)


def others_need_its_functions(connection: Connection) -> bool:
    """Whether unfinished jobs of another connection run on functions of the same names, as release 0.1 gave them."""
    if connection.cloud != "aws" or not connection.account_id:
        return False
    place = {field: getattr(connection, field) for field in ("prefix", "account_id", "region", "emulated")}
    sharing = Connection.objects.filter(**place).exclude(pk=connection.pk)
    return any(unfinished_jobs(other).exists() for other in sharing)


def secrets_by_key() -> dict[str, int]:
    """How many stored secrets each master key seals."""
    counts: Counter[str] = Counter()
    for table in SealedRow.__subclasses__():
        for row in table._default_manager.values("key_id").annotate(count=Count("pk")).order_by("key_id"):
            counts[row["key_id"]] += row["count"]
    return dict(sorted(counts.items()))


def unfinished_job_counts(connections: list[Connection]) -> dict[str, int]:
    """How many jobs that are not over need each of the connections."""
    wanted = Q()
    for connection in connections:
        wanted |= Q(spec__platform__connection=connection.pk)
    if not connections:
        return {}
    jobs = connections[0].project.jobs.filter(wanted).exclude(observed__in=TERMINAL)
    counts: dict[str, int] = {}
    for named in jobs.values_list("spec__platform__connection", flat=True):
        counts[named] = counts.get(named, 0) + 1
    return counts


def set_up_of(connection: Connection) -> SetUp | None:
    """The set-up of the connection's account. None if it was never requested."""
    return SetUp.objects.filter(connection=connection).first()


def is_given_up(
    state: str, since: datetime | None, now: datetime, silent_for: timedelta = SILENT_FOR
) -> bool:
    """Whether a test, a set-up or a profile was requested and no worker seems to do it."""
    patience = GIVEN_UP_AFTER if state == CheckState.REQUESTED else silent_for
    return is_under_way(state) and since is not None and now - since > patience


def is_under_way(state: str) -> bool:
    return state in (CheckState.REQUESTED, CheckState.RUNNING)
