"""Every platform that a job can name, as one type: its options say where it runs and what that costs."""

from __future__ import annotations

from cloud.aws_lambda import LambdaOptions
from cloud.azure_container import AzureContainerOptions
from cloud.hosts import HostsOptions
from cloud.local import LocalOptions
from cloud.ray_cluster import RayOptions
from cloud.simulated_options import SimulatedOptions

PlatformOptions = (
    LocalOptions | SimulatedOptions | LambdaOptions | AzureContainerOptions | HostsOptions | RayOptions
)
