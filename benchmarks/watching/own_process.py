"""Runs one module of this package in a process of its own, with a data folder that goes when it is done."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]


def measured(module: str, *arguments: object) -> dict[str, float]:
    """The figures that `python -m benchmarks.watching.MODULE ARGUMENTS` prints as its last line."""
    folder = tempfile.mkdtemp(prefix="starling-bench-watching-")
    environment = {
        **os.environ,
        "STARLING_DATA": folder,
        "DATABASE_URL": "",
        "STARLING_LOG_LEVEL": "ERROR",
        "DJANGO_ALLOW_ASYNC_UNSAFE": "true",  # a browser's driver keeps an event loop in the thread
    }
    command = [sys.executable, "-m", f"benchmarks.watching.{module}", *map(str, arguments)]
    try:
        done = subprocess.run(
            command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False
        )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode:
        raise RuntimeError(f"{module} could not be measured:\n{done.stderr[-2000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer
