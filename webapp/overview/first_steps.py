"""The first steps in a project. Each is ticked once the database shows that it was taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef
from django.urls import reverse

from cloud.platforms.options import COMPUTE_HERE
from webapp.accounts.models import Membership, Project
from webapp.connections.models import Connection
from webapp.job_states import ACTIVE
from webapp.jobs.models import Job
from webapp.money.models import Budget

NO_ACCOUNT_NEEDED = ("", *COMPUTE_HERE)
"""Clouds of jobs that run without an account."""


@dataclass(frozen=True)
class FirstStep:
    title: str
    words: str
    url: str
    act: str
    done: bool


@dataclass(frozen=True)
class Guide:
    """`next`: the first step that was not taken; None once all were."""

    steps: tuple[FirstStep, ...]
    put_away: bool

    @property
    def done(self) -> int:
        return sum(step.done for step in self.steps)

    @property
    def next(self) -> FirstStep | None:
        return next((step for step in self.steps if not step.done), None)

    @property
    def over(self) -> bool:
        return self.next is None


def guide_for(membership: Membership) -> Guide:
    """The steps of this person's project. The first leads to a demo that runs already."""
    taken = _taken(membership.project)
    slug = membership.project.slug
    running = None if taken["demo"] else _running_demo(membership.project)
    clouds = reverse("connections:list", args=[slug])
    steps = (
        FirstStep(
            "Watch a job on the simulated cloud",
            "Real learning, made-up functions and prices. It costs nothing and takes a minute to move.",
            reverse("jobs:detail", args=[slug, running])
            if running
            else f"{reverse('jobs:new', args=[slug])}?preset=hopper-simulated",
            "Watch the demo" if running else "Launch the demo",
            taken["demo"],
        ),
        FirstStep(
            "Connect a cloud",
            "A role or a key with the rights that are listed there, and no others.",
            clouds,
            "Connect AWS or Azure",
            taken["connected"],
        ),
        FirstStep(
            "Test the connection",
            "Each right on a line of its own, with what to do where one is missing.",
            clouds,
            "Test it",
            taken["tested"],
        ),
        FirstStep(
            "Set a budget",
            "For all jobs of this project, monthly or in total. Jobs pause before its limit.",
            reverse("budgets:new", args=[slug]),
            "Set a budget",
            taken["budget"],
        ),
        FirstStep(
            "Launch on your cloud",
            "The form says beforehand what it will cost, and the job cannot cost more than its limit.",
            reverse("jobs:new", args=[slug]),
            "New job",
            taken["launched"],
        ),
    )
    return Guide(steps, membership.guide_put_away_at is not None)


def _running_demo(project: Project) -> str | None:
    rows = Job.objects.filter(project=project, simulated=True, observed__in=ACTIVE, archived_at=None)
    return rows.order_by("-created_at").values_list("pk", flat=True).first()


def _taken(project: Project) -> dict[str, bool]:
    here = {"project": OuterRef("pk")}
    jobs = Job.objects.filter(**here)
    connections = Connection.objects.filter(**here)
    steps: dict[str, Any] = {
        "demo": Exists(jobs.filter(simulated=True, round_no__gt=0)),
        "connected": Exists(connections),
        "tested": Exists(connections.filter(test_report__ok=True)),
        "budget": Exists(Budget.objects.filter(**here, closed_at=None)),
        "launched": Exists(jobs.exclude(cloud__in=NO_ACCOUNT_NEEDED)),
    }
    taken: Mapping[str, Any] = Project.objects.filter(pk=project.pk).values(**steps).get()
    return dict(taken)
