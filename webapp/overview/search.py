"""The places of the navigation rail, and search for the palette: actions, places, jobs and groups of a project that
contain all typed words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from django.db.models import Q
from django.urls import reverse

from webapp.accounts.models import Membership
from webapp.jobs.form.presets import presets
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.reasons import look_of_job


class Place(NamedTuple):
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
    Place("overview", "Overview", "speedometer2", "o", "overview:page", in_bar=True),
    Place("jobs", "Jobs", "play-btn", "j", "jobs:list", in_bar=True),
    Place("data", "Data", "table", "d", "datasets:list"),
    Place("compare", "Compare", "intersect", "c", "comparing:page"),
    Place("budgets", "Budgets", "piggy-bank", "b", "budgets:list", in_bar=True),
    Place("reports", "Reports", "bar-chart", "r", "reports:page"),
    Place("clouds", "Clouds", "cloud", "l", "connections:list", in_bar=True),
    Place("schedulers", "Schedulers", "diagram-3", "s", "schedulers:list"),
    Place("papers", "Papers", "journal-text", "p", "papers:list", of_project=False),
    Place("members", "Members", "people", "m", "accounts:members"),
    Place("account", "Account", "gear", "a", "accounts:account", of_project=False, at_foot=True),
)


MOST_JOBS = 8
MOST_OTHERS = 5


@dataclass(frozen=True)
class Found:
    """One line: following it goes to `url`."""

    title: str
    detail: str
    icon: str
    url: str


@dataclass(frozen=True)
class Kind:
    title: str
    found: list[Found]


def find(membership: Membership, text: str) -> list[Kind]:
    """Results by kind, without empty kinds; exact names come first.

    Without words: what was launched last, what can be done, and all places.
    """
    words = text.lower().split()[:8]
    slug = membership.project.slug
    kinds = [
        Kind("Jobs", _jobs(membership.project, slug, words)),
        Kind("Groups and sweeps", _groups(membership.project, slug, words) if words else []),
        Kind("To do", _fitting(_acts(membership, slug, bool(words)), words)),
        Kind("Places", _fitting(_places(slug), words)),
    ]
    kinds = [kind for kind in kinds if kind.found]
    return sorted(kinds, key=lambda kind: not _called(kind.found[0], words))


def _called(one: Found, words: list[str]) -> bool:
    return one.title.lower() == " ".join(words)


def _jobs(project: Any, slug: str, words: list[str]) -> list[Found]:
    rows = Job.objects.filter(
        _all_in("name", words) | Q(pk=" ".join(words)), project=project, archived_at=None
    )
    rows = rows.only("name", "observed", "reason_code", "environment").order_by("-created_at")
    return [
        Found(
            job.name,
            f"{look_of_job(job).word} · {job.environment}" if job.environment else look_of_job(job).word,
            look_of_job(job).icon,
            reverse("jobs:detail", args=[slug, job.pk]),
        )
        for job in rows[: MOST_JOBS if words else MOST_OTHERS]
    ]


def _groups(project: Any, slug: str, words: list[str]) -> list[Found]:
    rows = JobGroup.objects.filter(_all_in("name", words), project=project).order_by("-created_at")
    return [
        Found(group.name, "Group", "collection", reverse("comparing:group", args=[slug, group.pk]))
        for group in rows[:MOST_OTHERS]
    ]


def _acts(membership: Membership, slug: str, with_presets: bool) -> list[Found]:
    if not membership.allows("editor"):
        return []
    new_job = reverse("jobs:new", args=[slug])
    acts = [
        Found("New job", "From a preset, or your own", "plus-lg", new_job),
        Found(
            "New sweep",
            "Many values, one budget",
            "grid-3x3-gap",
            reverse("comparing:sweep_new", args=[slug]),
        ),
        Found("Set a budget", "Above many jobs", "piggy-bank", reverse("budgets:new", args=[slug])),
        Found("Connect a cloud", "AWS or Azure", "cloud-plus", reverse("connections:list", args=[slug])),
    ]
    if with_presets:
        acts += [
            Found(f"New job: {one.title}", one.description, "plus-lg", f"{new_job}?preset={one.name}")
            for one in presets().values()
        ]
    return acts


def _places(slug: str) -> list[Found]:
    rows = [
        Found(place.word, "", place.icon, reverse(place.url_name, args=[slug] if place.of_project else []))
        for place in PLACES
    ]
    return [
        *rows,
        Found("Alerts", "What happened", "bell", reverse("alerts:list", args=[slug])),
        Found("Channels", "Where alerts go", "broadcast", reverse("alerts:channels", args=[slug])),
        Found("Cloud bills", "Beside what we metered", "receipt", reverse("reports:bills", args=[slug])),
        Found(
            "Shared links", "Who sees what from outside", "link-45deg", reverse("sharing:links", args=[slug])
        ),
        Found("Projects", "Make, rename, archive", "folder2", reverse("projects:list")),
        Found("Trackers", "MLflow and W&B", "graph-up", reverse("trackers:list", args=[slug])),
        Found("API tokens", "For programs", "key", reverse("api:tokens")),
        Found("API reference", "Every address of the API", "braces", reverse("api:reference")),
    ]


def _fitting(rows: list[Found], words: list[str]) -> list[Found]:
    """The results that contain all words: exact names first, then titles with the words."""
    fit = [one for one in rows if all(word in f"{one.title} {one.detail}".lower() for word in words)]
    fit.sort(key=lambda one: (not _called(one, words), not all(word in one.title.lower() for word in words)))
    return fit[:MOST_JOBS] if words else fit


def _all_in(field: str, words: list[str]) -> Q:
    fits = Q()
    for word in words:
        fits &= Q(**{f"{field}__icontains": word})
    return fits
