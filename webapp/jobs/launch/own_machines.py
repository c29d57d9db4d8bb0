"""What a job requires of machines of the user's own: a safe address of this site, a named cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from django.conf import settings

from cloud.platforms.ray import driver as ray_driver
from cloud.platforms.ray.head import NoRay
from cloud.platforms.ray_cluster import RayOptions
from webapp.accounts.models import Project
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch.requirements import (
    Requirements,
    missing_price,
    unsafe_address,
)
from webapp.jobs.spec import JobSpec


class HostsRequirements(Requirements):
    credentials_words = "None needed: the job's page shows the command that your machines run."

    def obstacles(self, project: Project, spec: JobSpec) -> Iterable[SpecProblem]:
        return unsafe_address()

    def missing_credentials(self, spec: JobSpec, problems: Sequence[SpecProblem]) -> Sequence[SpecProblem]:
        return problems


class ClusterRequirements(Requirements):
    credentials_words = "None needed: the cluster has to be reachable from here."

    def unsafe(self, spec: JobSpec) -> SpecProblem | None:
        return _unnamed_cluster(cast(RayOptions, spec.platform))

    def obstacle(self, spec: JobSpec) -> SpecProblem | None:
        return _cluster_obstacle(cast(RayOptions, spec.platform))

    def missing_credentials(self, spec: JobSpec, problems: Sequence[SpecProblem]) -> Sequence[SpecProblem]:
        obstacle = self.unsafe(spec) or self.obstacle(spec)
        return [obstacle] if obstacle else []


def _unnamed_cluster(options: RayOptions) -> SpecProblem | None:
    """Return why a job may not use the Ray cluster at its spec's address; None if the operator has named it.

    A driver and its cluster run each other's code, and the driver sends the cluster this installation's
    token. So an address that only a user chose is refused.
    """
    if not options.address:
        return None
    if options.address.lower() in settings.STARLING_RAY_CLUSTERS:
        return None
    path = "platform.address"
    return SpecProblem(
        path,
        f"Address ({path}): {options.address} is no cluster of this installation. Its operator names it in"
        " STARLING_RAY_CLUSTERS first. Without an address the job starts a cluster of this machine's own.",
    )


def _cluster_obstacle(options: RayOptions) -> SpecProblem | None:
    """Return why no job can run on this Ray cluster, as far as this machine knows."""
    try:
        ray_driver.require()
    except NoRay as error:
        return SpecProblem("platform.kind", f"Platform (platform.kind): {error}")
    if words := missing_price(options, 0):
        path = "platform.machine"
        return SpecProblem(path, f"Kind of machine ({path}): {words}")
    return None
