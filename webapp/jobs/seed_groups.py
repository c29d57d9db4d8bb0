"""Runs that differ only in their seed: a group launched together, seeds added later, one job run again."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import Q

from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import read_whole
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.launch import launch_budget
from webapp.jobs.launch.preflight import training_obstacle
from webapp.jobs.lineage import Source, repeated_fork_source
from webapp.jobs.models import Job, JobGroup, OriginKind
from webapp.jobs.services import SpecRefused, submit_job
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import picodollars
from webapp.money.budgets import change_budget, create_budget
from webapp.money.models import Budget, BudgetScope

MOST_SEEDS = 50
LARGEST_SEED = 2**31 - 1
_LONGEST_NAME = 100


def parse_seed_count(text: str) -> int:
    """Return the number of seeds in the form; 1 for an empty field. Raises SpecRefused."""
    text = text.strip() or "1"
    count = read_whole(text, MOST_SEEDS)
    if not count:
        sentence = f"Seeds (seeds) must be a whole number between 1 and {MOST_SEEDS}; {text[:20]} was given."
        raise SpecRefused([SpecProblem("seeds", sentence)])
    return count


def with_seed(spec: JobSpec, seed: int) -> JobSpec:
    """Return the same spec with another seed.

    A simulated cloud uses it too, so times and costs vary between seeds as they do between days. Raises SpecRefused
    where no more seeds are left: a spec could not be read with a larger one.
    """
    if seed > LARGEST_SEED:
        sentence = f"Seed (training.seed) must be at most {LARGEST_SEED:,}: begin with a smaller one."
        raise SpecRefused([SpecProblem("training.seed", sentence)])
    training = spec.training.model_copy(update={"seed": seed})
    platform = spec.platform
    if "seed" in type(platform).model_fields:
        platform = platform.model_copy(update={"seed": seed})
    name = f"{spec.name[: _LONGEST_NAME - 12]}, seed {seed}"
    return spec.model_copy(update={"name": name, "training": training, "platform": platform})


def launch_seeds(
    *,
    project: Project,
    user: User,
    spec: JobSpec,
    count: int,
    key: str | None = None,
    made_from: Source | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> JobGroup:
    """Launch `count` jobs from the spec's seed on, as one group under one budget; all or none.

    The spec's budget is for all of them together. Each gets the same part, rounded down, and not what others leave: so
    no seed's end depends on how fast another one spends. Raises SpecRefused. The same key returns the same group.
    """
    if not 2 <= count <= MOST_SEEDS:
        sentence = f"Seeds (seeds) must be between 1 and {MOST_SEEDS}; {count} were given."
        raise SpecRefused([SpecProblem("seeds", sentence)])
    if key and (known := JobGroup.objects.filter(project=project, jobs__idempotency_key=f"{key}:0").first()):
        known.replayed = True
        return known
    if refused := launch_budget.too_little_for_seeds(spec, count):
        raise SpecRefused(refused)
    first, part = spec.training.seed, {"budget_usd": launch_budget.part_of(spec.budget_usd, count)}
    name = spec.group or free_group_name(project, spec.name)
    seeds = range(first, first + count)
    specs = [with_seed(spec, seed).model_copy(update={"group": name, **part}) for seed in seeds]
    training_obstacle(spec.training)  # measured here and remembered, before rows are locked
    with transaction.atomic():
        group, is_new = JobGroup.objects.get_or_create(
            project=project, name=name, defaults={"created_at": clock.now(), "of_seeds": True}
        )
        if is_new:
            share_budget(group, "Seeds", picodollars(spec.budget_usd), user, clock)
        elif group.of_seeds:
            _grow(group, picodollars(spec.budget_usd), clock)
        jobs = launch_together(
            project=project, user=user, specs=specs, key=key, made_from=made_from, clock=clock
        )
    group.replayed = all(job.replayed for job in jobs)
    return group


def share_budget(group: JobGroup, word: str, limit_picodollars: int, user: User, clock: Clock) -> None:
    """Create one budget for all jobs of a group, with `word` before the group's name."""
    create_budget(
        project=group.project,
        name=f"{word}: {group.name}"[:80],
        limit_picodollars=limit_picodollars,
        scope=BudgetScope.GROUP,
        of={"group": group},
        user=user,
        clock=clock,
    )


def _grow(group: JobGroup, more_picodollars: int, clock: Clock) -> None:
    """Raise the group's budget for more seeds, if it is still open."""
    for budget in Budget.objects.filter(group=group, closed_at=None):
        limit = budget.limit_picodollars + more_picodollars
        change_budget(budget=budget, clock=clock, limit_picodollars=limit)


@transaction.atomic
def more_seeds(
    *, user: User, like: Job, count: int, key: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> JobGroup:
    """Launch `count` more runs with seeds new to the job's group; a job without a group gets one.

    Raises SpecRefused; nothing is changed then.
    """
    if not 1 <= count <= MOST_SEEDS:
        sentence = f"Between 1 and {MOST_SEEDS} seeds can be added at once; {count} were requested."
        raise SpecRefused([SpecProblem("seeds", sentence)])
    group = like.groups.order_by("pk").first() or _create_group(like, clock)
    taken = [job.spec["training"]["seed"] for job in group.jobs.only("spec")]
    spec = like.parsed_spec().model_copy(update={"group": group.name, "name": without_seed(like.name)})
    specs = [with_seed(spec, max(taken) + at) for at in range(1, count + 1)]
    if group.of_seeds and not (key and Job.objects.filter(idempotency_key=f"{key}:0").exists()):
        _grow(group, count * picodollars(spec.budget_usd), clock)
    made_from = repeated_fork_source(like)
    jobs = launch_together(
        project=like.project, user=user, specs=specs, key=key, made_from=made_from, clock=clock
    )
    group.replayed = all(job.replayed for job in jobs)
    return group


def launch_together(
    *,
    project: Project,
    user: User,
    specs: Sequence[JobSpec],
    key: str | None,
    whole_budget: bool = False,
    made_from: Source | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> list[Job]:
    """Launch all of these jobs, or none and raise SpecRefused."""
    # A forecast takes a second and is cached: compute it here, before rows are locked.
    launch_budget.needs_of(project, specs[0], whole_budget=whole_budget)
    with transaction.atomic():
        return [
            submit_job(
                project=project,
                user=user,
                spec=spec,
                idempotency_key=f"{key}:{at}" if key else None,
                whole_budget=whole_budget,
                made_from=made_from,
                clock=clock,
            )
            for at, spec in enumerate(specs)
        ]


def free_group_name(project: Project, wanted: str) -> str:
    """Return the name, with a number if the project has such a group already."""
    taken = set(JobGroup.objects.filter(project=project).values_list("name", flat=True))
    tries = (wanted if at == 1 else f"{wanted[: _LONGEST_NAME - 5]} {at}" for at in range(1, len(taken) + 2))
    return next(name for name in tries if name not in taken)


def _create_group(like: Job, clock: Clock) -> JobGroup:
    name = free_group_name(like.project, without_seed(like.name))
    group = JobGroup.objects.create(project=like.project, name=name, created_at=clock.now())
    like.groups.add(group)
    return group


def without_seed(name: str) -> str:
    """Return a job's name without its seed."""
    stem, mark, rest = name.rpartition(", seed ")
    return stem if mark and rest.isdecimal() else name


def run_again(
    *, job: Job, user: User, new_seed: bool, key: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> Job:
    """Launch a job like `job`, with the budget of its launch, outside its group. Raises SpecRefused.

    A repetition of a fork starts from the same checkpoint.
    """
    spec = job.parsed_spec().model_copy(update={"group": ""})
    if new_seed:
        spec = with_seed(spec.model_copy(update={"name": without_seed(spec.name)}), _unused_seed(job))
    made_from = repeated_fork_source(job) or Source(job, OriginKind.AGAIN)
    return submit_job(
        project=job.project, user=user, spec=spec, idempotency_key=key, made_from=made_from, clock=clock
    )


def _unused_seed(job: Job) -> int:
    """Return one more than the largest seed of the job, its group and its repetitions."""
    alike = Q(pk=job.pk) | Q(origin__of=job) | Q(groups__in=job.groups.all())
    specs = Job.objects.filter(alike).values_list("spec__training__seed", flat=True)
    return max(int(seed) for seed in specs) + 1
