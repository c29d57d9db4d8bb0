"""The places of the navigation rail, and search for the palette: actions, places, jobs and groups of a project that
contain all typed words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import Q
from django.urls import reverse

from webapp.accounts.models import Membership, Project
from webapp.jobs.form.presets import presets
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.reasons import look_of_job


class RailPlace(NamedTuple):
    """One row of the rail. `key`: the key that opens it after a g. Addresses of `of_project` places contain the
    project's slug. On narrow screens, places that are not `in_bar` are in the menu More."""

    section: str
    word: str
    icon: str
    key: str
    url_name: str
    of_project: bool = True
    at_foot: bool = False
    in_bar: bool = False


# A new page of the rail is one row here.
PLACES = (
    RailPlace("overview", "Overview", "speedometer2", "o", "overview:page", in_bar=True),
    RailPlace("jobs", "Jobs", "play-btn", "j", "jobs:list", in_bar=True),
    RailPlace("data", "Data", "table", "d", "datasets:list"),
    RailPlace("compare", "Compare", "intersect", "c", "comparing:page"),
    RailPlace("budgets", "Budgets", "piggy-bank", "b", "budgets:list", in_bar=True),
    RailPlace("reports", "Reports", "bar-chart", "r", "reports:page"),
    RailPlace("clouds", "Clouds", "cloud", "l", "connections:list", in_bar=True),
    RailPlace("schedulers", "Schedulers", "diagram-3", "s", "schedulers:list"),
    RailPlace("papers", "Papers", "journal-text", "p", "papers:list", of_project=False),
    RailPlace("members", "Members", "people", "m", "accounts:members"),
    RailPlace("account", "Account", "gear", "a", "accounts:account", of_project=False, at_foot=True),
)


MOST_JOBS = 8
MOST_OTHERS = 5


@dataclass(frozen=True)
class SearchResult:
    """One line: following it goes to `url`."""

    title: str
    detail: str
    icon: str
    url: str


@dataclass(frozen=True)
class ResultGroup:
    title: str
    found: list[SearchResult]


def find(membership: Membership, text: str) -> list[ResultGroup]:
    """Results by kind, without empty kinds; exact names come first.

    Without words: what was launched last, what can be done, and all places.
    """
    words = text.lower().split()[:8]
    slug = membership.project.slug
    kinds = [
        ResultGroup("Jobs", _jobs(membership.project, slug, words)),
        ResultGroup("Groups and sweeps", _groups(membership.project, slug, words) if words else []),
        ResultGroup("To do", _fitting(_acts(membership, slug, bool(words)), words)),
        ResultGroup("Places", _fitting(_places(slug), words)),
    ]
    kinds = [kind for kind in kinds if kind.found]
    return sorted(kinds, key=lambda kind: not _called(kind.found[0], words))


def _called(result: SearchResult, words: list[str]) -> bool:
    return result.title.lower() == " ".join(words)


def _jobs(project: Project, slug: str, words: list[str]) -> list[SearchResult]:
    rows = Job.objects.filter(
        _all_in("name", words) | Q(pk=" ".join(words)), project=project, archived_at=None
    )
    rows = rows.only("name", "observed", "reason_code", "subject").order_by("-created_at")
    return [
        SearchResult(
            job.name,
            f"{look_of_job(job).word} · {job.subject}" if job.subject else look_of_job(job).word,
            look_of_job(job).icon,
            reverse("jobs:detail", args=[slug, job.pk]),
        )
        for job in rows[: MOST_JOBS if words else MOST_OTHERS]
    ]


def _groups(project: Project, slug: str, words: list[str]) -> list[SearchResult]:
    rows = JobGroup.objects.filter(_all_in("name", words), project=project).order_by("-created_at")
    return [
        SearchResult(group.name, "Group", "collection", reverse("comparing:group", args=[slug, group.pk]))
        for group in rows[:MOST_OTHERS]
    ]


def _acts(membership: Membership, slug: str, with_presets: bool) -> list[SearchResult]:
    if not membership.allows("editor"):
        return []
    new_job = reverse("jobs:new", args=[slug])
    acts = [
        SearchResult("New job", "From a preset, or your own", "plus-lg", new_job),
        SearchResult(
            "New sweep",
            "Many values, one budget",
            "grid-3x3-gap",
            reverse("comparing:sweep_new", args=[slug]),
        ),
        SearchResult("Set a budget", "Above many jobs", "piggy-bank", reverse("budgets:new", args=[slug])),
        SearchResult(
            "Connect a cloud", "AWS or Azure", "cloud-plus", reverse("connections:list", args=[slug])
        ),
    ]
    if with_presets:
        acts += [
            SearchResult(f"New job: {one.title}", one.description, "plus-lg", f"{new_job}?preset={one.name}")
            for one in presets().values()
        ]
    return acts


def _places(slug: str) -> list[SearchResult]:
    rows = [
        SearchResult(
            place.word, "", place.icon, reverse(place.url_name, args=[slug] if place.of_project else [])
        )
        for place in PLACES
    ]
    return [
        *rows,
        SearchResult("Alerts", "What happened", "bell", reverse("alerts:list", args=[slug])),
        SearchResult("Channels", "Where alerts go", "broadcast", reverse("alerts:channels", args=[slug])),
        SearchResult(
            "Cloud bills", "Beside what we metered", "receipt", reverse("reports:bills", args=[slug])
        ),
        SearchResult(
            "Shared links", "Who sees what from outside", "link-45deg", reverse("sharing:links", args=[slug])
        ),
        SearchResult("Projects", "Make, rename, archive", "folder2", reverse("projects:list")),
        SearchResult("Trackers", "MLflow and W&B", "graph-up", reverse("trackers:list", args=[slug])),
        SearchResult("API tokens", "For programs", "key", reverse("api:tokens")),
        SearchResult("API reference", "Every address of the API", "braces", reverse("api:reference")),
    ]


def _fitting(rows: list[SearchResult], words: list[str]) -> list[SearchResult]:
    """The results that contain all words: exact names first, then titles with the words."""
    fit = [one for one in rows if all(word in f"{one.title} {one.detail}".lower() for word in words)]
    fit.sort(key=lambda one: (not _called(one, words), not all(word in one.title.lower() for word in words)))
    return fit[:MOST_JOBS] if words else fit


def _all_in(field: str, words: list[str]) -> Q:
    fits = Q()
    for word in words:
        fits &= Q(**{f"{field}__icontains": word})
    return fits
