"""The kinds of platform by their names in specs, and what is known of each without its options."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal

Cloud = Literal["aws", "azure"]
"""The clouds that an account is connected in."""


class PlatformKind(StrEnum):
    """`kind` of the options in `cloud/platforms/options.py`; stored in specs, so values stay as they are."""

    LOCAL = "local"
    SIMULATED = "simulated"
    AWS_LAMBDA = "aws_lambda"
    AZURE_CONTAINER = "azure_container"
    HOSTS = "hosts"
    RAY = "ray"


COMPUTE_HERE = (PlatformKind.LOCAL, PlatformKind.SIMULATED)
"""Their actors run on this machine and need no account. A simulated cloud's calls really run here, in virtual time;
jobs on other platforms only learn here, and what they rent elsewhere is paid while they wait."""
RENT_ENDS_WITH_RUN = (PlatformKind.LOCAL, PlatformKind.HOSTS, PlatformKind.RAY)
"""Their rents are for machines that stay, while a run of the job uses them. Containers and functions kept ready outlive
their run, and a simulated cloud's time is not that of a clock."""
CLOUD_OF: Mapping[PlatformKind, Cloud] = {
    PlatformKind.AWS_LAMBDA: "aws",
    PlatformKind.AZURE_CONTAINER: "azure",
}
"""The cloud of a platform that needs a connected account."""
