"""The columns of the list of jobs, one row each: heading, sort order and cell.

Name and state always come first and are not in this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from statistics import fmean
from typing import Literal, NamedTuple

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join

from webapp.clock import SYSTEM_CLOCK
from webapp.formatting import (
    UNKNOWN,
    Pill,
    bar_share,
    display_usd,
    elapsed_element,
    format_count,
    format_duration,
    format_score,
    mark_unpaid,
)
from webapp.jobs.charts.sparklines import HEIGHT, WIDTH, polyline
from webapp.jobs.list.seed_rows import Fold, Seeds, state_of
from webapp.jobs.models import Job
from webapp.jobs.queries import Headings
from webapp.jobs.reasons import look_of_job, reason_beside_pill
from webapp.jobs.scores import named_mean_score, named_score


@dataclass(frozen=True)
class JobColumn:
    """`order` is the field it sorts by; empty if it cannot sort. `reads` lists the relations that its text needs.

    `heading` names the word of `Headings` that heads it; empty: `word` heads it, whatever the jobs learn. `of_seeds`
    is the text of a row of several seeds; without it such a row has none.
    """

    key: str
    word: str
    text: Callable[[Job], str]
    order: str = ""
    number: bool = True
    reads: tuple[str, ...] = ()
    css: str = ""
    heading: Literal["", "score", "worst", "progress", "actors", "rounds"] = ""
    of_seeds: Callable[[Sequence[Job]], str] | None = None

    def headed(self, headings: Headings) -> JobColumn:
        """Return the column as it is shown above jobs that have these headings."""
        return _reworded(self, getattr(headings, self.heading)) if self.heading else self

    @cached_property
    def cell(self) -> str:
        """The start of its cells, the same for all rows, so it is built once."""
        css = f"column-{self.key}{' number' if self.number else ''} {self.css}".strip()
        return format_html('<td class="{}" data-label="{}">', css, self.word)


@cache
def _reworded(column: JobColumn, word: str) -> JobColumn:
    return column if column.word == word else replace(column, word=word)


def _score(field: str) -> Callable[[Job], str]:
    return lambda job: format_score(getattr(job, field), job.declaration.score.decimals)


def _mean(field: str) -> Callable[[Sequence[Job]], str]:
    """Return the mean of the runs that have a value."""

    def text(jobs: Sequence[Job]) -> str:
        known = [value for job in jobs if (value := getattr(job, field)) is not None]
        return format_score(fmean(known) if known else None, jobs[0].declaration.score.decimals)

    return text


def _curve(job: Job) -> str:
    points = polyline(getattr(job, "scores", ()))
    return "" if not points else _sparkline(points)


@lru_cache(4_000)
def _sparkline(points: str) -> str:
    return format_html(
        '<svg class="sparkline" viewBox="0 0 {} {}" aria-hidden="true"><polyline points="{}"/></svg>',
        WIDTH,
        HEIGHT,
        points,
    )


def _started(job: Job) -> str:
    return elapsed_element(job.created_at, SYSTEM_CLOCK.now())


def _spent(job: Job) -> str:
    account = job.account
    spent = account.spent_picodollars + account.overrun_picodollars
    return _bar(spent, account.reserved_picodollars, account.limit_picodollars, job.unreal)


def _spent_together(jobs: Sequence[Job]) -> str:
    accounts = [job.account for job in jobs]
    spent = sum(account.spent_picodollars + account.overrun_picodollars for account in accounts)
    reserved = sum(account.reserved_picodollars for account in accounts)
    return _bar(spent, reserved, sum(account.limit_picodollars for account in accounts), _unreal(jobs))


def _unreal(jobs: Sequence[Job]) -> str:
    """Return the word for money that no one pays, if any of these jobs has such."""
    return next((job.unreal for job in jobs if job.unreal), "")


@lru_cache(10_000)
def _bar(spent: int, reserved: int, limit: int, unreal: str) -> str:
    money = format_html(
        '<span class="spent-words">{} <span class="secondary">of {}</span></span>',
        mark_unpaid(display_usd(spent), unreal),
        display_usd(limit),
    )
    held = bar_share(spent + reserved, limit)
    bar = format_html(
        '<svg class="bar{}" aria-hidden="true" preserveAspectRatio="none"><rect class="reserved" height="100%"'
        ' width="{}%"/><rect class="spent" height="100%" width="{}%"/></svg>',
        " at-limit" if spent >= limit else "",
        held,
        bar_share(spent, limit),
    )
    return money + bar


def _words(names: list[str]) -> str:
    return format_html_join("", '<span class="tag">{}</span>', ((name,) for name in names)) or UNKNOWN


CURVE = "curve"
"""The column whose jobs come with their `scores`."""

COLUMNS = (
    JobColumn(CURVE, "Curve", _curve, number=False),
    JobColumn(
        "return",
        "Return",
        named_score,
        "leading_score",
        heading="score",
        of_seeds=named_mean_score,
    ),
    JobColumn(
        "training",
        "Training",
        _score("training_score"),
        "training_score",
        of_seeds=_mean("training_score"),
    ),
    JobColumn(
        "best",
        "Best training",
        _score("best_training_score"),
        "best_training_score",
        of_seeds=_mean("best_training_score"),
    ),
    JobColumn(
        "least",
        "Least training",
        _score("worst_training_score"),
        "worst_training_score",
        heading="worst",
        of_seeds=_mean("worst_training_score"),
    ),
    JobColumn(
        "evaluation",
        "Evaluated",
        _score("evaluated_score"),
        "evaluated_score",
        of_seeds=_mean("evaluated_score"),
    ),
    JobColumn(
        "steps",
        "Steps",
        lambda job: format_count(job.total_progress),
        "total_progress",
        heading="progress",
        of_seeds=lambda jobs: format_count(sum(job.total_progress for job in jobs)),
    ),
    JobColumn("rounds", "Rounds", lambda job: format_count(job.round_no), "round_no", heading="rounds"),
    JobColumn("actors", "Actors", lambda job: format_count(job.actors or None), "actors", heading="actors"),
    JobColumn(
        "spent", "Spent of limit", _spent, "cost", number=False, css="spent-cell", of_seeds=_spent_together
    ),
    JobColumn("time", "Time", lambda job: format_duration(job.platform_s or None), "platform_s"),
    JobColumn(
        "algorithm", "Algorithm", lambda job: job.algorithm.upper() or UNKNOWN, "algorithm", number=False
    ),
    JobColumn("environment", "Environment", lambda job: job.subject or UNKNOWN, "subject", number=False),
    JobColumn("cloud", "Cloud", lambda job: job.cloud.replace("_", " ") or UNKNOWN, "cloud", number=False),
    JobColumn(
        "tags",
        "Tags",
        lambda job: _words([tag.name for tag in job.tags.all()]),
        number=False,
        reads=("tags",),
    ),
    JobColumn(
        "group",
        "Group",
        lambda job: ", ".join(group.name for group in job.groups.all()) or UNKNOWN,
        number=False,
        reads=("groups",),
    ),
    JobColumn("by", "By", lambda job: str(job.created_by), number=False, reads=("created_by",)),
    JobColumn(
        "started",
        "Started",
        _started,
        "created_at",
        css="secondary",
        of_seeds=lambda jobs: _started(max(jobs, key=lambda job: job.created_at)),
    ),
)
BY_KEY = {column.key: column for column in COLUMNS}
USUAL = (CURVE, "return", "steps", "spent", "started")


def chosen_columns(keys: str) -> list[JobColumn]:
    """Return the columns named in the URL, in the table's order; the default ones if none is known."""
    named = [column for column in COLUMNS if column.key in keys.split(",")]
    return named or [BY_KEY[key] for key in USUAL]


_KEPT = 4_000
"""Cached rows of one process, some kilobytes each."""


_NO_ACTION = ("ok", "running")


class JobRow(NamedTuple):
    """Everything that a row shows. `version` changes with the job: pages replace rows with another version."""

    job_id: str
    version: str
    address: str
    name: str
    unreal: str
    archived: bool
    reason: str
    wants: bool
    """Whether the reason is shown beside the name, because someone may have to act on it."""
    pill: str
    cells: tuple[tuple[str, str], ...]
    chosen: str
    """The value of its box: the ids of its jobs."""
    seeds: int = 0
    """How many runs the row shows; 0 for a single job."""
    is_open: bool = False
    group_address: str = ""
    is_member: bool = False
    short: str = ""
    """Of a run below its row of seeds: its name without theirs."""


def render_rows(
    entries: Iterable[str | Seeds],
    jobs: Mapping[str, Job],
    columns: Sequence[JobColumn],
    jobs_url: str,
    folds: Mapping[str, Fold],
) -> list[str]:
    """Return the rows as HTML, in their order. An unfolded row of seeds is followed by its runs."""
    rows = []
    for entry in entries:
        if isinstance(entry, str):
            rows += [_row(jobs[entry], columns, jobs_url)] if entry in jobs else []
            continue
        members = [jobs[pk] for pk in entry.job_ids if pk in jobs]
        if not members:
            continue
        fold = folds[entry.key]
        rows.append(_seeds_row(entry, members, columns, fold))
        if fold.is_open:
            rows += [_member_row(_row(job, columns, jobs_url), entry.name) for job in members]
    return [_render(row) for row in rows]


def _seeds_row(seeds: Seeds, jobs: Sequence[Job], columns: Sequence[JobColumn], fold: Fold) -> JobRow:
    return JobRow(
        job_id=f"seeds-{seeds.key}",
        version=f"{fold.is_open}{'|'.join(_version(job) for job in jobs)}",
        address=fold.address,
        name=seeds.name,
        unreal=_unreal(jobs),
        archived=False,
        reason="",
        wants=False,
        pill=_pill(state_of(jobs)),
        cells=tuple((column.cell, column.of_seeds(jobs) if column.of_seeds else "") for column in columns),
        chosen=" ".join(job.pk for job in jobs),
        seeds=len(jobs),
        is_open=fold.is_open,
        group_address=fold.group_address,
    )


def _member_row(row: JobRow, of: str) -> JobRow:
    return row._replace(is_member=True, short=row.name.removeprefix(f"{of}, ").capitalize())


def _version(job: Job) -> str:
    account = job.account
    return f"{job.last_seq}/{account.spent_picodollars}/{account.reserved_picodollars}"


def _row(job: Job, columns: Sequence[JobColumn], jobs_url: str) -> JobRow:
    return JobRow(
        job_id=job.pk,
        version=_version(job),
        address=f"{jobs_url}{job.pk}/",
        name=job.name,
        unreal=job.unreal,
        archived=job.archived_at is not None,
        reason=reason_beside_pill(job),
        wants=(look := look_of_job(job)).tone not in _NO_ACTION,
        pill=_pill(look),
        cells=tuple((column.cell, column.text(job)) for column in columns),
        chosen=job.pk,
    )


@lru_cache(_KEPT)
def _render(row: JobRow) -> str:
    return render_to_string("jobs/row.html", row._asdict())


@cache
def _pill(state: Pill) -> str:
    """Return a state's pill, cached: there are few states and many rows."""
    return render_to_string("jobs/pill.html", {"state": state})
