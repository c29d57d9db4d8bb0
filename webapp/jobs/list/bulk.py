"""Bulk actions. Each job is a change of its own: a refusal by one does not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import plural
from webapp.job_states import TERMINAL, Observed
from webapp.jobs import services
from webapp.jobs.list import deleting, labels
from webapp.jobs.models import Desired, Job
from webapp.jobs.running.pausing import CannotPause, pause_job

MOST_AT_ONCE = 200


class NotPossible(ValueError):
    """An unknown action, or too many jobs at once. Nothing was done."""


@dataclass(frozen=True)
class Outcome:
    """The ids of the changed jobs, and for the others (name, reason). `word` names the action."""

    word: str
    done: tuple[str, ...]
    refused: tuple[tuple[str, str], ...]

    @property
    def sentence(self) -> str:
        sentences = [f"{self.word}: {plural(len(self.done), 'job')}."] if self.done else []
        if self.refused:
            left = f"{len(self.refused)} left as {'it is' if len(self.refused) == 1 else 'they are'}"
            name, why = self.refused[0]
            sentences.append(f"{left} – {name}: {why}")
        return " ".join(sentences)


def act(
    *,
    project: Any,
    user: Any,
    action: str,
    job_ids: Sequence[str],
    tag: str = "",
    clock: Clock = SYSTEM_CLOCK,
) -> Outcome:
    """Apply `action` (a key of ACTIONS) to these jobs of the project; other ids are ignored. Raises
    NotPossible."""
    if action not in ACTIONS:
        raise NotPossible("Nothing was done: choose what to do with the jobs.")
    if not job_ids:
        raise NotPossible("Nothing was done: choose one or more jobs first.")
    if len(set(job_ids)) > MOST_AT_ONCE:
        raise NotPossible(f"Nothing was done: at most {MOST_AT_ONCE} jobs go at once.")
    names = labels.tag_names(tag) if action == "tag" else []
    if action == "tag" and not names:
        raise NotPossible("Nothing was done: write the tag to put on the jobs.")
    word, do = ACTIONS[action]
    done, refused = [], []
    chosen = Job.objects.filter(project=project, pk__in=set(job_ids), deleted_at=None)
    for job in chosen.order_by("-created_at", "pk"):
        try:
            if do(job, user, names, clock):
                done.append(job.pk)
            else:
                refused.append((job.name, "there was nothing to do."))
        except (CannotPause, labels.LabelRefused, services.LimitTooLow, services.NoRoom) as refusal:
            refused.append((job.name, str(refusal)))
    return Outcome(word, tuple(done), tuple(refused))


def _stop(job: Job, user: Any, names: list[str], clock: Clock) -> bool:
    if job.observed in TERMINAL or job.desired == Desired.CANCELLED:
        return False
    services.stop_job(job=job, user=user, clock=clock)
    return True


def _pause(job: Job, user: Any, names: list[str], clock: Clock) -> bool:
    if job.observed == Observed.PAUSED or job.desired == Desired.PAUSED:
        return False
    pause_job(job=job, user=user, clock=clock)
    return True


def _go_on(job: Job, user: Any, names: list[str], clock: Clock) -> bool:
    if job.observed != Observed.PAUSED:
        return False
    services.go_on(job=job, user=user, clock=clock)
    return True


def _tag(job: Job, user: Any, names: list[str], clock: Clock) -> bool:
    labels.add_tags(job=job, names=names)
    return True


def _archive(job: Job, user: Any, names: list[str], clock: Clock) -> bool:
    return labels.archive(job=job, user=user, clock=clock)


def _unarchive(job: Job, user: Any, names: list[str], clock: Clock) -> bool:
    return labels.unarchive(job=job, user=user, clock=clock)


def _delete(job: Job, user: Any, names: list[str], clock: Clock) -> bool:
    return deleting.delete(job=job, user=user, clock=clock)


ACTIONS: dict[str, tuple[str, Callable[[Job, Any, list[str], Clock], bool]]] = {
    "stop": ("Stopping", _stop),
    "pause": ("Pausing, each after it has saved a checkpoint", _pause),
    "go_on": ("Going on", _go_on),
    "tag": ("Tagged", _tag),
    "archive": ("Archived", _archive),
    "unarchive": ("Back in the list", _unarchive),
    "delete": ("Deleted for good", _delete),
}
"""By form value: the action's text, and its function (False: nothing to do)."""
