"""The overview's lists of running and recent jobs, in a fixed number of queries; and how fast the running ones spend.

Real, simulated, emulated and free jobs are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Case, QuerySet, When

from cloud.platforms.options import CLOUD_OF
from webapp.accounts.models import Project
from webapp.formatting import Pill, display_usd, format_rough_duration, format_score, plural
from webapp.job_states import ACTIVE, TERMINAL, Observed
from webapp.jobs.billing.bill_panel import job_cap
from webapp.jobs.billing.burn_rate import Burn, burns_of, outlooks_of
from webapp.jobs.charts.sparklines import polyline, scores_of
from webapp.jobs.list.seed_rows import Seeds, fold_seeds
from webapp.jobs.models import Job
from webapp.jobs.queries import TRAINING_KIND
from webapp.jobs.reasons import look_of_job, reason_beside_pill, stopped_by_budget

SHOWN = 8
RECENT = 6
LOOKED_AT = 200
"""So many ended jobs are folded by their groups."""


@dataclass(frozen=True)
class Running:
    """One running job. `left`: its remaining time as text; empty if unknown, or if only money ends it."""

    job: Job
    state: Pill
    reason: str
    line: str
    line_words: str
    spent: int
    limit: int
    free: int
    spent_and_reserved: float
    left: str


def active(project: Project) -> QuerySet[Job]:
    return Job.objects.filter(project=project, observed__in=ACTIVE, archived_at=None)


def running(project: Project) -> list[Running]:
    """Active jobs: those with progress first, then the newest."""
    moving = Case(When(observed=Observed.RUNNING, round_no__gt=0, then=0), default=1)
    rows = (
        active(project)
        .select_related("account")
        .prefetch_related("account__budgets")
        .defer("summary", "note")
    )
    jobs = list(rows.order_by(moving, "-created_at")[:SHOWN])
    scores, outlooks = scores_of(jobs), outlooks_of(jobs)
    return [_running(job, scores[job.pk], outlooks.get(job.pk)) for job in jobs]


def _running(job: Job, scores: Sequence[tuple[int, float]], outlook: Burn | None) -> Running:
    account = job.account
    spent, limit = account.spent_picodollars + account.overrun_picodollars, account.limit_picodollars
    score = job.declaration.score
    words = (
        f"Training {score.name} from {format_score(scores[0][1], score.decimals)}"
        f" to {format_score(scores[-1][1], score.decimals)}"
        if scores
        else f"No {score.name} yet"
    )
    return Running(
        job=job,
        state=look_of_job(job),
        reason=reason_beside_pill(job),
        line=polyline(scores),
        line_words=words,
        spent=spent,
        limit=limit,
        free=job_cap(job).free,
        spent_and_reserved=min(100.0, 100 * (spent + account.reserved_picodollars) / limit),
        left=format_rough_duration(outlook.done.in_s) if outlook and outlook.done else "",
    )


@dataclass(frozen=True)
class Recent:
    """A job that ended or is paused. `step` names the address of the next step, `step_words` describes it."""

    job: Job
    state: Pill
    reason: str
    spent: int
    step: str
    step_words: str
    more_seeds: int = 0
    """How many other seeds of its group ended; the row includes them."""


_RAISE_BUDGET = "jobs:detail", "Raise budget"
_DOWNLOAD = "jobs:checkpoints"
_STEPS: dict[str, tuple[str, str]] = {
    Observed.FAILED: ("jobs:logs", "Read log"),
    Observed.CANCELLED: ("jobs:detail", "See charts"),
    Observed.PAUSED: ("jobs:detail", "Resume"),
}


def _next_step(job: Job) -> tuple[str, str]:
    if job.observed == Observed.SUCCEEDED:
        return _DOWNLOAD, f"Download {job.declaration.learned}"
    return _RAISE_BUDGET if stopped_by_budget(job) else _STEPS[job.observed]


def recent(project: Project) -> list[Recent]:
    """What ended or was stopped last."""
    ended = Job.objects.filter(project=project, archived_at=None, observed__in=(*TERMINAL, Observed.PAUSED))
    newest = ended.order_by("-since")
    shown = (fold_seeds(project, newest.values_list("pk", flat=True)[:LOOKED_AT]) or [])[:RECENT]
    others = {entry.job_ids[0]: len(entry.job_ids) - 1 for entry in shown if isinstance(entry, Seeds)}
    if shown:
        newest = newest.filter(pk__in=[one.job_ids[0] if isinstance(one, Seeds) else one for one in shown])
    jobs = newest.select_related("account").defer("spec", "summary", "note")
    rows = []
    for job in jobs.annotate(training_kind=TRAINING_KIND)[:RECENT]:
        step, words = _next_step(job)
        spent = job.account.spent_picodollars + job.account.overrun_picodollars
        seeds = others.get(job.pk, 0)
        rows.append(Recent(job, look_of_job(job), reason_beside_pill(job), spent, step, words, seeds))
    return rows


RATED = 50
"""At most this many running jobs are summed, those that cost money first."""


@dataclass(frozen=True)
class MoneyGroup:
    """Jobs of one kind of money, and what they spend an hour; 0 if unknown."""

    jobs: int
    hourly: int = 0


@dataclass(frozen=True)
class Rate:
    """Jobs that cost money, jobs whose money no one pays (by its word), and jobs that cost nothing."""

    real: MoneyGroup
    unreal: Mapping[str, MoneyGroup]
    free: int
    queued: int = 0
    """Jobs that wait for their start: they run nothing and spend nothing."""

    @property
    def jobs(self) -> int:
        return self.real.jobs + self.free + sum(kind.jobs for kind in self.unreal.values())

    @property
    def unreal_word(self) -> str:
        """The word for all of the jobs where none of them is real or free, else empty."""
        return next(iter(self.unreal)) if len(self.unreal) == 1 and not self.real.jobs + self.free else ""

    @property
    def words(self) -> str:
        """The text of the top bar: real money alone, unless there is none."""
        return f"{self._running_words} · {self.queued:,} queued" if self.queued else self._running_words

    @property
    def _running_words(self) -> str:
        if not self.jobs:
            return "Nothing runs"
        hourly = self.unreal[self.unreal_word].hourly if self.unreal_word else self.real.hourly
        counts = {"real": self.real.jobs, **{word: kind.jobs for word, kind in self.unreal.items()}}
        named = [f"{count:,} {word}" for word, count in {**counts, "free": self.free}.items() if count]
        all_alike = len(named) == 1
        jobs = plural(self.jobs, "job") if all_alike else " · ".join(named)
        if hourly:
            return f"{display_usd(hourly)}/h · {jobs}"
        return f"{jobs} running" if all_alike else f"Running: {', '.join(named)}"


def rate(project: Project) -> Rate:
    """The rate of all jobs that run. If there are very many, only the newest are summed."""
    queued = active(project).filter(observed=Observed.QUEUED).count()
    jobs = active(project).exclude(observed=Observed.QUEUED)
    rated = jobs.select_related("account").defer("summary", "note")
    burns = burns_of(rated.order_by("simulated", "emulated", "-created_at")[:RATED])
    counts, hourly = Counter[str](), Counter[str]()
    for pk, simulated, emulated, platform in jobs.values_list(
        "pk", "simulated", "emulated", "spec__platform"
    ):
        spends = burns[pk].hourly if pk in burns else 0
        word = "simulated" if simulated else "emulated" if emulated else ""
        if not word and not spends and _is_free(platform or {}):
            word = "free"
        counts[word] += 1
        hourly[word] += spends
    unreal = {
        word: MoneyGroup(counts[word], hourly[word]) for word in ("simulated", "emulated") if counts[word]
    }
    return Rate(MoneyGroup(counts[""], hourly[""]), unreal, counts["free"], queued)


def _is_free(platform: Mapping[str, Any]) -> bool:
    """Whether the job runs on machines without a price."""
    prices = (value for name, value in platform.items() if name.endswith("_usd_per_hour"))
    priced = platform.get("machine") or any(Decimal(str(price or 0)) for price in prices)
    return platform.get("kind") not in CLOUD_OF and not priced


def state_sentence(rate: Rate) -> str:
    """What is running, its rate, and what is queued. Real money comes first, and is never added to money that no one
    pays."""
    if not rate.queued:
        return _running_sentence(rate)
    return f"{_running_sentence(rate)} {plural(rate.queued, 'job')} {'is' if rate.queued == 1 else 'are'} queued."


def _running_sentence(rate: Rate) -> str:
    if not rate.jobs:
        return "No job of this project is running, so it costs nothing now."
    parts = []
    if rate.real.jobs:
        parts.append(f"{plural(rate.real.jobs, 'costs', 'cost')} money ({_hourly(rate.real)})")
    for word, kind in rate.unreal.items():
        parts.append(f"{plural(kind.jobs, 'is', 'are')} {word} ({_hourly(kind)}, which no one pays)")
    if rate.free:
        parts.append(f"{plural(rate.free, 'costs', 'cost')} nothing")
    jobs = f"{plural(rate.jobs, 'job')} {'is' if rate.jobs == 1 else 'are'} running"
    if len(parts) > 1:
        return f"{jobs}: {', '.join(parts[:-1])} and {parts[-1]}."
    return f"{jobs}{_of_one_kind(rate)}"


def _of_one_kind(rate: Rate) -> str:
    it = "it" if rate.jobs == 1 else "they"
    if rate.free:
        return f". {it.capitalize()} {'costs' if rate.jobs == 1 else 'cost'} nothing."
    kind = rate.unreal[rate.unreal_word] if rate.unreal_word else rate.real
    if not kind.hourly and rate.unreal_word:
        verb, them = ("is", "it") if rate.jobs == 1 else ("are", "them")
        return f". {it.capitalize()} {verb} {rate.unreal_word}: no one pays for {them}."
    if not kind.hourly:
        return f". What {it} {'spends' if rate.jobs == 1 else 'spend'} an hour is not known yet."
    only = f" that is only {rate.unreal_word}" if rate.unreal_word else ""
    return f", spending {display_usd(kind.hourly)} an hour{only}."


def _hourly(kind: MoneyGroup) -> str:
    return f"{display_usd(kind.hourly)} an hour" if kind.hourly else "rate not known yet"
