"""What a job on Azure Container Instances requires of its subscription: an image, cores and groups, a way back here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cloud.platforms.azure_container import AzureContainerOptions
from webapp.connections import queries
from webapp.connections.models import Connection, SetUp
from webapp.formatting import plural
from webapp.jobs.form.spec_problems import SpecProblem, at_connection
from webapp.jobs.launch.requirements import (
    AccountRequirements,
    free_quota,
    is_loopback,
    missing_price,
    too_many_learners,
    unsafe_address,
)
from webapp.jobs.spec import JobSpec

WITHOUT_IMAGE = "{} is not set up: there is no image to run. Set it up under Clouds, then launch."

_CORES, _GROUPS = "Cores", "Container groups"
"""The quotas' names in a connection's test report (cloud.accounts.checks)."""


class ContainerRequirements(AccountRequirements):
    def of_account(
        self, connection: Connection, spec: JobSpec, options: AzureContainerOptions
    ) -> Iterator[SpecProblem]:
        made = queries.set_up_of(connection)
        if made is None or not made.ready_image:
            yield at_connection(WITHOUT_IMAGE.format(connection.name))
            return
        if not connection.emulated and (is_loopback() or unsafe_address()):
            yield at_connection(
                "containers fetch their work from this site, and its address is not one that they can reach over https."
                " The operator sets STARLING_BASE_URL to such an address."
            )
        placed = options.model_copy(update={"region": connection.region})
        if words := missing_price(placed, 0):
            yield at_connection(words)
            return
        if too_many := too_many_learners(spec.training, options.most_actors, "container"):
            yield too_many
        actors = min(spec.training.scaling.largest, options.most_actors)
        groups = -(-actors // options.containers_a_group)
        for name, wanted, unit in (
            (_CORES, actors * options.vcpu, "core"),
            (_GROUPS, groups, "container group"),
        ):
            free = free_quota(connection, name)
            if free is not None and wanted > free:
                path = spec.path_of_largest
                yield SpecProblem(
                    path,
                    f"This subscription has {plural(free, unit)} free in {connection.region}; the job asks for"
                    f" {wanted:,}. Ask for fewer actors ({path}), let some calls wait (platform.most_actors), or have"
                    " Azure allow more, which is free: a support request.",
                )

    def follows(self, made: SetUp | None, spec: JobSpec) -> dict[str, Any]:
        return {"image": made.ready_image if made is not None else ""}
