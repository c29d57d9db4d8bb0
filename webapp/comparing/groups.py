"""What is compared: sides, each one spec with one or several seeds. A side is a job or a group of jobs; groups have a
list of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, QuerySet

from training.tasks.score import Score
from webapp.accounts.models import Project
from webapp.formatting import read_whole
from webapp.job_states import ACTIVE, TERMINAL
from webapp.jobs.billing.bill_panel import cap_of_jobs
from webapp.jobs.form.field_titles import title_at, variant_titles
from webapp.jobs.list.seed_rows import state_of
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.queries import TRAINING_KIND
from webapp.jobs.scores import named_mean_score
from webapp.jobs.seed_groups import without_seed

MOST_SIDES = 10
MOST_JOBS = 100
_LABELS = ("name", "tags", "group", "budget_usd", "at_line", "films", "schema_version")
_SEEDS = {("training", "seed"), ("platform", "seed")}


@dataclass(frozen=True)
class Side:
    """`key` names it in an address; `place` (from 1) is its colour and its dash on the whole page."""

    key: str
    name: str
    jobs: tuple[Job, ...]
    place: int
    group: JobGroup | None = None

    @property
    def running(self) -> int:
        """How many of its runs have not ended."""
        return sum(job.observed not in TERMINAL for job in self.jobs)

    @property
    def score(self) -> Score:
        """What its runs are judged by."""
        return self.jobs[0].training_facts.score

    @property
    def toward(self) -> int:
        """1 where more of the score is better, −1 where less is."""
        return 1 if self.score.higher_is_better else -1

    @property
    def unreal(self) -> str:
        """The word for money that no one pays, if any of the side's money is of that kind."""
        return next((job.unreal for job in self.jobs if job.unreal), "")


@dataclass(frozen=True)
class Picked:
    """The sides of an address, and sentences about what was left out."""

    sides: tuple[Side, ...]
    left_out: tuple[str, ...] = ()

    @property
    def jobs(self) -> list[Job]:
        return [job for side in self.sides for job in side.jobs]


def picked(project: Project, keys: Sequence[str]) -> Picked:
    """The sides that an address names (`job_…`, `group_12`), in its order. A group with several specs becomes several
    sides. Jobs of other projects are never found."""
    keys = list(dict.fromkeys(keys))
    named = [read_whole(key.removeprefix("group_")) for key in keys if key.startswith("group_")]
    numbers = [number for number in named if number is not None]
    groups = {
        f"group_{group.pk}": group for group in JobGroup.objects.filter(project=project, pk__in=numbers)
    }
    links = list(
        JobGroup.jobs.through.objects.filter(
            jobgroup__in=[group.pk for group in groups.values()]
        ).values_list("jobgroup_id", "job_id")
    )
    jobs = _jobs_of(project, {*keys, *(job_id for _, job_id in links)})
    members: dict[str, list[Job]] = {key: [] for key in groups}
    for group_id, job_id in links:
        if job_id in jobs:
            members[f"group_{group_id}"].append(jobs[job_id])
    for of_group in members.values():
        of_group.sort(key=lambda job: (job.created_at, job.pk))
    chosen: list[tuple[str, str, list[Job], JobGroup | None]] = []
    for key in keys:
        if key in jobs:
            chosen.append((key, jobs[key].name, [jobs[key]], None))
        elif key in groups:
            chosen += _of_group(key, groups[key], members[key])
    return _limited(chosen, sum(key not in jobs and key not in groups for key in keys))


def of_group(project: Project, group: JobGroup) -> Picked:
    """A side for each spec in a group, with its seeds."""
    return picked(project, [f"group_{group.pk}"])


def by_question(jobs: Iterable[Job]) -> list[list[Job]]:
    """Group jobs that differ only in their seed, in the order of their first launch."""
    alike: dict[str, list[Job]] = {}
    for job in jobs:
        alike.setdefault(json.dumps(question_of(job.spec), sort_keys=True), []).append(job)
    return list(alike.values())


def question_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a spec by path that decide what is learned and what it costs; names, money and seeds left out."""
    flat = flattened({key: value for key, value in spec.items() if key not in _LABELS})
    return {path: value for path, value in flat.items() if tuple(path.split(".")) not in _SEEDS}


def flattened(document: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """A document's values by their dotted path."""
    flat: dict[str, Any] = {}
    for key, value in document.items():
        path = f"{above}{key}"
        if isinstance(value, Mapping):
            flat |= flattened(value, f"{path}.")
        else:
            flat[path] = value
    return flat


def different_paths(questions: Sequence[Mapping[str, Any]]) -> list[str]:
    """The paths whose values differ, in the order of the document."""
    paths = dict.fromkeys(path for question in questions for path in question)
    return [path for path in paths if len({json.dumps(question.get(path)) for question in questions}) > 1]


def format_value(value: Any) -> str:
    """A value of a spec as people read it."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(format_value(item) for item in value) or "none"
    return str(value)


def _of_group(
    key: str, group: JobGroup, jobs: Sequence[Job]
) -> list[tuple[str, str, list[Job], JobGroup | None]]:
    questions = by_question(jobs)
    if len(questions) <= 1:
        return [(key, group.name, list(jobs), group)] if jobs else []
    documents = [question_of(question[0].spec) for question in questions]
    paths = different_paths(documents)
    return [
        (
            key,
            ", ".join(_field_in_words(path, each[path], question[0].spec) for path in paths if path in each),
            question,
            group,
        )
        for question, each in zip(questions, documents, strict=True)
    ]


def _field_in_words(path: str, value: Any, spec: Mapping[str, Any]) -> str:
    """A field and its value as the form has them: "Learning rate 0.001"."""
    shown = format_value(value)
    return f"{title_at(path, [spec])} {variant_titles(path).get(shown, shown)}"


def _limited(chosen: Sequence[tuple[str, str, list[Job], JobGroup | None]], unknown: int) -> Picked:
    left_out = []
    if unknown:
        left_out.append(f"{unknown} of the chosen jobs and groups are not in this project.")
    kept: list[Side] = []
    jobs = 0
    for key, name, members, group in chosen:
        jobs += len(members)
        if len(kept) < MOST_SIDES and jobs <= MOST_JOBS:
            kept.append(Side(key, name, tuple(members), len(kept) + 1, group))
    if len(kept) < len(chosen):
        left_out.append(
            f"{len(kept)} of {len(chosen)} are shown: at most {MOST_SIDES} sides and {MOST_JOBS} runs fit."
        )
    return Picked(tuple(kept), tuple(left_out))


def _jobs_of(project: Project, ids: Iterable[str]) -> dict[str, Job]:
    """The project's jobs among these ids. The query is by id alone: with the project as well, a database without
    statistics scans all of its jobs."""
    rows = Job.objects.filter(pk__in=ids, deleted_at=None).select_related("account").defer("summary", "note")
    return {job.pk: job for job in rows if job.project_id == project.pk}


def list_groups(project: Project) -> QuerySet[JobGroup]:
    """The project's groups that hold a job of the list, newest first."""
    listed = JobGroup.objects.filter(project=project, jobs__archived_at=None, jobs__deleted_at=None)
    return listed.distinct().order_by("-created_at", "-pk")


def group_rows(groups: Sequence[JobGroup]) -> list[dict[str, Any]]:
    """What the list of groups shows of each, in three queries for all."""
    jobs = Job.objects.filter(groups__in=groups, archived_at=None, deleted_at=None)
    members: dict[int, list[Job]] = {group.pk: [] for group in groups}
    rows = jobs.annotate(group_id=F("groups")).select_related("account").prefetch_related("account__budgets")
    for job in rows.defer("spec", "summary", "note").annotate(training_kind=TRAINING_KIND):
        members[job.group_id].append(job)
    return [_group_row(group, members[group.pk]) for group in groups if members[group.pk]]


def _group_row(group: JobGroup, jobs: Sequence[Job]) -> dict[str, Any]:
    accounts, over = [job.account for job in jobs], all(job.observed in TERMINAL for job in jobs)
    return {
        "group": group,
        "runs": len(jobs),
        "questions": len({without_seed(job.name) for job in jobs}),
        "state": state_of(jobs),
        "active": any(job.observed in ACTIVE for job in jobs),
        "mean": named_mean_score(jobs),
        "spent": sum(account.spent_picodollars + account.overrun_picodollars for account in accounts),
        "limit": sum(account.limit_picodollars for account in accounts) if over else cap_of_jobs(jobs).total,
        "unreal": next((job.unreal for job in jobs if job.unreal), ""),
    }
