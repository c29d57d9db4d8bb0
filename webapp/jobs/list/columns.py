"""The columns of the list of jobs, one row each: heading, sort order and cell.

Name and state always come first and are not in this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Literal, NamedTuple

from django.template.loader import render_to_string
from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from webapp.clock import SYSTEM_CLOCK
from webapp.formatting import (
    UNKNOWN,
    bar_share,
    display_usd,
    elapsed_element,
    format_count,
    format_duration,
    format_score,
)
from webapp.jobs.headings import Headings
from webapp.jobs.models import Job
from webapp.jobs.reasons import look_of_job, reason_in_words
from webapp.tones import Pill


@dataclass(frozen=True)
class Column:
    """`order` is the field it sorts by; empty if it cannot sort. `reads` lists the relations that its text needs.

    `heading` names the word of `Headings` that heads it; empty: `word` heads it, whatever the jobs learn.
    """

    key: str
    word: str
    text: Callable[[Job], str]
    order: str = ""
    number: bool = True
    reads: tuple[str, ...] = ()
    css: str = ""
    heading: Literal["", "score", "worst", "progress"] = ""

    def headed(self, headings: Headings) -> Column:
        """Return the column as it stands above jobs that have these headings."""
        return _reworded(self, getattr(headings, self.heading)) if self.heading else self

    @cached_property
    def cell(self) -> str:
        """The start of its cells, the same for all rows, so it is built once."""
        css = f"column-{self.key}{' number' if self.number else ''} {self.css}".strip()
        return format_html('<td class="{}" data-label="{}">', css, self.word)


@cache
def _reworded(column: Column, word: str) -> Column:
    return column if column.word == word else replace(column, word=word)


def _score(field: str) -> Callable[[Job], str]:
    return lambda job: format_score(getattr(job, field), job.declaration.score.decimals)


def _started(job: Job) -> str:
    return elapsed_element(job.created_at, SYSTEM_CLOCK.now())


def _spent(job: Job) -> str:
    account = job.account
    spent = account.spent_picodollars + account.overrun_picodollars
    return _bar(spent, account.reserved_picodollars, account.limit_picodollars, bool(job.unreal))


@lru_cache(10_000)
def _bar(spent: int, reserved: int, limit: int, unreal: bool) -> str:
    money = format_html(
        '<span class="spent-words"><span{}>{} <span class="secondary">of {}</span></span></span>',
        mark_safe(' class="simulated-money"') if unreal else "",
        display_usd(spent),
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


COLUMNS = (
    Column("return", "Return", _score("episode_return_mean"), "episode_return_mean", heading="score"),
    Column("best", "Best", _score("return_best"), "return_best"),
    Column("least", "Least", _score("return_least"), "return_least", heading="worst"),
    Column("evaluation", "Evaluated", _score("evaluation_return_mean"), "evaluation_return_mean"),
    Column("steps", "Steps", lambda job: format_count(job.env_steps), "env_steps", heading="progress"),
    Column("rounds", "Rounds", lambda job: format_count(job.round_no), "round_no"),
    Column("actors", "Actors", lambda job: format_count(job.actors or None), "actors"),
    Column("spent", "Spent of limit", _spent, "cost", number=False, css="spent-cell"),
    Column("time", "Time", lambda job: format_duration(job.platform_s or None), "platform_s"),
    Column("algorithm", "Algorithm", lambda job: job.algorithm.upper() or UNKNOWN, "algorithm", number=False),
    Column("environment", "Environment", lambda job: job.environment or UNKNOWN, "environment", number=False),
    Column("cloud", "Cloud", lambda job: job.cloud.replace("_", " ") or UNKNOWN, "cloud", number=False),
    Column(
        "tags",
        "Tags",
        lambda job: _words([tag.name for tag in job.tags.all()]),
        number=False,
        reads=("tags",),
    ),
    Column(
        "group",
        "Group",
        lambda job: ", ".join(group.name for group in job.groups.all()) or UNKNOWN,
        number=False,
        reads=("groups",),
    ),
    Column("by", "By", lambda job: str(job.created_by), number=False, reads=("created_by",)),
    Column("started", "Started", _started, "created_at", css="secondary"),
)
BY_KEY = {column.key: column for column in COLUMNS}
USUAL = ("return", "best", "steps", "actors", "spent", "started")


def chosen_columns(keys: str) -> list[Column]:
    """Return the columns named in the URL, in the table's order; the default ones if none is known."""
    named = [column for column in COLUMNS if column.key in keys.split(",")]
    return named or [BY_KEY[key] for key in USUAL]


_KEPT = 4_000
"""Cached rows of one process, some kilobytes each."""


class Row(NamedTuple):
    """Everything that a row shows. `version` changes with the job: pages replace rows with another version."""

    job_id: str
    version: str
    address: str
    name: str
    unreal: str
    archived: bool
    reason: str
    pill: str
    cells: tuple[tuple[str, str], ...]


def render_rows(jobs: Iterable[Job], columns: Sequence[Column], jobs_url: str) -> list[str]:
    """Return the jobs' rows as HTML, in their order."""
    return [_render(_row(job, columns, jobs_url)) for job in jobs]


def _row(job: Job, columns: Sequence[Column], jobs_url: str) -> Row:
    account = job.account
    return Row(
        job_id=job.pk,
        version=f"{job.last_seq}/{account.spent_picodollars}/{account.reserved_picodollars}",
        address=f"{jobs_url}{job.pk}/",
        name=job.name,
        unreal=job.unreal,
        archived=job.archived_at is not None,
        reason=reason_in_words(job),
        pill=_pill(look_of_job(job)),
        cells=tuple((column.cell, column.text(job)) for column in columns),
    )


@lru_cache(_KEPT)
def _render(row: Row) -> str:
    return render_to_string("jobs/row.html", row._asdict())


@cache
def _pill(state: Pill) -> str:
    """Return a state's pill, cached: there are few states and many rows."""
    return render_to_string("jobs/pill.html", {"state": state})
