"""What a job needs of its connection to a cloud, asked before it is launched: of what is stored, never of the cloud."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cloud.aws_lambda import LambdaOptions
from cloud.hosts import HostsOptions
from cloud.price_book import PriceBook, PriceError, UnknownSku
from webapp.credentials import opening, queries
from webapp.credentials.models import Connection, SetUp
from webapp.gateway import machines
from webapp.jobs.preflight import cluster_obstacle
from webapp.jobs.problems import Problem
from webapp.jobs.spec import JobSpec
from webapp.jobs.spec_fields import Named

CONNECTION = "platform.connection"
_MEMORY = "training.rollout.memory_mb"
_AT_ONCE = "Functions at once"
"""The quota's name in the report of a test (cloud.aws_checks)."""


def offered(project: Any) -> list[Named]:
    """The project's AWS accounts, as the form offers them."""
    found = [one for one in queries.connections_of(project) if one.cloud == "aws"]
    return [Named(one.pk, f"{one.name}{' (emulated)' if one.emulated else ''}", _words(one)) for one in found]


def _words(connection: Connection) -> str:
    account = f"Account {connection.account_id}" if connection.account_id else "Not tested yet"
    emulated = ", emulated on this installation: nothing is paid" if connection.emulated else ""
    return f"{account}, region {connection.region}{emulated}."


def none_yet(project: Any) -> SafeString:
    """What stands below the select of a project without any."""
    address = reverse("credentials:list", args=[project.slug])
    return format_html('No AWS account is connected yet. <a href="{}">Connect one under Clouds.</a>', address)


def connection_of(project: Any, spec: JobSpec) -> Connection | None:
    """The connection that the spec names, if this project has it."""
    if not isinstance(spec.platform, LambdaOptions):
        return None
    return queries.connections_of(project).filter(pk=spec.platform.connection).first()


def held_for(project: Any, spec: JobSpec) -> Connection | None:
    """The same, locked until the job is stored: nobody takes its functions away between the look and the launch."""
    connection = connection_of(project, spec)
    return connection and Connection.objects.select_for_update().filter(pk=connection.pk).first()


def placed(project: Any, spec: JobSpec) -> JobSpec:
    """The spec in the region of its connection: that is where its functions are."""
    connection = connection_of(project, spec)
    if connection is None:
        return spec
    platform = spec.platform.model_copy(update={"region": connection.region})
    return spec.model_copy(update={"platform": platform})


def obstacles(project: Any, spec: JobSpec) -> list[Problem]:
    """Why this job cannot be launched on its cloud, if so; nothing for one that needs no cloud."""
    if found := cluster_obstacle(spec.platform):
        return [found]
    if isinstance(spec.platform, HostsOptions):
        return machines.obstacles()
    if not isinstance(spec.platform, LambdaOptions):
        return []
    connection = connection_of(project, spec)
    if connection is None:
        return [_at_connection("choose one of this project's connections to AWS, under Clouds.")]
    if connection.cloud != "aws":
        return [_at_connection(f"{connection.name} is not a connection to AWS.")]
    missing = list(_not_ready(connection, spec))
    return missing or list(_too_much(connection, spec, spec.platform))


def _at_connection(words: str) -> Problem:
    return Problem(CONNECTION, f"Connection ({CONNECTION}): {words}")


def _not_ready(connection: Connection, spec: JobSpec) -> Iterator[Problem]:
    """What stands against any job on it, the first thing to be done only."""
    try:
        opening.require_usable(connection)
    except opening.CannotOpen as error:
        yield _at_connection(str(error))
        return
    report = connection.test_report
    if report is None:
        yield _at_connection(f"{connection.name} has not been tested. Test it under Clouds, then launch.")
    elif not report["ok"]:
        yield _at_connection(
            f"the last test of {connection.name} found something missing. Its page under Clouds says what to do."
        )
    else:
        yield from _without_function(
            connection, queries.set_up_of(connection), spec.training.rollout.memory_mb
        )


def _without_function(connection: Connection, made: SetUp | None, memory_mb: int) -> Iterator[Problem]:
    if made is None or not made.ready_mb:
        words = f"{connection.name} is not set up: there is no function to run. Set it up under Clouds, then launch."
        yield _at_connection(words)
    elif memory_mb not in made.ready_mb:
        there = ", ".join(f"{size:,} MB" for size in made.ready_mb)
        yield Problem(
            _MEMORY,
            f"Memory of an actor ({_MEMORY}): {connection.name} has no function with {memory_mb:,} MB. It has {there}:"
            " take that, or set another one up under Clouds.",
        )


def _too_much(connection: Connection, spec: JobSpec, options: LambdaOptions) -> Iterator[Problem]:
    """What this job asks for and the account does not have."""
    there = options.model_copy(update={"region": connection.region})
    try:
        there.tariff(PriceBook.load(), spec.training.rollout.memory_mb)
    except (UnknownSku, PriceError) as error:
        yield _at_connection(f"without a price no budget can be kept, and {error}.")
        return
    allowed = functions_at_once(connection)
    largest = spec.training.scaling.largest
    wanted = largest if options.at_once is None else min(largest, options.at_once)
    if allowed is not None and wanted > allowed:
        path = spec.path_of_largest
        yield Problem(
            path,
            f"This account runs {allowed:,} function{'' if allowed == 1 else 's'} at once; the job asks for {wanted:,}."
            f" Ask for {allowed:,} at most ({path}), let some wait (platform.at_once), or have AWS allow more, which is"
            " free: Service Quotas, AWS Lambda.",
        )
    if allowed is not None and options.provisioned > allowed:
        path = "platform.provisioned"
        yield Problem(path, f"Functions kept ready ({path}): this account runs {allowed:,} at once.")


def functions_at_once(connection: Connection) -> int | None:
    """What the account told at its last test, less what others have reserved of it; None if it did not tell."""
    for quota in (connection.test_report or {}).get("quotas", []):
        if quota["name"] == _AT_ONCE:
            return int(quota["limit"]) - int(quota["used"] or 0)
    return None
