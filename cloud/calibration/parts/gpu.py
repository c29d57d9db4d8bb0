"""Whether the learner would have a GPU here."""

from __future__ import annotations

from typing import Any


def measure(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return `device`: "cuda" or "cpu". It needs no arguments."""
    import torch

    return {"device": "cuda" if torch.cuda.is_available() else "cpu"}
