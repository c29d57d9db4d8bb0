"""The states of a job and which may follow which. Terminal states have no successor."""

from django.db import models


class Observed(models.TextChoices):
    """The observed state of a job."""

    QUEUED = "queued", "Queued"
    STARTING = "starting", "Starting"
    RUNNING = "running", "Running"
    RECOVERING = "recovering", "Recovering"
    DRAINING = "draining", "Stopping"
    PAUSED = "paused", "Paused"
    SUCCEEDED = "succeeded", "Succeeded"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Stopped"


FILTERS: dict[str, tuple[str, tuple[Observed, ...]]] = {
    "active": (
        "Active",
        (Observed.QUEUED, Observed.STARTING, Observed.RUNNING, Observed.RECOVERING, Observed.DRAINING),
    ),
    "paused": ("Paused", (Observed.PAUSED,)),
    "succeeded": ("Succeeded", (Observed.SUCCEEDED,)),
    "failed": ("Failed", (Observed.FAILED,)),
    "stopped": ("Stopped", (Observed.CANCELLED,)),
}
"""The job list's filters: key in the address, word, states."""

TERMINAL = frozenset({Observed.SUCCEEDED, Observed.FAILED, Observed.CANCELLED})
ACTIVE = frozenset(
    {Observed.QUEUED, Observed.STARTING, Observed.RUNNING, Observed.RECOVERING, Observed.DRAINING}
)
"""States in which a process runs the job or is about to."""

_ENDS = {Observed.PAUSED, Observed.SUCCEEDED, Observed.FAILED, Observed.CANCELLED}

SUCCESSORS: dict[Observed, frozenset[Observed]] = {
    Observed.QUEUED: frozenset({Observed.STARTING, Observed.PAUSED, Observed.FAILED, Observed.CANCELLED}),
    Observed.STARTING: frozenset({Observed.RUNNING, Observed.RECOVERING, Observed.DRAINING, *_ENDS}),
    Observed.RUNNING: frozenset({Observed.RECOVERING, Observed.DRAINING, *_ENDS}),
    Observed.RECOVERING: frozenset({Observed.STARTING, Observed.PAUSED, Observed.FAILED, Observed.CANCELLED}),
    Observed.DRAINING: frozenset({Observed.RECOVERING, *_ENDS}),
    Observed.PAUSED: frozenset({Observed.QUEUED, Observed.CANCELLED}),
    Observed.SUCCEEDED: frozenset(),
    Observed.FAILED: frozenset(),
    Observed.CANCELLED: frozenset(),
}


class IllegalTransition(Exception):
    """A change of state that is not allowed."""


def require_allowed(before: str, after: str) -> None:
    """Raise IllegalTransition unless `after` may follow `before`."""
    if Observed(after) not in SUCCESSORS[Observed(before)]:
        raise IllegalTransition(f"a job that is {before} cannot become {after}")
