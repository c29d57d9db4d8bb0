"""Obstacles to a job in Azure containers, from stored reports, without calls to the cloud."""

from __future__ import annotations

from collections.abc import Iterator

from cloud.azure_container import AzureContainerOptions
from cloud.billing.price_book import PriceBook, PriceError, UnknownSku
from webapp.connections import queries
from webapp.connections.models import Connection
from webapp.formatting import plural
from webapp.jobs.form.spec_problems import Problem, at_connection
from webapp.jobs.launch import site_address
from webapp.jobs.spec import JobSpec

_CORES, _GROUPS = "Cores", "Container groups"
"""The quotas' names in a connection's test report (cloud.azure.checks)."""


def obstacles(connection: Connection, spec: JobSpec, options: AzureContainerOptions) -> Iterator[Problem]:
    """Return the obstacles, for a connection whose test passed."""
    made = queries.set_up_of(connection)
    if made is None or not made.ready_image:
        words = (
            f"{connection.name} is not set up: there is no image to run. Set it up under Clouds, then launch."
        )
        yield at_connection(words)
        return
    if not connection.emulated:
        yield from _out_of_reach()
    placed = options.model_copy(update={"region": connection.region})
    try:
        placed.tariff(PriceBook.load())
    except (UnknownSku, PriceError) as error:
        yield at_connection(f"without a price no budget can be kept, and {error}.")
        return
    yield from _too_much(connection, spec, options)


def _out_of_reach() -> Iterator[Problem]:
    """Containers call this site's own URL, so it must be reachable."""
    if site_address.is_loopback() or site_address.obstacles():
        yield at_connection(
            "containers fetch their work from this site, and its address is not one that they can reach over https."
            " The operator sets STARLING_BASE_URL to such an address."
        )


def _too_much(connection: Connection, spec: JobSpec, options: AzureContainerOptions) -> Iterator[Problem]:
    """Return where the job needs more than the subscription had free at its last test."""
    actors = min(spec.training.scaling.largest, options.most_actors)
    groups = -(-actors // options.containers_a_group)
    for name, wanted, unit in ((_CORES, actors * options.vcpu, "core"), (_GROUPS, groups, "container group")):
        free = _free(connection, name)
        if free is not None and wanted > free:
            path = spec.path_of_largest
            yield Problem(
                path,
                f"This subscription has {plural(free, unit)} free in {connection.region}; the job asks for {wanted:,}."
                f" Ask for fewer actors ({path}), let some calls wait (platform.most_actors), or have Azure allow more,"
                " which is free: a support request.",
            )


def _free(connection: Connection, name: str) -> int | None:
    for quota in (connection.test_report or {}).get("quotas", []):
        if quota["name"] == name:
            return max(0, int(quota["limit"]) - int(quota["used"] or 0))
    return None
