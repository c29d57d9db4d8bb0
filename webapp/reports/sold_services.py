"""The service that sells each SKU of our price lines: its provider, and its name on bills and in FOCUS."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cloud.timing.numbers import machines

AWS, MICROSOFT, LOCAL = "AWS", "Microsoft", "Local"


@dataclass(frozen=True)
class SoldService:
    """`category` and `subcategory` are values that FOCUS 1.2 allows; `pricing_unit` follows its format for units."""

    name: str
    provider: str
    category: str = "Compute"
    subcategory: str = "Other (Compute)"


LAMBDA = SoldService("AWS Lambda", AWS, "Compute", "Serverless Compute")
S3 = SoldService("Amazon S3", AWS, "Storage", "Object Storage")
EC2 = SoldService("Amazon EC2", AWS, "Compute", "Virtual Machines")
ACI = SoldService("Azure Container Instances", MICROSOFT, "Compute", "Containers")
AZURE_VM = SoldService("Azure Virtual Machines", MICROSOFT, "Compute", "Virtual Machines")
HERE = SoldService("This machine", LOCAL, "Compute", "Virtual Machines")

_BY_BEGINNING = (("lambda.", LAMBDA), ("s3.", S3), ("aci.", ACI), ("local.", HERE), ("ray.", HERE))
_BY_PROVIDER = {AWS: "Other AWS services", MICROSOFT: "Other Azure services", LOCAL: "This machine"}
_UNITS = {
    "GB-s": "GB-Seconds",
    "GB-h": "GB-Hours",
    "vCPU-h": "vCPU-Hours",
    "GPU-h": "GPU-Hours",
    "actor-h": "Hours",
    "actor-s": "Seconds",
    "request": "Requests",
    "h": "Hours",
    "s": "Seconds",
    "month": "Months",
}


def mainly(cloud_provider: str) -> SoldService:
    """The provider's main service. Its bill lists calls whose SKU is unknown here."""
    return {AWS: LAMBDA, MICROSOFT: ACI}.get(cloud_provider, HERE)


@cache
def service_of(sku: str, provider: str) -> SoldService:
    """The service that sells `sku`; for a line without a SKU, a placeholder of the job's `provider`."""
    for beginning, service in _BY_BEGINNING:
        if sku.startswith(beginning):
            return service
    machine = machines.load().get(sku.removesuffix(".spot"))
    if machine is not None:
        return EC2 if machine.cloud == "aws" else AZURE_VM
    if not sku:
        return SoldService("Booked in full", provider)
    if sku == "paper.vm_overhead":
        return SoldService("Address and disk", provider, "Storage", "Other (Storage)")
    return SoldService(_BY_PROVIDER.get(provider, provider), provider)


def service_named(name: str, provider: str) -> SoldService:
    """The service of this name; one that Starling does not use has only a name."""
    known = (LAMBDA, S3, EC2, ACI, AZURE_VM, HERE)
    return next((service for service in known if service.name == name), SoldService(name, provider))


def billed_service(sku: str, provider: str) -> SoldService:
    """The service whose bill covers a line of ours; for a line that could not be metered, the provider's main one."""
    return service_of(sku, provider) if sku else mainly(provider)


def focus_unit(unit: str) -> str:
    """The unit in the style of FOCUS: capitalised, plural, with a dash."""
    return _UNITS.get(unit, unit)
