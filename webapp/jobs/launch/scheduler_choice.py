"""The trained schedulers that a job may name: what forms offer, why none can decide, and the spec with the chosen one.

`schedulers` trains them and depends on jobs, so jobs know it by this protocol only. Its app names the module that
answers; that module is imported at the first question, since most commands never ask one.
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

    def offered(self, project: Any) -> list[Named]:
        """The project's schedulers, newest first."""

    def none_yet(self, project: Any) -> SafeString:
        """What the form says below the select of a project without any."""

    def placed(self, project: Any, spec: JobSpec) -> JobSpec:
        """The spec with the weights of the scheduler that it names, or the same spec if it names none."""

    def obstacles(self, project: Any, spec: JobSpec) -> Sequence[Problem]:
        """Why no scheduler can decide for this job."""


_answering = ""


def answered_by(module: str) -> None:
    """Have the functions of the module of this name answer."""
    global _answering
    _answering = module


def schedulers() -> SchedulerChoice:
    """The module that answers, imported at the first call."""
    return cast(SchedulerChoice, import_module(_answering))
