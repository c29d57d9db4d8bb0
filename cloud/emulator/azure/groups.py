"""Container groups: what was asked for, which containers run for it, and from when to when it is billed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from cloud.emulator.azure.containers import Container
from cloud.emulator.azure.faults import Faults
from cloud.emulator.azure.meter import GroupSpan, Meter


@dataclass(frozen=True)
class Asked:
    """One container as it was asked for, with everything the answer leaves out."""

    name: str
    image: str
    command: tuple[str, ...]
    cores: float
    memory_gb: float
    variables: Mapping[str, str]
    shown: Mapping[str, Any]


@dataclass
class Group:
    """`path` is its id; `state` is Pending, Running, Stopped, Succeeded or Failed; `gone`: nothing of it is left."""

    name: str
    path: str
    location: str
    asked: tuple[Asked, ...]
    restart_policy: str
    priority: str
    tags: dict[str, str]
    made_s: float = field(default_factory=time.monotonic)
    provisioning: str = "Pending"
    state: str = "Pending"
    containers: list[Container] = field(default_factory=list)
    span: GroupSpan | None = None
    deleting: bool = False
    gone: bool = False

    @property
    def cores(self) -> float:
        return sum(one.cores for one in self.asked)

    @property
    def memory_gb(self) -> float:
        return sum(one.memory_gb for one in self.asked)

    def document(self, *, whole: bool) -> dict[str, Any]:
        """As the resource manager shows it; only a GET of the group itself tells how it is."""
        views = {one.name: one.view() for one in self.containers}
        shown = [
            {**one.shown, "instanceView": views.get(one.name)} if whole else dict(one.shown)
            for one in self.asked
        ]
        properties: dict[str, Any] = {
            "provisioningState": self.provisioning,
            "osType": "Linux",
            "sku": "Standard",
            "priority": self.priority,
            "restartPolicy": self.restart_policy,
            "containers": [
                {"name": one.name, "properties": part} for one, part in zip(self.asked, shown, strict=True)
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
class Operation:
    """How far a create is, for whoever asks by its id."""

    id: str
    group: Group
    status: str = "Running"
    code: str = ""
    words: str = ""


class Groups:
    """All groups of a subscription. Everything in the emulator's event loop.

    `start_s` is what the pull of an image takes. Groups whose name fits `parked` have no processes: they stand, and
    are billed.
    """

    def __init__(self, meter: Meter, faults: Faults) -> None:
        self.start_s = 0.05
        self.parked = ""
        self.operations: dict[str, Operation] = {}
        self._meter = meter
        self._faults = faults
        self._groups: dict[str, Group] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._later: set[asyncio.Task[None]] = set()

    def all(self) -> list[Group]:
        """Those that are there, whether they show yet or not."""
        return list(self._groups.values())

    def of(self, path: str) -> Group | None:
        return self._groups.get(path.lower())

    def visible(self, path: str) -> Group | None:
        group = self.of(path)
        return group if group is not None and self.shows(group) else None

    def shows(self, group: Group) -> bool:
        return time.monotonic() - group.made_s >= self._faults.visibility_delay_s

    def create(self, group: Group, operation_id: str) -> None:
        """Take it on; from now on it is billed."""
        self._groups[group.path.lower()] = group
        self.operations[operation_id] = Operation(operation_id, group)
        self._begin(group, operation_id)

    def start(self, group: Group) -> None:
        if group.state not in ("Pending", "Running"):
            self._begin(group, "")

    async def stop(self, group: Group, state: str = "Stopped") -> None:
        """End its containers; it stays, and costs nothing any more."""
        self._end_task(group)
        self._over(group, state)

    def delete(self, group: Group) -> None:
        """Away with it, at once or, as a zombie, after a while."""
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

    def _begin(self, group: Group, operation_id: str) -> None:
        cores, memory_mb = round(group.cores), round(group.memory_gb * 1024)
        group.span = GroupSpan(group.name, cores, memory_mb, time.monotonic(), tags=dict(group.tags))
        self._meter.spans.append(group.span)
        group.state, group.provisioning = "Pending", "Pending"
        self._tasks[group.path] = asyncio.get_running_loop().create_task(self._run(group, operation_id))

    async def _run(self, group: Group, operation_id: str) -> None:
        """From the image's pull to the last container's end."""
        slow_s = self._faults.slow_start_s if self._faults.strikes("slow_start") else 0.0
        await asyncio.sleep(self.start_s + slow_s)
        if self._faults.strikes("failed_start"):
            words = "The requested resource is not available in the location at this moment."
            self._tell(operation_id, "Failed", "ServiceUnavailable", words)
            group.provisioning = "Failed"
            self._over(group, "Failed")
            return
        parked = bool(self.parked) and fnmatchcase(group.name, self.parked)
        for container in group.containers:
            container.forget()
        group.containers = [Container(one.name, one.command, one.variables) for one in group.asked]
        for container in group.containers:
            container.start(parked=parked)
        group.provisioning, group.state = "Succeeded", "Running"
        self._tell(operation_id, "Succeeded")
        if self._faults.strikes("crash"):
            await asyncio.sleep(self._faults.crash_after_s)
            group.containers[0].kill()
        await asyncio.gather(*(self._lived(group, one) for one in group.containers))
        failed = any(one.exit_code for one in group.containers)
        self._over(group, "Failed" if failed else "Succeeded")

    async def _lived(self, group: Group, container: Container) -> None:
        """Until it has ended for good, by the group's policy."""
        while True:
            await container.exited.wait()
            again = group.restart_policy == "Always" or (
                group.restart_policy == "OnFailure" and container.exit_code
            )
            if not again or group.state != "Running":
                return
            container.start()

    def _tell(self, operation_id: str, status: str, code: str = "", words: str = "") -> None:
        if operation_id:
            before = self.operations[operation_id]
            self.operations[operation_id] = Operation(operation_id, before.group, status, code, words)

    def _over(self, group: Group, state: str) -> None:
        group.state = state
        for container in group.containers:
            container.kill()
        if group.span is not None and group.span.to_s is None:
            group.span.to_s = time.monotonic()

    async def _delete_later(self, group: Group) -> None:
        await asyncio.sleep(self._faults.zombie_s)
        self._remove(group)

    def _remove(self, group: Group) -> None:
        self._end_task(group)
        self._over(group, "Stopped")
        for container in group.containers:
            container.forget()
        group.gone = True
        if self._groups.get(group.path.lower()) is group:
            del self._groups[group.path.lower()]

    def _end_task(self, group: Group) -> None:
        task = self._tasks.pop(group.path, None)
        if task is not None:
            task.cancel()
