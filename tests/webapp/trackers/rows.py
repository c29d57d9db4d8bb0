"""Trackers of projects in tests."""

from __future__ import annotations

from typing import Any

from webapp.connections.sealing import Secret
from webapp.trackers.models import Tracker
from webapp.trackers.services import set_tracker


def make_tracker(
    project: Any, address: str = "https://8.8.8.8", token: str = "s3cret-token-of-mlflow", **given: Any
) -> Tracker:
    """A tracker in MLflow; the address is a number, so that no name is looked up."""
    given = {"kind": "mlflow", "place": "Hopper", **given}
    return set_tracker(project=project, address=address, token=Secret(token) if token else None, **given)
