"""What people do to jobs in the list: tags, notes, archiving, deleting for good, and one action for many jobs.

Nothing here but a stop, a pause and a resume changes money.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import plural
from webapp.http.refusals import ActionRefused
from webapp.job_states import TERMINAL, Observed
from webapp.jobs import services
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.models import Desired, FilmState, Job, Tag
from webapp.jobs.policies.film_process import film_folder
from webapp.jobs.running.checkpoint_files import checkpoint_folder
from webapp.jobs.running.run_log import log_file
from webapp.money.budgets import NoRoom
from webapp.money.models import ChargeState
from webapp.money.services import LimitTooLow

MOST_TAGS = 10
LONGEST_TAG = 40
LONGEST_NOTE = 5_000
MOST_AT_ONCE = 200
_MADE = ("films", "surfaces", "checkpoints", "events")
_AT_WORK = (FilmState.QUEUED, FilmState.FILMING)
_MEASURED = ("ready", "failed")


class LabelRefused(ActionRefused, ValueError):
    """The change is refused. The text says why and what to do."""


def tag_names(text: str) -> list[str]:
    """Return the tags in a comma-separated text, each once, in order. LabelRefused for too many or too long ones."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > MOST_TAGS:
        raise LabelRefused(f"A job takes at most {MOST_TAGS} tags; {len(names)} were given.")
    for name in names:
        if len(name) > LONGEST_TAG:
            raise LabelRefused(f"The tag “{name[:20]}…” has {len(name)} letters; at most {LONGEST_TAG} fit.")
    return names


def tag_named(project: Project, text: str) -> Tag:
    """Return the project's tag with that name, created if necessary. LabelRefused if the text is not one tag."""
    names = tag_names(text)
    if len(names) != 1:
        raise LabelRefused(f"One tag is wanted, without commas; {text!r} is {len(names)}.")
    return Tag.objects.get_or_create(project=project, name=names[0])[0]


@transaction.atomic
def set_tags(*, job: Job, names: Iterable[str]) -> None:
    """Replace the job's tags. A budget by tag counts the tags at launch; reports use the present ones."""
    rows = [Tag.objects.get_or_create(project_id=job.project_id, name=name)[0] for name in names]
    job.tags.set(rows)


@transaction.atomic
def add_tags(*, job: Job, names: Iterable[str]) -> None:
    """Add tags. LabelRefused if they would be too many."""
    before = list(job.tags.values_list("name", flat=True))
    set_tags(job=job, names=tag_names(",".join([*before, *names])))


def set_note(*, job: Job, text: str) -> None:
    """Set the job's note; an empty text removes it."""
    text = text.strip()
    if len(text) > LONGEST_NOTE:
        raise LabelRefused(f"The note has {len(text):,} letters; at most {LONGEST_NOTE:,} fit.")
    Job.objects.filter(pk=job.pk).update(note=text)


@transaction.atomic
def archive(*, job: Job, user: User, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Remove the job from lists; its data and money stay. False if it was archived already.

    LabelRefused if the job has not ended: what may still cost money is not hidden.
    """
    held = Job.objects.select_for_update().get(pk=job.pk)
    if held.archived_at is not None:
        return False
    if held.observed not in TERMINAL:
        state = held.get_observed_display().lower()
        raise LabelRefused(
            f"The job is {state}, so it may still cost something. Stop it first, then archive it."
        )
    changes = {"archived_at": clock.now()}
    append_events(job.pk, [note(f"Archived by {user}.")], clock=clock, changes=changes)
    return True


@transaction.atomic
def unarchive(*, job: Job, user: User, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Show the job in lists again; False if it was not archived."""
    held = Job.objects.select_for_update().get(pk=job.pk)
    if held.archived_at is None:
        return False
    changes = {"archived_at": None}
    append_events(job.pk, [note(f"Restored from the archive by {user}.")], clock=clock, changes=changes)
    return True


@transaction.atomic
def delete(*, job: Job, user: User, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Delete the job's curves, events, log, checkpoints, films and surfaces. False if it was deleted already.

    LabelRefused unless it is archived and nothing of it is in progress. Files are deleted before the
    transaction commits: after a crash between the two, the user deletes the job again.
    """
    held = Job.objects.select_for_update().get(pk=job.pk)
    if held.deleted_at is not None:
        return False
    if obstacle := _obstacle(held):
        raise LabelRefused(obstacle)
    for made in _MADE:
        getattr(held, made).all().delete()
    changes = {"deleted_at": clock.now(), "note": ""}
    append_events(job.pk, [note(f"Deleted by {user}.")], clock=clock, changes=changes)
    for folder in (checkpoint_folder(job.pk), film_folder() / job.pk):
        shutil.rmtree(folder, ignore_errors=not folder.exists())
    log_file(job.pk).unlink(missing_ok=True)
    return True


def _obstacle(job: Job) -> str:
    """Return why the job cannot be deleted now and what to do; empty if it can."""
    if job.archived_at is None:
        return "Only an archived job can be deleted. Archive it first."
    if job.lease_owner or job.account.charges.filter(state=ChargeState.OPEN).exists():
        return "Its last calls are not settled yet, so what it cost is not known. Try again in a minute."
    if job.films.filter(state__in=_AT_WORK, requested_by__isnull=False).exists():
        return "A film of it is being made. Try again when it is finished."
    if job.surfaces.exclude(state__in=_MEASURED).exists():
        return "A reward surface of it is being measured. Try again when it is finished."
    return ""


# Many jobs at once. Each is a change of its own: a refusal by one does not stop the others


class NotPossible(ValueError):
    """An unknown action, or too many jobs at once. Nothing was done."""


@dataclass(frozen=True)
class ActionOutcome:
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
    project: Project,
    user: User,
    action: str,
    job_ids: Sequence[str],
    tag: str = "",
    clock: Clock = SYSTEM_CLOCK,
) -> ActionOutcome:
    """Apply `action` (a key of ACTIONS) to these jobs of the project; other ids are ignored. Raises NotPossible."""
    if action not in ACTIONS:
        raise NotPossible("Nothing was done: choose what to do with the jobs.")
    if not job_ids:
        raise NotPossible("Nothing was done: choose one or more jobs first.")
    if len(set(job_ids)) > MOST_AT_ONCE:
        raise NotPossible(f"Nothing was done: at most {MOST_AT_ONCE} jobs can be chosen at once.")
    word, do = ACTIONS[action]
    wanted: dict[str, Any] = {"user": user, "clock": clock}
    if action == "tag" and not (wanted := {"names": tag_names(tag)})["names"]:
        raise NotPossible("Nothing was done: write the tag to put on the jobs.")
    done, refused = [], []
    chosen = Job.objects.filter(project=project, pk__in=set(job_ids), deleted_at=None)
    for job in chosen.order_by("-created_at", "pk"):
        try:
            if do(job=job, **wanted):
                done.append(job.pk)
            else:
                refused.append((job.name, "there was nothing to do."))
        except (services.CannotPause, LabelRefused, LimitTooLow, NoRoom) as refusal:
            refused.append((job.name, str(refusal)))
    return ActionOutcome(word, tuple(done), tuple(refused))


def _stop(*, job: Job, user: User, clock: Clock) -> bool:
    if job.observed in TERMINAL or job.desired == Desired.CANCELLED:
        return False
    services.stop_job(job=job, user=user, clock=clock)
    return True


def _pause(*, job: Job, user: User, clock: Clock) -> bool:
    if job.observed == Observed.PAUSED or job.desired == Desired.PAUSED:
        return False
    services.pause_job(job=job, user=user, clock=clock)
    return True


def _go_on(*, job: Job, user: User, clock: Clock) -> bool:
    if job.observed != Observed.PAUSED:
        return False
    services.go_on(job=job, user=user, clock=clock)
    return True


def _tag(*, job: Job, names: list[str]) -> bool:
    add_tags(job=job, names=names)
    return True


ACTIONS: dict[str, tuple[str, Callable[..., bool]]] = {
    "stop": ("Stopping", _stop),
    "pause": ("Pausing, each after it has saved a checkpoint", _pause),
    "go_on": ("Going on", _go_on),
    "tag": ("Tagged", _tag),
    "archive": ("Archived", archive),
    "unarchive": ("Back in the list", unarchive),
    "delete": ("Deleted for good", delete),
}
"""By form value: the action's text, and its function (False: nothing to do)."""
