"""What each SKU of our price lines is called on a bill: whose service it is, and in FOCUS' own words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from cloud.numbers import machines

AWS, MICROSOFT, LOCAL = "AWS", "Microsoft", "Local"


@dataclass(frozen=True)
class Service:
    """`category` and `subcategory` are values that FOCUS 1.2 allows; `pricing_unit` follows its format for units."""

    name: str
    provider: str
    category: str = "Compute"
    subcategory: str = "Other (Compute)"
    resource_type: str = ""


LAMBDA = Service("AWS Lambda", AWS, "Compute", "Serverless Compute", "Function")
S3 = Service("Amazon S3", AWS, "Storage", "Object Storage", "Bucket")
EC2 = Service("Amazon EC2", AWS, "Compute", "Virtual Machines", "Virtual machine")
ACI = Service("Azure Container Instances", MICROSOFT, "Compute", "Containers", "Container group")
AZURE_VM = Service("Azure Virtual Machines", MICROSOFT, "Compute", "Virtual Machines", "Virtual machine")
HERE = Service("This machine", LOCAL, "Compute", "Virtual Machines", "Virtual machine")

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


def mainly(cloud_provider: str) -> Service:
    """What a provider sells us most of: where the SKU of a call is unknown, its bill has it under this."""
    return {AWS: LAMBDA, MICROSOFT: ACI}.get(cloud_provider, HERE)


@cache
def service_of(sku: str, provider: str) -> Service:
    """The service that sells `sku`; where a line names none, one of the job's own `provider`."""
    for beginning, service in _BY_BEGINNING:
        if sku.startswith(beginning):
            return service
    machine = machines.load().get(sku.removesuffix(".spot"))
    if machine is not None:
        return EC2 if machine.cloud == "aws" else AZURE_VM
    if not sku:
        return Service("Booked in full", provider)
    if sku == "paper.vm_overhead":
        return Service("Address and disk", provider, "Storage", "Other (Storage)")
    return Service(_BY_PROVIDER.get(provider, provider), provider)


def service_named(name: str, provider: str) -> Service:
    """The service that a bill calls so, as we name it; one that we sell nothing of is only a name."""
    known = (LAMBDA, S3, EC2, ACI, AZURE_VM, HERE)
    return next((one for one in known if one.name == name), Service(name, provider))


def billed_service(sku: str, provider: str) -> Service:
    """The service on whose bill a line of ours is: what nobody could meter is on that of what is mainly bought."""
    return service_of(sku, provider) if sku else mainly(provider)


def focus_unit(unit: str) -> str:
    """Our unit as FOCUS writes units: capitalised, plural, with a dash between."""
    return _UNITS.get(unit, unit)
