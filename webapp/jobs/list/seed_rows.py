"""Runs of a group that differ only in their seed: one row of the list, which unfolds into its runs."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from webapp.accounts.models import Project
from webapp.formatting import Pill
from webapp.jobs.models import Job, JobGroup
from webapp.jobs.reasons import look_of_job
from webapp.jobs.seed_groups import without_seed

_URGENT = ("failed", "budget", "warning", "running", "waiting", "ok")
"""Tones of a row with runs in several states: that of its most urgent one."""


@dataclass(frozen=True)
class Seeds:
    """The found runs of one question in a group, in the order of the list."""

    group_id: int
    name: str
    job_ids: tuple[str, ...]

    @property
    def key(self) -> str:
        """Its name in an address."""
        return f"{self.group_id}-{zlib.crc32(self.name.encode()):08x}"


class Fold(NamedTuple):
    """How a row of seeds is drawn: `address` folds or unfolds it, `group_address` is its group's page."""

    is_open: bool
    address: str
    group_address: str


class Folding(NamedTuple):
    """How a list of jobs is folded: seeds by the id of their first run, and the ids of the other runs, not listed."""

    seeds: Mapping[str, Seeds] = {}
    hidden: frozenset[str] = frozenset()

    def entries(self, job_ids: Iterable[str]) -> list[str | Seeds]:
        """Return single jobs, and seeds at the place of their first run."""
        return [self.seeds.get(job_id, job_id) for job_id in job_ids if job_id not in self.hidden]


def fold_seeds(project: Project, wanted: Iterable[str]) -> list[str | Seeds] | None:
    """Return the entries of a list of jobs. None, without reading which were found, if the project has no groups."""
    names = _names(project)
    if not names:
        return None
    job_ids = list(wanted)
    return _fold(names, job_ids).entries(job_ids)


def fold_list(project: Project, wanted: Any, *, read_all: bool) -> tuple[Folding, Any]:
    """Return how a query of ids folds, and the ids that are listed. Without groups these are the query itself, of which
    a page can be read, unless `read_all`.
    """
    names = _names(project)
    if not names:
        return Folding(), list(wanted) if read_all else wanted
    job_ids = list(wanted)
    folding = _fold(names, job_ids)
    return folding, [job_id for job_id in job_ids if job_id not in folding.hidden]


def _fold(names: Mapping[str, tuple[int, str]], job_ids: Iterable[str]) -> Folding:
    members: dict[tuple[int, str], list[str]] = {}
    for job_id in job_ids:
        if job_id in names:
            members.setdefault(names[job_id], []).append(job_id)
    several = [Seeds(*question, tuple(runs)) for question, runs in members.items() if len(runs) > 1]
    return Folding(
        {seeds.job_ids[0]: seeds for seeds in several},
        frozenset(job_id for seeds in several for job_id in seeds.job_ids[1:]),
    )


def _names(project: Project) -> dict[str, tuple[int, str]]:
    """Return group and name without the seed, by job; of a job in several groups, the first."""
    rows = JobGroup.jobs.through.objects.filter(jobgroup__project=project).order_by("-jobgroup_id")
    links = rows.values_list("job_id", "jobgroup_id", "job__name")
    return {job_id: (group_id, without_seed(name)) for job_id, group_id, name in links}


def job_ids_of(entries: Sequence[str | Seeds]) -> list[str]:
    """Return the jobs of all entries, in their order."""
    return [pk for entry in entries for pk in ([entry] if isinstance(entry, str) else entry.job_ids)]


def state_of(jobs: Sequence[Job]) -> Pill:
    """Return how many of the runs are in each state, with the look of the most urgent one."""
    looks = [look_of_job(job) for job in jobs]
    counts = Counter(look.word for look in looks)
    worst = min(looks, key=lambda look: _URGENT.index(look.tone) if look.tone in _URGENT else len(_URGENT))
    words = ", ".join(f"{count} {word.lower()}" for word, count in counts.most_common())
    return Pill(words, worst.tone, worst.icon)


def comparison_keys(project: Project, chosen: Collection[str]) -> list[str]:
    """Return the keys of a comparison: a row of seeds that is a whole group is the group, else its jobs."""
    keys: list[str] = []
    for value in chosen:
        ids = value.split()
        group = _whole_group(project, ids) if len(ids) > 1 else None
        keys += [f"group_{group.pk}"] if group else ids
    return list(dict.fromkeys(keys))


def _whole_group(project: Project, job_ids: Sequence[str]) -> JobGroup | None:
    for group in JobGroup.objects.filter(project=project, jobs__in=job_ids).distinct():
        if set(group.jobs.values_list("pk", flat=True)) == set(job_ids):
            return group
    return None
