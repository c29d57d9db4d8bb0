"""Every platform that a job can name: its options as one type, and a table by the kinds that specs store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.model import Cloud, PlatformModel
from cloud.platforms.ray_cluster import RayOptions
from cloud.platforms.simulated_options import SimulatedOptions

PlatformOptions = (
    LocalOptions | SimulatedOptions | LambdaOptions | AzureContainerOptions | HostsOptions | RayOptions
)
PLATFORMS: Mapping[str, type[PlatformModel]] = {
    options.model_fields["kind"].default: options for options in get_args(PlatformOptions)
}
COMPUTE_HERE = tuple(kind for kind, options in PLATFORMS.items() if options.computes_here)
CLOUD_OF: Mapping[str, Cloud] = {
    kind: options.cloud for kind, options in PLATFORMS.items() if options.cloud is not None
}
"""The cloud of a platform that needs a connected account."""
