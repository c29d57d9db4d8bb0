"""Container groups: their requests, their containers, and the time they are billed for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from emulator.azure.containers import EmulatedContainer
from emulator.azure.meter import GroupMeter, GroupSpan
from emulator.faults import AzureFaults
from emulator.image import Image


@dataclass(frozen=True)
class ContainerRequest:
    """One container of a PUT. `shown` is what answers show of it."""

    name: str
    image: str
    command: tuple[str, ...]
    cores: float
    memory_gb: float
    variables: Mapping[str, str]
    shown: Mapping[str, Any]


@dataclass
class EmulatedGroup:
    """`path` is its id; `state` is Pending, Running, Stopped, Succeeded or Failed."""

    name: str
    path: str
    location: str
    requests: tuple[ContainerRequest, ...]
    restart_policy: str
    priority: str
    tags: dict[str, str]
    made_s: float = field(default_factory=time.monotonic)
    provisioning: str = "Pending"
    state: str = "Pending"
    containers: list[EmulatedContainer] = field(default_factory=list)
    span: GroupSpan | None = None
    deleting: bool = False

    @property
    def cores(self) -> float:
        return sum(request.cores for request in self.requests)

    @property
    def memory_gb(self) -> float:
        return sum(request.memory_gb for request in self.requests)

    def document(self, *, whole: bool) -> dict[str, Any]:
        """Return what the resource manager shows; `whole`: with its state, as only a GET of the group shows it."""
        views = {container.name: container.view() for container in self.containers}
        shown = [
            {**request.shown, "instanceView": views.get(request.name)} if whole else dict(request.shown)
            for request in self.requests
        ]
        properties: dict[str, Any] = {
            "provisioningState": self.provisioning,
            "osType": "Linux",
            "sku": "Standard",
            "priority": self.priority,
            "restartPolicy": self.restart_policy,
            "containers": [
                {"name": one.name, "properties": part} for one, part in zip(self.requests, shown, strict=True)
            ],
        }
        if whole:
            properties["instanceView"] = {"state": self.state, "events": []}
        return {
            "id": self.path,
            "name": self.name,
            "type": "Microsoft.ContainerInstance/containerGroups",
            "location": self.location,
            "tags": self.tags,
            "properties": properties,
        }


@dataclass(frozen=True)
class GroupOperation:
    """The progress of a create, which clients read by its id."""

    id: str
    group: EmulatedGroup
    status: str = "Running"
    code: str = ""
    words: str = ""


class Groups:
    """All groups of a subscription. Everything happens in the emulator's event loop.

    `start_s` is how long the pull of an image takes. Groups whose name matches `stubs` have no processes, but are
    billed.
    """

    def __init__(self, meter: GroupMeter, faults: AzureFaults, image: Image) -> None:
        self.start_s = 0.05
        self.stubs = ""
        self.operations: dict[str, GroupOperation] = {}
        self._meter = meter
        self._faults = faults
        self._image = image
        self._groups: dict[str, EmulatedGroup] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._later: set[asyncio.Task[None]] = set()

    def all(self) -> list[EmulatedGroup]:
        """Return those that exist, whether listings show them yet or not."""
        return list(self._groups.values())

    def of(self, path: str) -> EmulatedGroup | None:
        return self._groups.get(path.lower())

    def visible(self, path: str) -> EmulatedGroup | None:
        group = self.of(path)
        return group if group is not None and self.is_visible(group) else None

    def is_visible(self, group: EmulatedGroup) -> bool:
        return time.monotonic() - group.made_s >= self._faults.visibility_delay_s

    def create(self, group: EmulatedGroup, operation_id: str) -> None:
        """Begin to create it; from now on it is billed."""
        self._groups[group.path.lower()] = group
        self.operations[operation_id] = GroupOperation(operation_id, group)
        self._begin(group, operation_id)

    def delete(self, group: EmulatedGroup) -> None:
        """Delete it at once or, as a zombie, after a while."""
        if group.deleting:
            return
        if self._faults.strikes("zombie_delete"):
            group.deleting = True
            task = asyncio.get_running_loop().create_task(self._delete_later(group))
            self._later.add(task)
            task.add_done_callback(self._later.discard)
        else:
            self._remove(group)

    def pids(self) -> list[int]:
        return [one.pid for group in self._groups.values() for one in group.containers if one.pid is not None]

    def close(self) -> None:
        for task in self._later:
            task.cancel()
        for group in self.all():
            self._remove(group)

    def _begin(self, group: EmulatedGroup, operation_id: str) -> None:
        cores, memory_mb = round(group.cores), round(group.memory_gb * 1024)
        group.span = GroupSpan(group.name, cores, memory_mb, time.monotonic(), tags=dict(group.tags))
        self._meter.spans.append(group.span)
        group.state, group.provisioning = "Pending", "Pending"
        self._tasks[group.path] = asyncio.get_running_loop().create_task(self._run(group, operation_id))

    async def _run(self, group: EmulatedGroup, operation_id: str) -> None:
        """From the image's pull to the last container's end."""
        slow_s = self._faults.slow_start_s if self._faults.strikes("slow_start") else 0.0
        await asyncio.sleep(self.start_s + slow_s)
        if self._faults.strikes("failed_start"):
            words = "The requested resource is not available in the location at this moment."
            self._set_status(operation_id, "Failed", "ServiceUnavailable", words)
            group.provisioning = "Failed"
            self._end(group, "Failed")
            return
        stub = bool(self.stubs) and fnmatchcase(group.name, self.stubs)
        for container in group.containers:
            container.remove()
        group.containers = [
            EmulatedContainer(one.name, one.command, one.variables, self._image) for one in group.requests
        ]
        for container in group.containers:
            container.start(stub=stub)
        group.provisioning, group.state = "Succeeded", "Running"
        self._set_status(operation_id, "Succeeded")
        if self._faults.strikes("crash"):
            await asyncio.sleep(self._faults.crash_after_s)
            group.containers[0].kill()
        await asyncio.gather(*(self._wait_for_end(group, each) for each in group.containers))
        failed = any(each.exit_code for each in group.containers)
        self._end(group, "Failed" if failed else "Succeeded")

    async def _wait_for_end(self, group: EmulatedGroup, container: EmulatedContainer) -> None:
        """Restart it by the group's policy, and return once it has ended for good."""
        while True:
            await container.exited.wait()
            again = group.restart_policy == "Always" or (
                group.restart_policy == "OnFailure" and container.exit_code
            )
            if not again or group.state != "Running":
                return
            container.start()

    def _set_status(self, operation_id: str, status: str, code: str = "", words: str = "") -> None:
        if operation_id:
            before = self.operations[operation_id]
            self.operations[operation_id] = GroupOperation(operation_id, before.group, status, code, words)

    def _end(self, group: EmulatedGroup, state: str) -> None:
        group.state = state
        for container in group.containers:
            container.kill()
        if group.span is not None and group.span.to_s is None:
            group.span.to_s = time.monotonic()

    async def _delete_later(self, group: EmulatedGroup) -> None:
        await asyncio.sleep(self._faults.zombie_s)
        self._remove(group)

    def _remove(self, group: EmulatedGroup) -> None:
        self._end_task(group)
        self._end(group, "Stopped")
        for container in group.containers:
            container.remove()
        if self._groups.get(group.path.lower()) is group:
            del self._groups[group.path.lower()]

    def _end_task(self, group: EmulatedGroup) -> None:
        task = self._tasks.pop(group.path, None)
        if task is not None:
            task.cancel()
