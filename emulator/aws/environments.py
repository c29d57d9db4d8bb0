"""Execution environments of all functions: idle and warm ones, provisioned ones, and those that must end."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass

from emulator.aws.functions import EmulatedFunctions, Function, FunctionVersion, Provisioned
from emulator.aws.meter import LambdaMeter, ProvisionedSpan
from emulator.aws.sandbox import Sandbox
from emulator.image import Image


@dataclass(frozen=True)
class SandboxSetting:
    """`whole_core_mb`: a function with less memory has less of a core, so its reported and billed time is longer.

    The process itself is not slowed down. None: all memory sizes are equally fast.
    """

    whole_core_mb: int | None = 1769
    keep_warm_s: float = 300.0

    def stretch(self, memory_mb: int) -> float:
        return 1.0 if self.whole_core_mb is None else max(1.0, self.whole_core_mb / memory_mb)


class Environments:
    """Processes by version. Everything happens in the emulator's event loop."""

    def __init__(
        self,
        functions: EmulatedFunctions,
        meter: LambdaMeter,
        region: str,
        image: Image,
        setting: SandboxSetting,
    ) -> None:
        self.setting = setting
        self._functions = functions
        self._meter = meter
        self._region = region
        self._image = image
        self._idle: dict[tuple[str, str, str], list[Sandbox]] = defaultdict(list)
        self._sandboxes: set[Sandbox] = set()
        self._spans: dict[tuple[str, str], ProvisionedSpan] = {}
        self._background: set[asyncio.Task[None]] = set()

    def warm(self, version: FunctionVersion) -> Sandbox | None:
        """Return an idle one of this version and mark it busy, provisioned ones first; None if there is none."""
        idle = self._idle[version.key]
        while idle:
            ready = next((sandbox for sandbox in idle if sandbox.provisioned), idle[-1])
            idle.remove(ready)
            if ready.alive:
                ready.busy = True
                return ready
            self.end(ready)
        return None

    def new(self, version: FunctionVersion, *, provisioned: bool = False) -> Sandbox:
        """Return a new one, not started yet and busy until `keep` is called."""
        sandbox = Sandbox(version, self._region, self._image, provisioned=provisioned)
        sandbox.busy = True
        self._sandboxes.add(sandbox)
        return sandbox

    def keep(self, sandbox: Sandbox) -> None:
        """Keep it warm after its event, or end it if it is broken or its code is no longer the function's."""
        sandbox.busy = False
        version = sandbox.version
        function = next((one for one in self._functions.alive() if one.name == version.function), None)
        wanted = function is not None and version.key in _keys(function)
        if sandbox.provisioned and (function is None or version.number not in function.provisioned):
            wanted = False
        if sandbox.alive and wanted and not sandbox.spoilt:
            self._idle[version.key].append(sandbox)
        else:
            self.end(sandbox)

    def end(self, sandbox: Sandbox) -> None:
        sandbox.kill()
        sandbox.close_output()
        self._sandboxes.discard(sandbox)

    def retire(self, function: Function) -> None:
        """End idle environments of older code now; busy ones end after their event."""
        for key in [key for key in self._idle if key[0] == function.name]:
            if not function.alive or key not in _keys(function):
                for sandbox in self._idle.pop(key):
                    self.end(sandbox)

    def provision(self, function: Function, number: str, provisioned: Provisioned | None) -> None:
        """Keep so many instances of a version ready from now on; None: none."""
        span = self._spans.pop((function.name, number), None)
        if span is not None:
            span.to_s = time.monotonic()
        if provisioned is None:
            function.provisioned.pop(number, None)
            for key, idle in self._idle.items():
                if key[:2] == (function.name, number):
                    for sandbox in [one for one in idle if one.provisioned]:
                        idle.remove(sandbox)
                        self.end(sandbox)
            return
        version = function.versions[number]
        span = ProvisionedSpan(function.name, version.memory_mb, provisioned.wanted, time.monotonic())
        self._spans[function.name, number] = span
        self._meter.provisioned.append(span)
        task = asyncio.get_running_loop().create_task(self._make_ready(function, version, provisioned))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def busy_pids(self) -> list[int]:
        return [sandbox.pid for sandbox in self._sandboxes if sandbox.busy and sandbox.pid is not None]

    def pids(self) -> list[int]:
        return [sandbox.pid for sandbox in self._sandboxes if sandbox.pid is not None]

    def end_idle(self) -> None:
        """End environments that have been idle for long."""
        oldest_s = time.monotonic() - self.setting.keep_warm_s
        for idle in self._idle.values():
            for sandbox in [one for one in idle if one.idle_since_s < oldest_s and not one.provisioned]:
                idle.remove(sandbox)
                self.end(sandbox)

    def close(self) -> None:
        for task in self._background:
            task.cancel()
        for sandbox in list(self._sandboxes):
            self.end(sandbox)
        self._idle.clear()

    async def _make_ready(
        self, function: Function, version: FunctionVersion, provisioned: Provisioned
    ) -> None:
        """Start instances one after the other, while they are still wanted."""
        while (
            provisioned.ready < provisioned.wanted and function.provisioned.get(version.number) is provisioned
        ):
            sandbox = self.new(version, provisioned=True)
            failed = await sandbox.start()
            if failed is not None:
                provisioned.failed = failed.body.decode(errors="replace")
                self.end(sandbox)
                return
            provisioned.ready += 1
            self.keep(sandbox)


def _keys(function: Function) -> set[tuple[str, str, str]]:
    """Return the versions whose environments may be used."""
    return {function.latest.key, *(version.key for version in function.versions.values())}
