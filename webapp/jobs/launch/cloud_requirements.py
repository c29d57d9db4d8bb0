"""What a job needs of its cloud connection and of this site's address, checked before the launch from stored
reports, without calls to the cloud."""

from __future__ import annotations

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cloud.platforms.options import CLOUD_OF
from webapp.accounts.models import Project
from webapp.connections import queries
from webapp.connections.models import Connection
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch.platforms import requirements_of
from webapp.jobs.launch.preflight import platform_obstacle
from webapp.jobs.launch.requirements import connection_of
from webapp.jobs.spec import JobSpec


def list_connections(project: Project) -> dict[str, list[Named]]:
    """Return the project's connections by platform, for the form."""
    connections = list(queries.connections_of(project))
    return {
        kind: [
            Named(row.pk, f"{row.name}{' (emulated)' if row.emulated else ''}", _words(row))
            for row in connections
            if row.cloud == cloud
        ]
        for kind, cloud in CLOUD_OF.items()
    }


def _words(connection: Connection) -> str:
    what = "Account" if connection.cloud == "aws" else "Subscription"
    account = f"{what} {connection.account_id}" if connection.account_id else "Not tested yet"
    emulated = ", emulated on this installation: nothing is paid" if connection.emulated else ""
    return f"{account}, region {connection.region}{emulated}."


def missing_connection_texts(project: Project) -> dict[str, SafeString]:
    """Return the texts for platforms without a connection, by platform."""
    address = reverse("connections:list", args=[project.slug])
    words = {"aws": "No AWS account", "azure": "No Azure subscription"}
    return {
        kind: format_html(
            '{} is connected yet. <a href="{}">Connect one under Clouds.</a>', words[cloud], address
        )
        for kind, cloud in CLOUD_OF.items()
    }


def lock_connection(project: Project, spec: JobSpec) -> Connection | None:
    """Return the same, locked until the job is stored, so that its functions are not removed before the launch."""
    connection = connection_of(project, spec)
    return connection and Connection.objects.select_for_update().filter(pk=connection.pk).first()


def fill_in_setup(project: Project, spec: JobSpec) -> JobSpec:
    """Return the spec with its connection's region and what was set up there: functions, or an image."""
    connection = connection_of(project, spec)
    if connection is None:
        return spec
    follows = requirements_of(spec.platform).follows(queries.set_up_of(connection), spec)
    follows["region"] = connection.region
    platform = spec.platform.model_copy(update=follows)
    return spec.model_copy(update={"platform": platform})


def obstacles(project: Project, spec: JobSpec) -> list[SpecProblem]:
    """Return why this job cannot be launched on its platform."""
    row = requirements_of(spec.platform)
    if obstacle := row.unsafe(spec) or platform_obstacle(spec):
        return [obstacle]
    return list(row.obstacles(project, spec))
