"""What a job needs of its cloud connection and of this site's address, checked before the launch from stored
reports, without calls to the cloud."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from cloud.actor.wire import RESULT_LIMIT_BYTES
from cloud.platforms.aws.invoke import INLINE_AT_MOST_BYTES
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.model import Cloud
from cloud.platforms.options import CLOUD_OF
from cloud.timing.forecasting.workload import spaces_of
from training.calls.kind import SLACK_BYTES
from training.calls.planned import Sizes, sizes_of
from training.data.store import MissingData
from training.spec import TrainingSpec
from training.tasks.supervised_spec import Supervised
from training.tasks.training import Training
from webapp.connections import decrypt, queries
from webapp.connections.models import Connection, SetUp
from webapp.connections.text import sizes
from webapp.formatting import plural
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.form.spec_problems import Problem, at_connection
from webapp.jobs.launch.preflight import (
    missing_price,
    platform_obstacle,
    too_many_learners,
    unnamed_cluster,
)
from webapp.jobs.spec import JobSpec

_NAMES: dict[Cloud, str] = {"aws": "AWS", "azure": "Azure"}
_KIND = "platform.kind"
_AT_ONCE, _CORES, _GROUPS = "Functions at once", "Cores", "Container groups"
"""The quotas' names in a connection's test report (cloud.platforms.aws.checks, cloud.platforms.azure.checks)."""
LOOPBACK_HOSTS = {"127.0.0.1", "localhost", "::1"}


def list_connections(project: Any) -> dict[str, list[Named]]:
    """Return the project's connections by platform, for the form."""
    found = list(queries.connections_of(project))
    return {
        kind: [
            Named(one.pk, f"{one.name}{' (emulated)' if one.emulated else ''}", _words(one))
            for one in found
            if one.cloud == cloud
        ]
        for kind, cloud in CLOUD_OF.items()
    }


def _words(connection: Connection) -> str:
    what = "Account" if connection.cloud == "aws" else "Subscription"
    account = f"{what} {connection.account_id}" if connection.account_id else "Not tested yet"
    emulated = ", emulated on this installation: nothing is paid" if connection.emulated else ""
    return f"{account}, region {connection.region}{emulated}."


def missing_connection_texts(project: Any) -> dict[str, SafeString]:
    """Return the texts for platforms without a connection, by platform."""
    address = reverse("connections:list", args=[project.slug])
    words = {"aws": "No AWS account", "azure": "No Azure subscription"}
    return {
        kind: format_html(
            '{} is connected yet. <a href="{}">Connect one under Clouds.</a>', words[cloud], address
        )
        for kind, cloud in CLOUD_OF.items()
    }


def connection_of(project: Any, spec: JobSpec) -> Connection | None:
    """Return the project's connection that the spec names; None if there is none."""
    if not isinstance(spec.platform, LambdaOptions | AzureContainerOptions):
        return None
    return queries.connections_of(project).filter(pk=spec.platform.connection).first()


def lock_connection(project: Any, spec: JobSpec) -> Connection | None:
    """Return the same, locked until the job is stored, so that its functions are not removed before the launch."""
    connection = connection_of(project, spec)
    return connection and Connection.objects.select_for_update().filter(pk=connection.pk).first()


def fill_in_setup(project: Any, spec: JobSpec) -> JobSpec:
    """Return the spec with its connection's region and what was set up there: functions, or an image."""
    connection = connection_of(project, spec)
    if connection is None:
        return spec
    follows: dict[str, Any] = {"region": connection.region}
    made = queries.set_up_of(connection)
    if connection.cloud == "aws" and spec.training.scaling.memory_range_mb is not None:
        follows["memory_ladder_mb"] = tuple(made.ready_mb) if made is not None else ()
    if connection.cloud == "azure":
        follows["image"] = made.ready_image if made is not None else ""
    platform = spec.platform.model_copy(update=follows)
    return spec.model_copy(update={"platform": platform})


def obstacles(project: Any, spec: JobSpec) -> list[Problem]:
    """Return why this job cannot be launched on its cloud; empty if the platform needs no connection."""
    if found := unnamed_cluster(spec.platform) or platform_obstacle(spec):
        return [found]
    if isinstance(spec.platform, HostsOptions):
        return _unsafe_address()
    if not isinstance(spec.platform, LambdaOptions | AzureContainerOptions):
        return []
    connection = connection_of(project, spec)
    cloud = CLOUD_OF[spec.platform.kind]
    if connection is None:
        return [at_connection(f"choose one of this project's connections to {_NAMES[cloud]}, under Clouds.")]
    if connection.cloud != cloud:
        return [at_connection(f"{connection.name} is not a connection to {_NAMES[cloud]}.")]
    if missing := list(_not_ready(connection)):
        return missing
    if isinstance(spec.platform, AzureContainerOptions):
        return list(_of_containers(connection, spec, spec.platform))
    return list(_of_functions(connection, spec, spec.platform))


def _not_ready(connection: Connection) -> Iterator[Problem]:
    """Return what is missing for any job on the connection, only the first thing to do."""
    try:
        decrypt.require_usable(connection)
    except decrypt.CannotOpen as error:
        yield at_connection(str(error))
        return
    report = connection.test_report
    if report is None:
        yield at_connection(f"{connection.name} has not been tested. Test it under Clouds, then launch.")
    elif not report["ok"]:
        yield at_connection(
            f"the last test of {connection.name} found something missing. Its page under Clouds says what to do."
        )


# AWS Lambda


def _of_functions(connection: Connection, spec: JobSpec, options: LambdaOptions) -> Iterator[Problem]:
    if missing := list(_without_function(connection, queries.set_up_of(connection), spec.training)):
        yield from missing
        return
    placed = options.model_copy(update={"region": connection.region})
    if words := missing_price(placed, spec.training.memory_mb):
        yield at_connection(words)
        return
    yield from _too_large(connection, spec)
    yield from _too_few_sizes(connection, spec)
    allowed = functions_at_once(connection)
    largest = spec.training.scaling.largest
    wanted = largest if options.at_once is None else min(largest, options.at_once)
    if allowed is not None and wanted > allowed:
        path = spec.path_of_largest
        yield Problem(
            path,
            f"This account runs {plural(allowed, 'function')} at once; the job asks for {wanted:,}."
            f" Ask for {allowed:,} at most ({path}), let some wait (platform.at_once), or have AWS allow more, which is"
            " free: Service Quotas, AWS Lambda.",
        )
    room = min((one for one in (allowed, options.at_once) if one is not None), default=None)
    if room is not None and (found := too_many_learners(spec.training, room, "function")):
        yield found
    if allowed is not None and options.provisioned > allowed:
        path = "platform.provisioned"
        yield Problem(path, f"Functions kept ready ({path}): this account runs {allowed:,} at once.")


def _without_function(connection: Connection, made: SetUp | None, training: Training) -> Iterator[Problem]:
    if made is None or not made.ready_mb:
        words = f"{connection.name} is not set up: there is no function to run. Set it up under Clouds, then launch."
        yield at_connection(words)
    elif training.memory_mb not in made.ready_mb:
        path = f"training.{training.memory_field}"
        sizes_mb = ", ".join(f"{size:,} MB" for size in made.ready_mb)
        yield Problem(
            path,
            f"Memory of an actor ({path}): {connection.name} has no function with {training.memory_mb:,} MB. It has"
            f" {sizes_mb}: take that, or set another one up under Clouds.",
        )


def _too_many_rows(training: Supervised) -> Iterator[Problem]:
    try:
        call_bytes = training.call_bytes
    except MissingData:
        return  # the data is checked by itself
    if call_bytes > INLINE_AT_MOST_BYTES:
        path = "training.minibatch"
        yield Problem(
            path,
            f"Minibatch ({path}): {training.progress_a_call:,} rows and the parameters have"
            f" {call_bytes / 2**20:.1f} MiB, more than a call's request, which holds"
            f" {INLINE_AT_MOST_BYTES / 2**20:.1f} MiB. Take a smaller minibatch or fewer local steps.",
        )


def _too_few_sizes(connection: Connection, spec: JobSpec) -> Iterator[Problem]:
    """Return the problem of a policy that changes memory, where fewer than two sizes of its range are set up."""
    chosen, made = spec.training.scaling.memory_range_mb, queries.set_up_of(connection)
    if chosen is None or made is None:
        return
    least, most = chosen
    if sum(least <= size <= most for size in made.ready_mb) < 2:
        path = "training.scaling"
        yield Problem(
            path,
            f"Policy ({path}): it chooses from {least:,} to {most:,} MB. {sizes(made.ready_mb)} set up at"
            f" {connection.name}: set up more sizes under Clouds, or take a policy that leaves memory as it is.",
        )


def _too_large(connection: Connection, spec: JobSpec) -> Iterator[Problem]:
    """Return the problem of a network that exceeds a call's payload, without a bucket to load it from, or of rows that
    exceed it, which come with the call.
    """
    if isinstance(spec.training, Supervised):
        yield from _too_many_rows(spec.training)
    made = queries.set_up_of(connection)
    spaces, known = spaces_of(spec.training)
    if not known or not isinstance(spec.training, TrainingSpec):
        return
    sizes, has_bucket = sizes_of(spec.training, spaces), made is not None and bool(made.ready_bucket)
    yield from slice_too_large(spec.training, sizes, has_bucket=has_bucket)
    yield from gradient_too_large(spec.training, sizes)
    if has_bucket:
        return
    if sizes.weights + sizes.state > INLINE_AT_MOST_BYTES:
        path = "training.network"
        yield Problem(
            path,
            f"Network ({path}): a policy of {sizes.weights / 2**20:.1f} MiB does not fit into a call to a function,"
            f" which holds {INLINE_AT_MOST_BYTES / 2**20:.1f} MiB. Take a smaller network, or set {connection.name} up"
            " again under Clouds with a bucket for large networks.",
        )


def slice_too_large(training: TrainingSpec, sizes: Sizes, *, has_bucket: bool) -> Iterator[Problem]:
    """Return the problem of a slice that exceeds a call's payload together with the policies of the other learners, and
    with the parameters where there is no bucket for those.
    """
    loop, algorithm = training.loop.gradients, training.algorithm
    if loop is None or loop.where != "actor":
        return
    policies = loop.learners - 1 if loop.truncated.reads_policies else 0
    kept = 4 * training.progress_a_call * len(algorithm.kept_of_first_pass)
    # Where actors wait, a slice may hold what is left over of the wave before.
    sampling = min(loop.trajectories_per_gradient, 2) if loop.actors_wait else loop.trajectories_per_gradient
    others = (policies + sampling * algorithm.anchors_to_sampling) * sizes.weights
    room = INLINE_AT_MOST_BYTES - others - (0 if has_bucket else sizes.parameters)
    fitting = max(0, room) // (sizes.trajectory + kept)
    if fitting >= loop.trajectories_per_gradient:
        return
    path = "training.loop.trajectories_per_gradient"
    limit = f"a call to a function, which holds {INLINE_AT_MOST_BYTES / 2**20:.1f} MiB"
    yield Problem(
        path,
        f"Trajectories per gradient ({path}): {loop.trajectories_per_gradient:,} of them, the parameters and the"
        f" learners' policies do not fit into {limit}. "
        + (f"Take {fitting:,} at most." if fitting else "Take a smaller network or fewer learners."),
    )


def gradient_too_large(training: TrainingSpec, sizes: Sizes) -> Iterator[Problem]:
    """Return the problem of a gradient that exceeds a function's answer by itself, or together with what its first pass
    prepares for later ones.
    """
    loop, algorithm = training.loop.gradients, training.algorithm
    if loop is None or loop.where != "actor":
        return
    room = RESULT_LIMIT_BYTES - SLACK_BYTES - sizes.gradient
    limit = f"the answer of a function, which holds {RESULT_LIMIT_BYTES / 2**20:.1f} MiB"
    if room < 0:
        path = "training.network"
        yield Problem(
            path,
            f"Network ({path}): a gradient of {sizes.gradient / 2**20:.1f} MiB does not fit into {limit}. Take a"
            " smaller network, or compute gradients on the learner's machine (training.loop.where).",
        )
        return
    kept = 4 * training.progress_a_call * len(algorithm.kept_of_first_pass) if algorithm.passes > 1 else 0
    if kept * loop.trajectories_per_gradient <= room:
        return
    path, fitting = "training.loop.trajectories_per_gradient", room // kept
    yield Problem(
        path,
        f"Trajectories per gradient ({path}): the gradient and what its first pass returns of"
        f" {loop.trajectories_per_gradient:,} of them do not fit into {limit}. "
        + (
            f"Take {fitting:,} at most."
            if fitting
            else "Take a smaller network, or sample fewer steps a call."
        ),
    )


def functions_at_once(connection: Connection) -> int | None:
    """Return the account's concurrency at its last test, less what others reserved; None if unknown."""
    return _free_quota(connection, _AT_ONCE)


def _free_quota(connection: Connection, name: str) -> int | None:
    for quota in (connection.test_report or {}).get("quotas", []):
        if quota["name"] == name:
            return max(0, int(quota["limit"]) - int(quota["used"] or 0))
    return None


# Azure Container Instances


def _of_containers(
    connection: Connection, spec: JobSpec, options: AzureContainerOptions
) -> Iterator[Problem]:
    made = queries.set_up_of(connection)
    if made is None or not made.ready_image:
        words = (
            f"{connection.name} is not set up: there is no image to run. Set it up under Clouds, then launch."
        )
        yield at_connection(words)
        return
    if not connection.emulated and (is_loopback() or _unsafe_address()):
        yield at_connection(
            "containers fetch their work from this site, and its address is not one that they can reach over https."
            " The operator sets STARLING_BASE_URL to such an address."
        )
    placed = options.model_copy(update={"region": connection.region})
    if words := missing_price(placed, 0):
        yield at_connection(words)
        return
    if found := too_many_learners(spec.training, options.most_actors, "container"):
        yield found
    actors = min(spec.training.scaling.largest, options.most_actors)
    groups = -(-actors // options.containers_a_group)
    for name, wanted, unit in ((_CORES, actors * options.vcpu, "core"), (_GROUPS, groups, "container group")):
        free = _free_quota(connection, name)
        if free is not None and wanted > free:
            path = spec.path_of_largest
            yield Problem(
                path,
                f"This subscription has {plural(free, unit)} free in {connection.region}; the job asks for {wanted:,}."
                f" Ask for fewer actors ({path}), let some calls wait (platform.most_actors), or have Azure allow more,"
                " which is free: a support request.",
            )


# This site's address, which containers and the user's own machines call


def is_loopback() -> bool:
    return urlsplit(settings.STARLING_BASE_URL).hostname in LOOPBACK_HOSTS


def _unsafe_address() -> list[Problem]:
    """Return why no machine may call this site."""
    if is_loopback() or urlsplit(settings.STARLING_BASE_URL).scheme == "https":
        return []
    sentence = (
        f"Platform ({_KIND}): machines call at {settings.STARLING_BASE_URL}, which is not encrypted, and their token"
        " would be readable on the way. The operator puts this site behind https and sets"
        " STARLING_BASE_URL to that address."
    )
    return [Problem(_KIND, sentence)]
