"""A description of this machine, and of how busy other processes keep it."""

from __future__ import annotations

import os
import platform
import resource
import time
from datetime import date
from pathlib import Path

from cloud.fingerprint import PACKAGES, cpu_model, version_of
from cloud.workers.executor import cores


def describe(today: date) -> str:
    """Return processor, cores, libraries and date, as the source of a figure."""
    libraries = ", ".join(f"{name} {version_of(name)}" for name in PACKAGES)
    return (
        f"{cpu_model()}, {cores()} cores, Python {platform.python_version()}, {libraries},"
        f" {today.day} {today:%B %Y}"
    )


class OtherLoad:
    """Measures how much of all cores other processes used since it was made. Own child processes count as own once
    they have been waited for.

    Work at the lowest priority is counted separately: it uses only idle cores and hardly changes processor times.
    """

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._before = (*_used_s(), _own_s())

    def shares(self) -> tuple[float, float]:
        """Return (ordinary, background), each from 0 to 1; zeros where the kernel does not report them."""
        passed_s = max(1e-9, time.monotonic() - self._began_s) * (os.cpu_count() or 1)
        ordinary, background, own = (
            now - before for now, before in zip((*_used_s(), _own_s()), self._before, strict=True)
        )
        if os.nice(0) > 0:
            background -= own
        else:
            ordinary -= own
        return max(0.0, ordinary / passed_s), max(0.0, background / passed_s)


def _used_s() -> tuple[float, float]:
    """Return the seconds of all cores at ordinary and at low priority since the machine booted."""
    try:
        fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    except OSError:
        return 0.0, 0.0
    user, nice, system, _, _, irq, soft_irq, steal = fields[:8]
    tick_s = 1.0 / os.sysconf("SC_CLK_TCK")
    return (user + system + irq + soft_irq + steal) * tick_s, nice * tick_s


def _own_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
