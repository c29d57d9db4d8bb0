"""Whether torch finds a GPU."""

from __future__ import annotations

from typing import Any

from training.engine.torch_loading import device


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return `device`: "cuda" or "cpu". It needs no arguments."""
    return {"device": device()}
