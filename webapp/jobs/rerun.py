"""Running a job again: with the same seed, to check reproducibility, or with an unused one."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.jobs.lineage import Source, repeated_fork_source
from webapp.jobs.models import Job, Way
from webapp.jobs.seed_groups import with_seed, without_seed
from webapp.jobs.services import submit_job


def run_again(
    *, job: Job, user: Any, new_seed: bool, key: str | None = None, clock: Clock = SYSTEM_CLOCK
) -> Job:
    """Launch a job like `job`, with the budget of its launch, outside its group. Raises SpecRefused.

    A repetition of a fork starts from the same checkpoint.
    """
    spec = job.parsed_spec().model_copy(update={"group": ""})
    if new_seed:
        spec = with_seed(spec.model_copy(update={"name": without_seed(spec.name)}), _unused_seed(job))
    made_from = repeated_fork_source(job) or Source(job, Way.AGAIN)
    return submit_job(
        project=job.project, user=user, spec=spec, idempotency_key=key, made_from=made_from, clock=clock
    )


def _unused_seed(job: Job) -> int:
    """Return one more than the largest seed of the job, its group and its repetitions."""
    alike = Q(pk=job.pk) | Q(origin__of=job) | Q(groups__in=job.groups.all())
    specs = Job.objects.filter(alike).values_list("spec__training__seed", flat=True)
    return max(int(seed) for seed in specs) + 1
