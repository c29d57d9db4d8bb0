"""The queries of the list of jobs: filter and order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db import transaction
from django.db.models import BigIntegerField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.list.columns import BY_KEY, Column
from webapp.jobs.list.search_query import STATES, Term
from webapp.jobs.models import Job, JobGroup, SavedView, Tag
from webapp.money.amounts import PICODOLLARS_PER_USD

_LOOKUPS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "=": "exact"}
_TURNED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "=": "="}
_FIELDS = {
    "return": "episode_return_mean",
    "best": "return_best",
    "least": "return_least",
    "evaluation": "evaluation_return_mean",
    "steps": "env_steps",
    "rounds": "round_no",
    "actors": "actors",
    "time": "platform_s",
}
_OFFERED = 50
FIRST = "-started"
"""The default order: newest first."""


def find_jobs(project: Any, terms: Sequence[Term], order: str, now: datetime) -> QuerySet[Job]:
    """Return the project's jobs that match all terms. Archived jobs are included only if the search names
    them."""
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
    for term in terms:
        holds = _holds(term, now)
        rows = rows.filter(~holds if term.negated else holds)
    return rows.order_by(*_order(order))


def load_columns(job_ids: Sequence[str], columns: Iterable[Column]) -> list[Job]:
    """Return these jobs in this order, with all that the columns show, in a fixed number of queries."""
    reads = {part for column in columns for part in column.reads}
    joined = sorted(part for part in reads if part not in ("tags", "groups"))
    rows = Job.objects.filter(pk__in=job_ids).select_related("account", *joined)
    rows = rows.defer("spec", "summary", "note").prefetch_related(*sorted(reads & {"tags", "groups"}))
    found = {job.pk: job for job in rows}
    return [found[job_id] for job_id in job_ids if job_id in found]


def saved_views(project: Any) -> list[SavedView]:
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


def _holds(term: Term, now: datetime) -> Q:
    if not term.values:
        return _figure(term, now)
    found = Q()
    for value in term.values:
        found |= _word(term.key, value)
    return found


def _word(key: str, value: str) -> Q:
    match key:
        case "state":
            return STATES[value]
        case "algorithm" | "cloud":
            return Q(**{f"{key}__iexact": value})
        case "environment":
            return Q(environment__icontains=value)
        case "tag":
            return Q(Exists(Tag.objects.filter(jobs=OuterRef("pk"), name__iexact=value)))
        case "group":
            return Q(Exists(JobGroup.objects.filter(jobs=OuterRef("pk"), name__iexact=value)))
        case "by":
            return Q(created_by__email__icontains=value)
        case "is":
            return Q(simulated=True) if value == "simulated" else Q(archived_at__isnull=False)
    return Q(name__icontains=value) | Q(pk=value) | Q(note__icontains=value)


def _figure(term: Term, now: datetime) -> Q:
    if term.key == "age":  # an older job has an earlier time
        moment = now - timedelta(seconds=min(term.number, 1e9))
        return Q(**{f"created_at__{_LOOKUPS[_TURNED[term.operator]]}": moment})
    if term.key in ("cost", "limit"):
        field = "cost" if term.key == "cost" else "account__limit_picodollars"
        number = round(min(max(term.number, -9e6), 9e6) * PICODOLLARS_PER_USD)
        return Q(**{f"{field}__{_LOOKUPS[term.operator]}": number})
    return Q(**{f"{_FIELDS[term.key]}__{_LOOKUPS[term.operator]}": term.number})


def find_group_jobs(project: Any, group: JobGroup) -> QuerySet[Job]:
    """Return the runs of a group, first launched first."""
    rows = Job.objects.filter(project=project, groups=group, deleted_at=None).select_related("account")
    return rows.defer("summary", "note").order_by("created_at", "pk")


def list_comparison_candidates(project: Any) -> dict[str, Any]:
    """Return the newest groups, and the newest jobs with a return, as candidates of a comparison."""
    groups = JobGroup.objects.filter(project=project, jobs__archived_at=None).distinct()
    jobs = Job.objects.filter(project=project, archived_at=None, episode_return_mean__isnull=False)
    return {
        "groups": list(groups.order_by("-created_at")[:_OFFERED]),
        "offered": list(jobs.only("id", "name", "episode_return_mean").order_by("-created_at")[:_OFFERED]),
    }


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
