"""Lists what bills in an AWS account without being used: provisioned instances of our functions.

Functions, their versions and logs cost nothing while they are not called. Their removal belongs to the set-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cloud.accounts.connections import AwsClients
from cloud.accounts.register import TAG_DEPLOYMENT, TAG_RUN, FoundResource, expiry_in
from cloud.platforms.aws import provisioned
from cloud.platforms.aws.error_text import code_of
from cloud.platforms.aws.functions import TAG, function_name
from cloud.platforms.aws.provisioned import NOT_PROVISIONED, ready_name

_APP = "starling"
_READ_TIMEOUT_S = 8.0


class AwsFinder:
    """Implements `cloud.accounts.register.Finder`. `memory_mb`: sizes whose functions are listed even without tags."""

    def __init__(self, clients: AwsClients, memory_mb: Sequence[int] = ()) -> None:
        self._functions = clients.client("lambda", read_timeout_s=_READ_TIMEOUT_S, tries=2)
        self._tagging = clients.client("resourcegroupstaggingapi", read_timeout_s=_READ_TIMEOUT_S, tries=2)
        self._prefix = clients.connection.prefix
        self._memory_mb = tuple(memory_mb)

    def found(self) -> list[FoundResource]:
        return [resource for name in sorted(self._names()) for resource in self._ready_of(name)]

    def end(self, resource: FoundResource) -> None:
        function, _, version = resource.name.rpartition(":")
        provisioned.delete(self._functions, {"FunctionName": function, "Qualifier": version})

    def _names(self) -> set[str]:
        """Return our functions under the prefix: tagged ones, and those of the known sizes."""
        pages = self._tagging.get_paginator("get_resources")
        wanted = [{"Key": TAG, "Values": [_APP]}]
        arns = [
            str(mapping["ResourceARN"])
            for page in pages.paginate(TagFilters=wanted, ResourceTypeFilters=["lambda:function"])
            for mapping in page["ResourceTagMappingList"]
        ]
        named = {arn.split(":function:")[1] for arn in arns if ":function:" in arn}
        known = {function_name(self._prefix, size) for size in self._memory_mb}
        return {name for name in named if name.startswith(f"{self._prefix}-")} | known

    def _ready_of(self, name: str) -> list[FoundResource]:
        try:
            pages = self._functions.get_paginator("list_provisioned_concurrency_configs")
            configs = [
                config
                for page in pages.paginate(FunctionName=name)
                for config in page["ProvisionedConcurrencyConfigs"]
            ]
            if not configs:
                return []
            arn = str(configs[0]["FunctionArn"]).rpartition(":")[0]
            tags = dict(self._functions.list_tags(Resource=arn)["Tags"])
        except Exception as error:
            if code_of(error) in NOT_PROVISIONED:
                return []
            raise
        return [_found(name, config, tags) for config in configs]


def _found(name: str, config: dict[str, Any], tags: dict[str, str]) -> FoundResource:
    arn = str(config["FunctionArn"])
    return FoundResource(
        name=ready_name(name, arn.rpartition(":")[2]),
        kind="provisioned",
        provider_id=arn,
        deployment=tags.get(TAG_DEPLOYMENT, ""),
        run=tags.get(TAG_RUN, ""),
        expires_unix_s=expiry_in(tags),
        created_unix_s=_moment(str(config.get("LastModified", ""))),
        facts={
            "resource": "provisioned",
            "instances": int(config["RequestedProvisionedConcurrentExecutions"]),
        },
    )


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None
