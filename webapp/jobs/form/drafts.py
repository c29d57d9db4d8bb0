"""Drafts: saved forms of jobs. A draft belongs to a user in a project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import Draft

MOST_DRAFTS = 30
_LONGEST_VALUE = 20_000
BESIDE = ("seeds", "checkpoint")
"""The form's fields beside the spec's."""


class DraftRefused(ValueError):
    """The draft cannot be saved. The text says why and what to do."""


def drafts_of(project: Project, user: User) -> QuerySet[Draft]:
    """Return the user's drafts in a project, last saved first."""
    return Draft.objects.filter(project=project, user=user)


def draft_in(project: Project, user: User, draft_id: str) -> Draft | None:
    """Return the user's draft with that number; None if there is none."""
    if not draft_id.isdecimal() or len(draft_id) > 15:
        return None
    return drafts_of(project, user).filter(pk=int(draft_id)).first()


@transaction.atomic
def save_draft(
    *,
    project: Project,
    user: User,
    values: Mapping[str, Any],
    begun_with: str,
    draft: Draft | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Draft:
    """Save the form's values, valid or not; overwrite `draft` if given.

    DraftRefused if a value is too long or the user has too many drafts.
    """
    if any(len(str(value)) > _LONGEST_VALUE for value in values.values()):
        raise DraftRefused(
            f"A field holds more than {_LONGEST_VALUE:,} characters; shorten it, then save again."
        )
    mine = drafts_of(project, user).select_for_update()
    if draft is None and mine.count() >= MOST_DRAFTS:
        raise DraftRefused(
            f"You have {MOST_DRAFTS} drafts here, which is the limit. Delete one, then save again."
        )
    kept = draft or Draft(project=project, user=user, created_at=clock.now())
    kept.title = str(values.get("name") or "").strip()[:100] or "Without a name"
    kept.begun_with = begun_with[:300]
    kept.values = dict(values)
    kept.saved_at = clock.now()
    kept.save()
    return kept


def delete_draft(*, project: Project, user: User, draft_id: str) -> bool:
    """Delete a draft; False if there was none."""
    draft = draft_in(project, user, draft_id)
    if draft is None:
        return False
    draft.delete()
    return True


def unknown_fields(draft: Draft, known: Mapping[str, Any]) -> list[str]:
    """Return the draft's fields that no longer exist."""
    return sorted(name for name in draft.values if name not in known and name not in BESIDE)
