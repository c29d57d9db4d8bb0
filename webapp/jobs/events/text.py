"""How a job's state is shown: its word, its tone of colour and the shape of its icon. One row a state."""

from __future__ import annotations

from typing import NamedTuple

from webapp.job_states import Observed
from webapp.jobs.models import Job


class Shown(NamedTuple):
    word: str
    tone: str
    icon: str


STATES: dict[str, Shown] = {
    Observed.QUEUED: Shown("Queued", "waiting", "hourglass-split"),
    Observed.STARTING: Shown("Starting", "waiting", "three-dots"),
    Observed.RUNNING: Shown("Running", "running", "play-fill"),
    Observed.RECOVERING: Shown("Recovering", "warning", "arrow-repeat"),
    Observed.DRAINING: Shown("Stopping", "waiting", "chevron-double-down"),
    Observed.PAUSED: Shown("Paused", "waiting", "pause-fill"),
    "paused:budget": Shown("Stopped by budget", "budget", "sign-stop-fill"),
    Observed.SUCCEEDED: Shown("Succeeded", "ok", "check-lg"),
    Observed.FAILED: Shown("Failed", "failed", "x-octagon-fill"),
    Observed.CANCELLED: Shown("Stopped", "waiting", "slash-circle"),
}
"""By state; "state:reason code" where a reason makes it another thing to people."""

EVENT_ICONS = (
    "dot",
    "check-circle",
    "exclamation-triangle-fill",
    "x-octagon-fill",
    "sign-stop-fill",
    "bookmark-check",
    "bar-chart",
    "arrow-repeat",
    "arrow-right-circle",
)
"""What the event list of a job page draws with (static/js/jobs/events.js)."""

FILTERS: dict[str, tuple[str, tuple[str, ...]]] = {
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


def shown(observed: str, reason_code: str = "") -> Shown:
    return STATES.get(f"{observed}:{reason_code}") or STATES[observed]


def shown_state(job: Job) -> Shown:
    return shown(job.observed, job.reason_code)


def reason_in_words(job: Job) -> str:
    """Why the job is where it is; a state always has something to say, also when nothing was noted with it."""
    if job.reason:
        return job.reason
    if job.observed == Observed.RUNNING:
        return f"Round {job.round_no + 1:,} is under way."
    return f"{shown_state(job).word}."


def states_for_script() -> dict[str, dict[str, str]]:
    """The same table for the browser."""
    return {str(key): state._asdict() for key, state in STATES.items()}
