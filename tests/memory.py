"""How much memory a block takes at its peak, or another process: what libraries allocate in C as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_PROCESS = Path("/proc/self")


class Peak:
    """`grown_bytes`: by how much the process was larger at the block's peak than at its beginning."""

    grown_bytes = 0


@contextmanager
def memory_peak() -> Iterator[Peak]:
    """Measures the block, whether it raises or not. Skips the test where the kernel does not tell."""
    peak = Peak()
    try:
        (_PROCESS / "clear_refs").write_text("5")  # the peak counts from now on
    except OSError:
        pytest.skip("this kernel does not tell a process's peak of memory")
    before = _held("VmRSS")
    try:
        yield peak
    finally:
        peak.grown_bytes = _held("VmHWM") - before


def _held(name: str) -> int:
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def web_process(port: int) -> Path:
    """Where the kernel tells of the process that serves this port."""
    found = process_with(b"webapp.asgi:application", str(port).encode())
    assert found is not None, f"no process serves port {port}"
    return found


def process_with(*words: bytes) -> Path | None:
    """Where the kernel tells of a process that was started with all these words; None if there is none."""
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if set(words) <= set((place / "cmdline").read_bytes().split(b"\0")):
                return place
    return None


def most_memory_mb(process: Path) -> float:
    """The most memory that the process has held so far."""
    (line,) = [one for one in (process / "status").read_text().splitlines() if one.startswith("VmHWM")]
    return int(line.split()[1]) / 1024
