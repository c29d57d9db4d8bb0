"""How much memory there is here, and how a process is kept below a limit.

The limit is one of what a process may write (RLIMIT_DATA). The kernel refuses an allocation beyond it, which Python
raises as MemoryError where it happens, so nothing is over the limit for even a moment, as it would be where a thread
looks at times. Mapped files do not count; torch's and the interpreter's code is of that sort. The whole address space
(RLIMIT_AS) would count what is only reserved, and a cgroup can rarely be written. Other systems than Linux have none of
this: there a limit is not kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

MEGABYTE = 2**20
_SLACK_BYTES = 96 * MEGABYTE
"""Stacks of threads are reserved and hardly written."""
_CGROUPS = Path("/sys/fs/cgroup")
_allowed_bytes = 0


def machine_bytes() -> int:
    """Return the memory that processes here may have together: the machine's, or less where a container has less."""
    return min(_of_machine(), *_of_containers())


def limit_memory(limit_bytes: int, pid: int = 0) -> None:
    """Have the system refuse a process more memory than that, for good. 0 is this process."""
    if sys.platform == "linux":
        import resource

        resource.prlimit(pid, resource.RLIMIT_DATA, (limit_bytes, limit_bytes))


def limit_growth(most_bytes: int) -> None:
    """Have the system refuse this process more memory once about so much is resident. `lift_limit` ends it."""
    global _allowed_bytes
    _allowed_bytes = most_bytes
    if sys.platform == "linux":
        import resource

        reserved, resident = (_status_bytes(name) for name in ("VmData", "VmRSS"))
        soft = reserved + max(0, most_bytes - resident) + _SLACK_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (soft, resource.getrlimit(resource.RLIMIT_DATA)[1]))


def resident_bytes(pid: int) -> int:
    """Return how much memory a process has; 0 if it is gone, or where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def lift_limit() -> None:
    """End a limit of growth, so that a process that met it has room to say so."""
    if sys.platform == "linux":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def allowed_bytes() -> int:
    """Return how much memory this process was limited to; 0 if it was not."""
    return _allowed_bytes


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that the system refused memory; torch has no error of its own for that."""
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and "can't allocate memory" in str(error)
    )


def kills_for_memory() -> int:
    """Return how many processes the kernel has killed here because memory ran out, since it started."""
    try:
        counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    except OSError:
        return 0
    return int(counters.get("oom_kill", 0))


def _of_machine() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_containers() -> Iterator[int]:
    """Yield the limits of this process's control groups, of both versions; "max" is none."""
    try:
        own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        own = []
    places = [(_CGROUPS, "memory.max"), (_CGROUPS / "memory", "memory.limit_in_bytes")]
    for _, controllers, path in own:
        relative = path.lstrip("/")
        if not controllers:
            groups = (_CGROUPS / relative, *(_CGROUPS / relative).parents)
            places += [(group, "memory.max") for group in groups if group.is_relative_to(_CGROUPS)]
        elif "memory" in controllers.split(","):
            places.append((_CGROUPS / "memory" / relative, "memory.limit_in_bytes"))
    yield sys.maxsize
    for folder, name in places:
        try:
            written = (folder / name).read_text().strip()
        except OSError:
            continue
        if written.isdecimal():
            yield int(written)


def _status_bytes(name: str) -> int:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(f"{name}:"))
