"""What a report says about a job besides its cost, read from the job's row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cloud.platforms.local import LocalOptions
from cloud.platforms.model import PlatformModel
from cloud.platforms.options import PLATFORMS
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers.quantity import ProfileError
from training.tasks.kinds import facts_of as training_facts_of
from training.tasks.training import TrainingFacts
from webapp.accounts.models import Project
from webapp.jobs.models import Job
from webapp.jobs.scores import score_of
from webapp.reports.report_query import Question
from webapp.reports.sold_services import AWS, LOCAL, MICROSOFT

OF_NO_JOB = "Of no single job"
_AT_ONCE = 500
_PROVIDERS = {"aws": AWS, "azure": MICROSOFT}


@dataclass(frozen=True)
class JobFacts:
    """A job as reports name it. `provider` bills for what it runs on.

    `score` is of an evaluation or of training as `scored_by` says. `function_memory_mb`: the size of
    the functions that it calls in an account; 0 if it calls none.
    """

    id: str
    name: str
    project_id: int
    project: str
    cloud: str
    provider: str
    user: str = ""
    region: str = ""
    connection: str = ""
    function_memory_mb: int = 0
    algorithm: str = ""
    subject: str = ""
    total_progress: int = 0
    actors: int = 0
    score: float | None = None
    scored_by: str = ""
    prices: str = "actual"
    tags: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def passes(self, question: Question) -> bool:
        """Whether the job passes the question's filters."""
        return (
            question.job in ("", self.id)
            and question.user in ("", self.user)
            and question.cloud in ("", self.cloud)
            and (not question.tag or question.tag in self.tags)
        )


def facts_of(job_ids: Iterable[str]) -> dict[str, JobFacts]:
    """Each job's facts by its id."""
    wanted = sorted(set(job_ids))
    facts: dict[str, JobFacts] = {}
    for begin in range(0, len(wanted), _AT_ONCE):
        jobs = Job.objects.filter(pk__in=wanted[begin : begin + _AT_ONCE])
        for job in jobs.select_related("project", "created_by").prefetch_related("tags", "groups"):
            facts[job.pk] = _facts(job)
    return facts


def facts_of_no_job(project: Project, provider: str) -> JobFacts:
    """Placeholder for what a cloud charges the project without naming a job."""
    cloud = {AWS: "AWS", MICROSOFT: "Azure"}.get(provider, provider)
    return JobFacts("", OF_NO_JOB, project.pk, project.name, cloud, provider)


def _facts(job: Job) -> JobFacts:
    # The stored document, not the validated one: reports include jobs that an older version made.
    platform: Mapping[str, Any] = job.spec.get("platform") or {}
    training: Mapping[str, Any] = job.spec.get("training") or {}
    cloud, provider, home = _cloud(platform)
    score, facts = score_of(job), _training_facts(training)
    return JobFacts(
        id=job.pk,
        name=job.name,
        project_id=job.project_id,
        project=job.project.name,
        user=job.created_by.email,
        cloud=cloud,
        provider=provider,
        region=str(platform.get("region") or home),
        connection=str(platform.get("connection") or ""),
        function_memory_mb=_function_memory_mb(platform, facts),
        algorithm=(facts.method if facts else "") or str(training.get("kind") or ""),
        subject=facts.subject if facts else "",
        total_progress=job.total_progress,
        actors=job.actors,
        score=score.value,
        scored_by=score.basis,
        prices=job.unreal or "actual",
        tags=tuple(tag.name for tag in job.tags.all()),
        groups=tuple(sorted(group.name for group in job.groups.all())),
    )


def _training_facts(training: Mapping[str, Any]) -> TrainingFacts | None:
    """Return what the stored document says, whatever its kind; None if this release cannot read it."""
    try:
        return training_facts_of(training)
    except ValueError:
        return None


def _platform_of(platform: Mapping[str, Any]) -> type[PlatformModel]:
    return PLATFORMS.get(str(platform.get("kind")), LocalOptions)


def _function_memory_mb(platform: Mapping[str, Any], facts: TrainingFacts | None) -> int:
    return facts.memory_mb if facts and _platform_of(platform).actor_word == "function" else 0


def _cloud(platform: Mapping[str, Any]) -> tuple[str, str, str]:
    """The cloud's name, its provider, and its region if the job names none."""
    options = _platform_of(platform)
    if options.is_simulated:
        return _simulated(str(platform.get("profile") or "lambda"))
    if options.cloud is None:
        return options.report_name, LOCAL, ""
    return options.report_name, _PROVIDERS[options.cloud], str(options.model_fields["region"].default)


def _simulated(profile: str) -> tuple[str, str, str]:
    try:
        known = profiles.load(profile)
    except ProfileError:
        return profile, AWS, ""
    return known.title, _PROVIDERS[known.provider], known.region
