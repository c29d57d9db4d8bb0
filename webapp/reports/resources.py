"""The resources in an account that a job's lines paid for, by their names in the account."""

from __future__ import annotations

from typing import NamedTuple

from cloud.aws.functions import function_name
from cloud.provision.permissions import DEFAULT_PREFIX
from webapp.reports.job_facts import JobFacts
from webapp.resources.models import Holding, HoldingKind


class Resource(NamedTuple):
    id: str
    name: str
    type: str


class Resources:
    """The resources of one job. Simulated clouds and users' own machines have none."""

    def __init__(self, facts: JobFacts, account: str) -> None:
        self._function: Resource | None = None
        self._rented: dict[str, Resource] = {}
        if not facts.connection:
            return
        if facts.function_memory_mb:
            name = function_name(DEFAULT_PREFIX, facts.function_memory_mb)
            arn = f"arn:aws:lambda:{facts.region}:{account}:function:{name}"
            self._function = Resource(arn, name, "Function")
        held = Holding.objects.filter(job_id=facts.id).exclude(provider_id="")
        for epoch, which, one, name, kind in held.values_list(
            "epoch", "facts__resource", "provider_id", "name", "kind"
        ):
            self._rented[rented(epoch, which)] = Resource(one, name, HoldingKind(kind).label)

    def of(self, sku: str, rent: str) -> Resource | None:
        """The resource of a line of this SKU. `rent`: the key from `rented`, empty for a call."""
        if rent:
            return self._rented.get(rent)
        return self._function if sku.startswith("lambda.") else None


def rented(epoch: int, resource: str) -> str:
    """The key of a rented resource. It holds the epoch, as each run of a job numbers its resources from one."""
    return f"{epoch} {resource}"
