"""The data sets that a job may learn from.

`datasets` keeps them and imports jobs, so jobs use it through this protocol only. Its app registers the module, which
is imported on first use: most commands never use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from training.data.manifest import Manifest
    from webapp.jobs.form.spec_fields import Named
    from webapp.jobs.form.spec_problems import Problem
    from webapp.jobs.spec import JobSpec


class DataChoice(Protocol):
    """What jobs need to know of a project's data sets."""

    def list_options(self, project: Any) -> list[Named]:
        """Return the project's data sets, newest first, then those shipped with Starling."""

    def obstacles(self, project: Any, spec: JobSpec) -> Sequence[Problem]:
        """Return why this job cannot learn from the data set that it names; empty for other jobs."""

    def manifest_of(self, project: Any, data: str) -> Manifest | None:
        """Return what the data set is that a spec would name so; None if the project has none."""


_answering = ""


def register(module: str) -> None:
    """Register the module that implements the protocol."""
    global _answering
    _answering = module


def data_sets() -> DataChoice:
    """Return the registered module, imported at the first call."""
    return cast(DataChoice, import_module(_answering))
