"""Saved views of a project's jobs."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db import transaction

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.models import SavedView

MOST_VIEWS = 30
_KEPT = ("q", "sort", "columns")


class ViewRefused(ValueError):
    """The view is not saved. The text says why."""


@transaction.atomic
def save_view(*, project: Any, user: Any, name: str, address: str, clock: Clock = SYSTEM_CLOCK) -> SavedView:
    """Save the query string of the list's URL under a name; replaces a view of the same name."""
    name = name.strip()
    if not name or len(name) > 60:
        raise ViewRefused("Give the view a name of at most 60 letters, such as “Failed this week”.")
    parameters = [(key, value) for key, value in parse_qsl(address.lstrip("?")) if key in _KEPT]
    question = "?" + urlencode(parameters, safe=":,")
    if len(question) > 1000:
        raise ViewRefused("This view's search is too long to be saved.")
    others = SavedView.objects.filter(project=project).exclude(name=name)
    if others.count() >= MOST_VIEWS:
        raise ViewRefused(f"A project keeps at most {MOST_VIEWS} views; remove one first.")
    made = {"address": question, "created_by": user, "created_at": clock.now()}
    view, _ = SavedView.objects.update_or_create(project=project, name=name, defaults=made)
    return view


def remove_view(*, project: Any, view_id: int) -> None:
    """Delete a view of this project. ViewRefused if there is none with this id."""
    removed, _ = SavedView.objects.filter(project=project, pk=view_id).delete()
    if not removed:
        raise ViewRefused("That view no longer exists.")
