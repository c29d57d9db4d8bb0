"""How torch is loaded, and whether it is needed: it costs seconds and hundreds of megabytes, and MLPs learn without it.

Code that computes in tensors calls `import_torch` first. Nothing else in an update imports torch, so a learner of an
MLP runs where torch is not installed.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Device files of NVIDIA's driver, of the same under Windows' Linux, and of AMD's.
_GPU_FILES = (Path("/dev/nvidiactl"), Path("/dev/dxg"), Path("/dev/kfd"))


def import_torch() -> Any:
    """Import torch with one thread: where cores are shared more threads are slower, and results must stay the same."""
    import torch

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    # Else a GPU rounds what convolutions read to ten bits, and may sum in another order at each call.
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    return torch


def device() -> str:
    """Return where torch computes here: "cuda" if there is a GPU, else "cpu"."""
    return "cuda" if import_torch().cuda.is_available() else "cpu"


def has_gpu() -> bool:
    """Return whether torch can use a GPU here. Torch is imported only if it is installed and there may be one."""
    if not may_have_gpu() or find_spec("torch") is None:
        return False
    return bool(import_torch().cuda.is_available())


def gpu_name() -> str:
    """Return the GPU that torch would compute on, as its maker calls it, or "" without one."""
    return str(import_torch().cuda.get_device_name()) if has_gpu() else ""


def may_have_gpu() -> bool:
    """Return whether there is a driver of a GPU here, or this cannot be known."""
    return sys.platform == "win32" or any(file.exists() for file in _GPU_FILES)
