"""The variables of processes that run code of others: nothing is inherited, so no secret is in them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import training

SOURCE_ROOT = Path(training.__file__).resolve().parent.parent

# They are the same on every machine. Each process has one thread: the processes are the parallelism.
_VARIABLES = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def clean_variables() -> dict[str, str]:
    """Return the variables of such a process. It imports from this process's path, which may have further packages."""
    places = [str(SOURCE_ROOT), *(place for place in sys.path if place)]
    return {**_VARIABLES, "PYTHONPATH": os.pathsep.join(dict.fromkeys(places))}
