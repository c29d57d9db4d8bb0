"""What a job may choose of its project beside connections: trained schedulers and data sets.

The apps that keep them import jobs, so jobs use them through these protocols only. Each app registers its module, which
is imported on first use: most commands never use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol, cast

from training.data.manifest import Manifest
from webapp.accounts.models import Project
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.spec import JobSpec

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


class SchedulerChoice(Protocol):
    """What jobs need to know of a project's trained schedulers."""

    def list_options(self, project: Project) -> dict[str, list[Named]]:
        """Return the project's schedulers by the kind of their scaling policy, newest first."""

    def empty_text(self, project: Project) -> SafeString:
        """Return the text below the select of a project without schedulers."""

    def fill_in_weights(self, project: Project, spec: JobSpec) -> JobSpec:
        """Return the spec with the weights of the scheduler it names; unchanged if it names none."""

    def obstacles(self, project: Project, spec: JobSpec) -> Sequence[SpecProblem]:
        """Return why no scheduler can run in this job."""


class DataChoice(Protocol):
    """What jobs need to know of a project's data sets."""

    def list_options(self, project: Project) -> list[Named]:
        """Return the project's data sets, newest first, then those shipped with Starling."""

    def obstacles(self, project: Project, spec: JobSpec) -> Sequence[SpecProblem]:
        """Return why this job cannot learn from the data set that it names; empty for other jobs."""

    def manifest_of(self, project: Project, data: str) -> Manifest | None:
        """Return what the data set is that a spec would name so; None if the project has none."""


_modules: dict[str, str] = {}


def register(choice: Literal["schedulers", "data sets"], module: str) -> None:
    """Register the module that implements the choice's protocol."""
    _modules[choice] = module


def schedulers() -> SchedulerChoice:
    """Return the registered module, imported at the first call."""
    return cast(SchedulerChoice, import_module(_modules["schedulers"]))


def data_sets() -> DataChoice:
    """Return the registered module, imported at the first call."""
    return cast(DataChoice, import_module(_modules["data sets"]))
