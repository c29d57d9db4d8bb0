"""What a launch requires on each platform: one row a platform. A platform that requires nothing needs no row."""

from __future__ import annotations

from collections.abc import Mapping

from webapp.jobs.launch.aws_functions import FunctionRequirements
from webapp.jobs.launch.azure_containers import ContainerRequirements
from webapp.jobs.launch.own_machines import ClusterRequirements, HostsRequirements
from webapp.jobs.launch.requirements import Requirements
from webapp.jobs.launch.simulated_cloud import SimulatedRequirements
from webapp.jobs.spec import AnyPlatformOptions

_REQUIREMENTS: Mapping[str, Requirements] = {
    "simulated": SimulatedRequirements(),
    "aws_lambda": FunctionRequirements(),
    "azure_container": ContainerRequirements(),
    "hosts": HostsRequirements(),
    "ray": ClusterRequirements(),
}
_NOTHING = Requirements()


def requirements_of(options: AnyPlatformOptions) -> Requirements:
    return _REQUIREMENTS.get(options.kind, _NOTHING)
