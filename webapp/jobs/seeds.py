"""Runs of one question that differ in their seed only, as a group: begun together, or more of them later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs import launching
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.problems import Problem
from webapp.jobs.services import SpecRefused, submit_job
from webapp.jobs.spec import JobSpec

MOST_SEEDS = 50
_LONGEST_NAME = 100


def seeds_asked(text: str) -> int:
    """How many seeds a form asks for; 1 for an empty field, SpecRefused for what is no such number."""
    text = text.strip() or "1"
    if not text.isdecimal() or not 1 <= int(text) <= MOST_SEEDS:
        sentence = f"Seeds (seeds) must be a whole number between 1 and {MOST_SEEDS}; {text[:20]} was given."
        raise SpecRefused([Problem("seeds", sentence)])
    return int(text)


def with_seed(spec: JobSpec, seed: int) -> JobSpec:
    """The same job from another seed. A simulated cloud takes its chance from it too, so that times and costs of
    several seeds are as far apart as those of several days."""
    training = spec.training.model_copy(update={"seed": seed})
    platform = spec.platform
    if "seed" in type(platform).model_fields:
        platform = platform.model_copy(update={"seed": seed})
    name = f"{spec.name[: _LONGEST_NAME - 12]}, seed {seed}"
    return spec.model_copy(update={"name": name, "training": training, "platform": platform})


def launch_seeds(
    *, project: Any, user: Any, spec: JobSpec, count: int, key: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> JobGroup:
    """`count` jobs from the spec's seed on, as one group, each with the spec's budget; all of them or none.

    SpecRefused says why not. The same key gives the same group again.
    """
    if not 2 <= count <= MOST_SEEDS:
        sentence = f"Seeds (seeds) must be between 1 and {MOST_SEEDS}; {count} were given."
        raise SpecRefused([Problem("seeds", sentence)])
    first = spec.training.seed
    name = spec.group or free_group_name(project, spec.name)
    specs = [with_seed(spec, seed).model_copy(update={"group": name}) for seed in range(first, first + count)]
    jobs = launch_together(project=project, user=user, specs=specs, key=key, clock=clock)
    group: JobGroup = jobs[0].groups.get()
    return group


@transaction.atomic
def more_seeds(
    *, user: Any, like: Job, count: int, key: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> JobGroup:
    """`count` more runs of a job's question, with seeds that none of its group has had; a job of no group founds one.

    SpecRefused if they cannot be launched; nothing is changed then.
    """
    if not 1 <= count <= MOST_SEEDS:
        sentence = f"Between 1 and {MOST_SEEDS} seeds are added at once; {count} were asked for."
        raise SpecRefused([Problem("seeds", sentence)])
    group = like.groups.order_by("pk").first() or _founded(like, clock)
    taken = [job.spec["training"]["seed"] for job in group.jobs.only("spec")]
    spec = like.parsed_spec().model_copy(update={"group": group.name, "name": _without_seed(like.name)})
    specs = [with_seed(spec, max(taken) + at) for at in range(1, count + 1)]
    launch_together(project=like.project, user=user, specs=specs, key=key, clock=clock)
    return group


def launch_together(
    *,
    project: Any,
    user: Any,
    specs: Sequence[JobSpec],
    key: str | None,
    whole_budget: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> list[Job]:
    """All of these jobs, or SpecRefused and none."""
    # A forecast takes a second and is kept: it is made here, before rows are locked.
    launching.needs_of(project, specs[0], whole_budget=whole_budget)
    with transaction.atomic():
        return [
            submit_job(
                project=project,
                user=user,
                spec=spec,
                idempotency_key=f"{key}:{at}" if key else None,
                whole_budget=whole_budget,
                clock=clock,
            )
            for at, spec in enumerate(specs)
        ]


def free_group_name(project: Any, wanted: str) -> str:
    """The name, or with a number behind it where the project has such a group already."""
    taken = set(JobGroup.objects.filter(project=project).values_list("name", flat=True))
    tries = (wanted if at == 1 else f"{wanted[: _LONGEST_NAME - 5]} {at}" for at in range(1, len(taken) + 2))
    return next(name for name in tries if name not in taken)


def _founded(like: Job, clock: Clock) -> JobGroup:
    name = free_group_name(like.project, _without_seed(like.name))
    group = JobGroup.objects.create(project=like.project, name=name, created_at=clock.now())
    like.groups.add(group)
    return group


def _without_seed(name: str) -> str:
    stem, found, rest = name.rpartition(", seed ")
    return stem if found and rest.isdecimal() else name
