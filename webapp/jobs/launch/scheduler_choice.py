"""The trained schedulers that a job may name.

`schedulers` trains them and imports jobs, so jobs use it through this protocol only. Its app registers the
module, which is imported on first use: most commands never use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from django.utils.safestring import SafeString

    from webapp.jobs.form.spec_fields import Named
    from webapp.jobs.form.spec_problems import Problem
    from webapp.jobs.spec import JobSpec


class SchedulerChoice(Protocol):
    """What jobs need to know of a project's trained schedulers."""

    def list_options(self, project: Any) -> dict[str, list[Named]]:
        """Return the project's schedulers by the kind of their scaling policy, newest first."""

    def empty_text(self, project: Any) -> SafeString:
        """Return the text below the select of a project without schedulers."""

    def fill_in_weights(self, project: Any, spec: JobSpec) -> JobSpec:
        """Return the spec with the weights of the scheduler it names; unchanged if it names none."""

    def obstacles(self, project: Any, spec: JobSpec) -> Sequence[Problem]:
        """Return why no scheduler can run in this job."""


_answering = ""


def register(module: str) -> None:
    """Register the module that implements the protocol."""
    global _answering
    _answering = module


def schedulers() -> SchedulerChoice:
    """Return the registered module, imported at the first call."""
    return cast(SchedulerChoice, import_module(_answering))
