"""What in an account a job's lines were paid for, by the name that the account knows it by."""

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
    """Those of one job. Simulated clouds have none, and of a machine of one's own nobody keeps a name."""

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
        """Of a line of this SKU; `rent`: what it rented, as `rented` has it, empty for a call."""
        if rent:
            return self._rented.get(rent)
        return self._function if sku.startswith("lambda.") else None


def rented(epoch: int, resource: str) -> str:
    """What a run rented: runs of one job number their things alike."""
    return f"{epoch} {resource}"
