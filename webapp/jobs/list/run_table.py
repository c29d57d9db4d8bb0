"""The queries of the list of jobs: filter and order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db import transaction
from django.db.models import BigIntegerField, ExpressionWrapper, F, QuerySet

from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.charts.sparklines import scores_of
from webapp.jobs.list.columns import BY_KEY, CURVE, JobColumn
from webapp.jobs.list.search_query import Term, condition
from webapp.jobs.models import Job, JobGroup, SavedView
from webapp.jobs.queries import TRAINING_KIND
from webapp.jobs.scores import LEADING

_OFFERED = 50
FIRST = "-started"
"""The default order: newest first."""


def find_jobs(project: Project, terms: Sequence[Term], order: str, now: datetime) -> QuerySet[Job]:
    """Return the project's jobs that match all terms. Archived jobs are included only if the search names them."""
    rows = Job.objects.filter(project=project)
    if any(term.key == "is" and "archived" in term.values for term in terms):
        rows = rows.filter(deleted_at=None)
    else:
        rows = rows.filter(archived_at=None)
    needs_cost = any(term.key == "cost" for term in terms) or order.lstrip("-") == "spent"
    if needs_cost:
        cost = F("account__spent_picodollars") + F("account__overrun_picodollars")
        # Without its type Django takes the sum for 32 bits, and PostgreSQL finds no job above $0.002.
        rows = rows.annotate(cost=ExpressionWrapper(cost, output_field=BigIntegerField()))
    rows = rows.alias(leading_score=LEADING)
    for term in terms:
        holds = condition(term, now)
        rows = rows.filter(~holds if term.negated else holds)
    return rows.order_by(*_order(order))


def load_columns(job_ids: Sequence[str], columns: Sequence[JobColumn]) -> list[Job]:
    """Return these jobs in this order, with all that the columns show, in a fixed number of queries."""
    reads = {part for column in columns for part in column.reads}
    joined = sorted(part for part in reads if part not in ("tags", "groups"))
    rows = Job.objects.filter(pk__in=job_ids).select_related("account", *joined)
    rows = rows.defer("spec", "summary", "note").annotate(training_kind=TRAINING_KIND)
    rows = rows.prefetch_related(*sorted(reads & {"tags", "groups"}))
    by_pk = {job.pk: job for job in rows}
    if any(column.key == CURVE for column in columns):
        for pk, scores in scores_of(by_pk.values()).items():
            by_pk[pk].scores = scores  # type: ignore[attr-defined]
    return [by_pk[job_id] for job_id in job_ids if job_id in by_pk]


def saved_views(project: Project) -> list[SavedView]:
    return list(SavedView.objects.filter(project=project))


def order_of(text: str) -> str:
    """Return a known order, such as "-spent" (most first); the default for any other."""
    column = BY_KEY.get(text.removeprefix("-"))
    return text if column is not None and column.order else FIRST


def _order(order: str) -> list[Any]:
    if order == FIRST:  # matches the index
        return ["-created_at", "pk"]
    field = F(BY_KEY[order.removeprefix("-")].order)
    first = field.desc(nulls_last=True) if order.startswith("-") else field.asc(nulls_last=True)
    return [first, "-created_at", "pk"]


def find_group_jobs(project: Project, group: JobGroup) -> QuerySet[Job]:
    """Return the runs of a group, first launched first."""
    rows = Job.objects.filter(project=project, groups=group, deleted_at=None).select_related("account")
    rows = rows.prefetch_related("account__budgets")
    return rows.defer("summary", "note").order_by("created_at", "pk")


def list_comparison_candidates(project: Project) -> dict[str, Any]:
    """Return the newest groups, and the newest jobs with a return, as candidates of a comparison."""
    groups = JobGroup.objects.filter(project=project, jobs__archived_at=None).distinct()
    jobs = Job.objects.filter(project=project, archived_at=None, training_score__isnull=False)
    jobs = jobs.only("id", "name", "training_score", "evaluated_score").annotate(training_kind=TRAINING_KIND)
    return {
        "groups": list(groups.order_by("-created_at")[:_OFFERED]),
        "offered": list(jobs.order_by("-created_at")[:_OFFERED]),
    }


MOST_VIEWS = 30
_KEPT = ("q", "sort", "columns")


class ViewRefused(ValueError):
    """The view is not saved. The text says why."""


@transaction.atomic
def save_view(
    *, project: Project, user: User, name: str, address: str, clock: Clock = SYSTEM_CLOCK
) -> SavedView:
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


def remove_view(*, project: Project, view_id: int) -> None:
    """Delete a view of this project. ViewRefused if there is none with this id."""
    removed, _ = SavedView.objects.filter(project=project, pk=view_id).delete()
    if not removed:
        raise ViewRefused("That view no longer exists.")
