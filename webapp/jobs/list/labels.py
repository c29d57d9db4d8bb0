"""Tags, notes and archiving. Nothing here changes money."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import transaction

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.job_states import TERMINAL
from webapp.jobs.events.event_log import append_events, note
from webapp.jobs.models import Job, Tag

MOST_TAGS = 10
LONGEST_TAG = 40
LONGEST_NOTE = 5_000


class LabelRefused(ValueError):
    """The change is refused. The text says why and what to do."""


def tag_names(text: str) -> list[str]:
    """Return the tags in a comma-separated text, each once, in order. LabelRefused for too many or too long
    ones."""
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if len(names) > MOST_TAGS:
        raise LabelRefused(f"A job takes at most {MOST_TAGS} tags; {len(names)} were given.")
    for name in names:
        if len(name) > LONGEST_TAG:
            raise LabelRefused(f"The tag “{name[:20]}…” has {len(name)} letters; at most {LONGEST_TAG} fit.")
    return names


def tag_named(project: Any, text: str) -> Tag:
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
def archive(*, job: Job, user: Any, clock: Clock = SYSTEM_CLOCK) -> bool:
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
def unarchive(*, job: Job, user: Any, clock: Clock = SYSTEM_CLOCK) -> bool:
    """Show the job in lists again; False if it was not archived."""
    held = Job.objects.select_for_update().get(pk=job.pk)
    if held.archived_at is None:
        return False
    changes = {"archived_at": None}
    append_events(job.pk, [note(f"Restored from the archive by {user}.")], clock=clock, changes=changes)
    return True
