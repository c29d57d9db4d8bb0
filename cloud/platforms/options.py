"""Every platform that a job can name, as one type: its options say where it runs and what that costs."""

from __future__ import annotations

from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.ray_cluster import RayOptions
from cloud.platforms.simulated_options import SimulatedOptions

PlatformOptions = (
    LocalOptions | SimulatedOptions | LambdaOptions | AzureContainerOptions | HostsOptions | RayOptions
)
