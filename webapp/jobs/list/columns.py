"""The columns of the list of jobs, one row each: what it is called, how it sorts, and what it shows of a job.

The name and the state always stand first and are no columns here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

from django.utils.html import format_html, format_html_join
from django.utils.safestring import mark_safe

from webapp.jobs.models import Job
from webapp.money.amounts import display_usd
from webapp.templatetags.look import UNKNOWN, ago, count, duration, score, share


@dataclass(frozen=True)
class Column:
    """`order`: the field it sorts by, empty if it does not. `reads`: relations that its text needs."""

    key: str
    word: str
    text: Callable[[Job], str]
    order: str = ""
    number: bool = True
    reads: tuple[str, ...] = ()
    css: str = ""

    @cached_property
    def cell(self) -> str:
        """How its cells begin: the same for all rows, so it is put together once."""
        css = f"column-{self.key}{' number' if self.number else ''} {self.css}".strip()
        return format_html('<td class="{}" data-label="{}">', css, self.word)


def _actors(job: Job) -> str:
    return count(job.actors) if job.actors else UNKNOWN


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
    held = share(spent + reserved, limit)
    bar = format_html(
        '<svg class="bar{}" aria-hidden="true" preserveAspectRatio="none"><rect class="reserved" height="100%"'
        ' width="{}%"/><rect class="spent" height="100%" width="{}%"/></svg>',
        " at-limit" if spent >= limit else "",
        held,
        share(spent, limit),
    )
    return money + bar


def _words(names: list[str]) -> str:
    return format_html_join("", '<span class="tag">{}</span>', ((name,) for name in names)) or UNKNOWN


COLUMNS = (
    Column("return", "Return", lambda job: score(job.episode_return_mean), "episode_return_mean"),
    Column("best", "Best", lambda job: score(job.return_best), "return_best"),
    Column("least", "Least", lambda job: score(job.return_least), "return_least"),
    Column(
        "evaluation", "Evaluated", lambda job: score(job.evaluation_return_mean), "evaluation_return_mean"
    ),
    Column("steps", "Steps", lambda job: count(job.env_steps), "env_steps"),
    Column("rounds", "Rounds", lambda job: count(job.round_no), "round_no"),
    Column("actors", "Actors", _actors, "actors"),
    Column("spent", "Spent of limit", _spent, "cost", number=False, css="spent-cell"),
    Column("time", "Time", lambda job: duration(job.platform_s) if job.platform_s else UNKNOWN, "platform_s"),
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
    Column("started", "Started", lambda job: ago(job.created_at), "created_at", css="secondary"),
)
BY_KEY = {column.key: column for column in COLUMNS}
USUAL = ("return", "best", "steps", "actors", "spent", "started")


def chosen_columns(keys: str) -> list[Column]:
    """The columns named in an address, in our order; the usual ones where none is known."""
    named = [column for column in COLUMNS if column.key in keys.split(",")]
    return named or [BY_KEY[key] for key in USUAL]
