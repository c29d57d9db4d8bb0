"""What a run was made with: machine, versions, commit. Results are only compared where these agree."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from training.engine.torch_loading import gpu_name

PACKAGES = ("numpy", "torch", "mujoco", "gymnasium", "ale-py")


def fingerprint(root: Path) -> dict[str, str]:
    """This process's own. `commit` ends in "+" where tracked files were changed since."""
    return {
        "cpu": cpu_model(),
        **({"gpu": gpu} if (gpu := gpu_name()) else {}),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version_of(name) for name in PACKAGES},
        "commit": commit(root),
    }


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown"
    )


def commit(root: Path) -> str:
    def git(*words: str) -> str:
        answer = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=30)
        return answer.stdout.strip() if answer.returncode == 0 else ""

    try:
        name = git("rev-parse", "--short=12", "HEAD")
        return (
            (name + "+" * bool(git("status", "--porcelain", "--untracked-files=no"))) if name else "unknown"
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"


def version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
