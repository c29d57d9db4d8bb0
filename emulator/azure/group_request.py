"""Reads a PUT of a container group and checks it as Azure does before it begins."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from emulator.azure.errors import ArmError
from emulator.azure.groups import ContainerRequest, EmulatedGroup

_NAME = re.compile(r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
_CONTAINERS_AT_MOST = 60
_CORES_AT_MOST = 4.0
_MEMORY_GB_AT_MOST = 16.0
_TAGS_AT_MOST = 50
_POLICIES = ("Always", "OnFailure", "Never")


def group_of(name: str, path: str, body: bytes) -> EmulatedGroup:
    """Return the requested group. Raises ArmError, which says what is wrong with it."""
    if not _NAME.match(name):
        raise _invalid("InvalidContainerGroupName", f"The container group name '{name}' is invalid.")
    document: Mapping[str, Any] = json.loads(body)
    properties = document["properties"]
    if properties.get("osType") != "Linux":
        raise _invalid("InvalidOsType", "Only Linux containers are emulated.")
    policy = properties.get("restartPolicy", "Always")
    if policy not in _POLICIES:
        raise _invalid("InvalidRestartPolicy", f"The restart policy '{policy}' is invalid.")
    containers = tuple(_container(container) for container in properties["containers"])
    tags = {str(key): str(value) for key, value in (document.get("tags") or {}).items()}
    if len(tags) > _TAGS_AT_MOST or any(len(key) > 512 or len(value) > 256 for key, value in tags.items()):
        raise _invalid("InvalidTags", "There are too many tags, or they are too long.")
    priority = properties.get("priority", "Regular")
    group = EmulatedGroup(name, path, document["location"], containers, policy, priority, tags)
    _require_size(group)
    return group


def _container(document: Mapping[str, Any]) -> ContainerRequest:
    name, properties = document["name"], document["properties"]
    if not _NAME.match(name):
        raise _invalid("InvalidContainerName", f"The container name '{name}' is invalid.")
    resources = properties["resources"]["requests"]
    given = properties.get("environmentVariables") or []
    variables = {one["name"]: one.get("secureValue") or one.get("value") or "" for one in given}
    # A secure value is never shown again.
    shown_variables = [{key: value for key, value in one.items() if key != "secureValue"} for one in given]
    command = tuple(properties.get("command") or ("python", "-m", "awslambdaric"))
    return ContainerRequest(
        name,
        properties["image"],
        command,
        float(resources["cpu"]),
        float(resources["memoryInGB"]),
        variables,
        {**properties, "command": list(command), "environmentVariables": shown_variables},
    )


def _require_size(group: EmulatedGroup) -> None:
    count, names = len(group.requests), {request.name for request in group.requests}
    if not 0 < count <= _CONTAINERS_AT_MOST or len(names) < count:
        raise _invalid("InvalidContainers", "A group has 1 to 60 containers, each with a name of its own.")
    if group.cores > _CORES_AT_MOST or group.memory_gb > _MEMORY_GB_AT_MOST:
        words = f"The requested resources exceed {_CORES_AT_MOST} CPU or {_MEMORY_GB_AT_MOST} GB."
        raise _invalid("ResourceRequestsExceeded", words)


def _invalid(code: str, words: str) -> ArmError:
    return ArmError(400, code, words)
