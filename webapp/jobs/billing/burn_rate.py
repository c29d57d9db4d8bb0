"""How fast a running job spends, when it meets its limit at that rate, and whether it ends before.

Time is the platform's time, which is virtual on a simulated cloud.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise, takewhile
from math import ceil, sqrt
from operator import attrgetter
from statistics import fmean, stdev
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import Q, QuerySet

from training.statistics.few_seeds import student_t
from training.tasks.training import TrainingFacts
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.formatting import display_usd, format_day, format_moment, format_rough_duration
from webapp.job_states import Observed
from webapp.jobs.charts.figures import SCORE, SPENT, spent_picodollars
from webapp.jobs.models import Job, Round
from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.money.budget_chain import headroom, lock_budgets, period_end, roll_over
from webapp.money.models import Account, Budget, Crossing, CrossingKind
from webapp.money.queries import budgets_above
from webapp.money.thresholds import FORECAST_THRESHOLD, note_expected

ROUNDS_LOOKED_AT = 40
LEAST_SPAN_S = 300.0
"""Rent is booked by the minute, so a rate needs a window of several minutes."""
ROUNDS_AT_LEAST = 4
_PIECES = 8
_SURE = 0.8
"""The probability with which outcomes lie in the bands."""
_LEAST_DOUBT = 0.02
_LEAST_PIECES_AHEAD = 0.25
_FIGURES = (
    *(
        "round_no",
        "payload__report__total_env_steps",
        "payload__report__started_s",
        "payload__report__total_s",
        "payload__report__actors",
        SCORE,
    ),
    *SPENT,
)


@dataclass(frozen=True)
class BurnPace:
    """How much of one figure comes with one of another, such as money with a second, over the last rounds.

    It is seen in `pieces` of `piece` of the other figure each. Their ratios lie `spread` around `ratio`, as a share
    of it and with 80 % probability.
    """

    ratio: float
    spread: float = 0.0
    pieces: int = 1
    piece: float = 1.0

    @property
    def over(self) -> float:
        """How much of the other figure all pieces have."""
        return self.pieces * self.piece

    def doubt(self, ahead: float) -> float:
        """Return the error of what comes with the next `ahead`, as a share and with 80 % probability.

        It is that of the mean so far, and the chance in the pieces that lie ahead.
        """
        pieces_ahead = max(_LEAST_PIECES_AHEAD, ahead / self.piece)
        return max(_LEAST_DOUBT, self.spread * sqrt(1 / self.pieces + 1 / pieces_ahead))


@dataclass(frozen=True)
class JobEnd:
    """The job's own end: in how many seconds after the last round, and what it then cost in all. The margins are their
    errors with 80 % probability, which include what comes once, such as an evaluation, a call tried again, or the end
    of machines."""

    in_s: float
    margin_s: float
    costs: int
    margin: int


@dataclass(frozen=True)
class Burn:
    """Picodollars a second of platform time, and what has been spent. Times count from the last round. `limit_in_s` is
    None for a job that spends nothing, `done` if only money ends the job."""

    rate: BurnPace
    spent: int
    limit_in_s: float | None
    done: JobEnd | None

    @property
    def hourly(self) -> int:
        return round(self.rate.ratio * 3600)

    def ends_before(self, limit_in_s: float | None) -> bool:
        """Return whether the job ends before it meets a limit (None: it never does)."""
        return self.done is not None and (limit_in_s is None or self.done.in_s <= limit_in_s)

    def margin_s(self, limit_in_s: float) -> float:
        """Return the error of the time until a limit is met, with 80 % probability."""
        return self.rate.doubt(limit_in_s) * limit_in_s


def burn_of(job: Job) -> Burn | None:
    """Return the job's burn rate; None if the job does not run, costs nothing or has too few rounds."""
    return burns_of([job]).get(job.pk)


def burns_of(jobs: Iterable[Job]) -> dict[str, Burn]:
    """Return the burn rate by job id, without jobs that have none; two queries for any number of jobs."""
    return {pk: burn for pk, burn in outlooks_of(jobs).items() if burn.limit_in_s is not None}


def outlooks_of(jobs: Iterable[Job]) -> dict[str, Burn]:
    """Return the same, with jobs that spend nothing."""
    running = {job.pk: job for job in jobs if job.observed == Observed.RUNNING}
    latest = {pk: range(job.round_no, job.round_no - ROUNDS_LOOKED_AT, -1) for pk, job in running.items()}
    known = {pk: points for pk, points in _latest(latest).items() if len(points) >= ROUNDS_AT_LEAST}
    wider = {}
    for pk, points in known.items():
        span_s = points[-1].at_s - points[0].at_s
        if 0 < span_s < LEAST_SPAN_S and points[0].round_no > 1:
            stride, last = ceil(LEAST_SPAN_S / span_s), running[pk].round_no
            wider[pk] = range(last, last - ROUNDS_LOOKED_AT * stride, -stride)
    known |= _latest(wider)
    burns = {
        pk: _burn(points, running[pk].account, running[pk].training_facts) for pk, points in known.items()
    }
    return {pk: burn for pk, burn in burns.items() if burn is not None}


class JobPoint(NamedTuple):
    """A job after a round: its totals, and the round's actors and score. `spent` includes rent that is not booked."""

    round_no: int
    steps: float
    started_s: float
    took_s: float
    actors: int
    score: float | None
    spent: int

    @property
    def at_s(self) -> float:
        return self.started_s + self.took_s

    @property
    def usd(self) -> float:
        return self.spent / PICODOLLARS_PER_USD


def at_this_pace(points: Sequence[JobPoint]) -> Sequence[JobPoint]:
    """Return the last points with about as many actors as the last one: they say how the job goes on."""
    now = max(1, points[-1].actors)
    kept = takewhile(lambda point: 0.67 <= point.actors / now <= 1.5, reversed(points[:-1]))
    return points[-1 - sum(1 for _ in kept) :]


def read_points(rounds: QuerySet[Round]) -> dict[str, list[JobPoint]]:
    """Return the points of rounds by job."""
    found = defaultdict[str, list[JobPoint]](list)
    for pk, *figures, booked, accrued in rounds.order_by("round_no").values_list("job_id", *_FIGURES):
        found[pk].append(JobPoint._make((*figures, spent_picodollars(booked, accrued) or 0)))
    return found


def _latest(rounds: Mapping[str, Iterable[int]]) -> dict[str, list[JobPoint]]:
    wanted = Q()
    for pk, round_nos in rounds.items():
        wanted |= Q(job_id=pk, round_no__in=list(round_nos))
    return read_points(Round.objects.filter(wanted)) if wanted else {}


def _burn(points: Sequence[JobPoint], account: Account, training: TrainingFacts) -> Burn | None:
    recent = at_this_pace(points)  # few where a policy changes the actors all the time
    if len(recent) >= ROUNDS_AT_LEAST:
        points = recent
    first, last = points[0], points[-1]
    spent = max(account.spent_picodollars + account.overrun_picodollars, last.spent)
    if last.at_s <= first.at_s:
        return None
    rate = _pace(points, _spent, _at_s)
    left = account.limit_picodollars - spent
    return Burn(
        rate=rate,
        spent=spent,
        limit_in_s=max(0.0, left / rate.ratio) if rate.ratio > 0 else None,
        done=_done(points, spent, training),
    )


def _done(points: Sequence[JobPoint], spent: int, training: TrainingFacts) -> JobEnd | None:
    """Return the end by the stop rule that is met first; None if none is known."""
    last, ends = points[-1], []
    rules = (
        (_steps, training.progress_limit),
        (_round_no, training.rounds_limit),
        (_at_s, (training.minutes_limit or 0) * 60),
    )
    for figure, limit in rules:
        if limit and figure(last) > figure(points[0]):
            ahead = max(0.0, limit - figure(last))
            time = _pace(points, _at_s, figure)
            ends.append((time.ratio * ahead, time.doubt(ahead), _pace(points, _spent, figure), ahead))
    if not ends:
        return None
    in_s, doubt, money, ahead = min(ends, key=lambda end: end[0])
    more = money.ratio * ahead
    return JobEnd(
        in_s=in_s,
        margin_s=doubt * in_s + _LEAST_DOUBT * (last.at_s + in_s),
        costs=round(spent + more),
        margin=round(money.doubt(ahead) * more + _LEAST_DOUBT * (spent + more)),
    )


_Figure = Callable[[JobPoint], float]
_spent, _at_s, _steps, _round_no = (attrgetter(name) for name in ("spent", "at_s", "steps", "round_no"))


def _pace(points: Sequence[JobPoint], of: _Figure, per: _Figure) -> BurnPace:
    """Return how much of a figure comes with one of another. The last one must have grown."""
    ratio = (of(points[-1]) - of(points[0])) / (per(points[-1]) - per(points[0]))
    size = max(1, (len(points) - 1) // _PIECES)
    pairs = [pair for pair in pairwise(points[::-size][::-1]) if per(pair[1]) > per(pair[0])]
    if len(pairs) < 2 or not ratio:
        return BurnPace(ratio, piece=per(points[-1]) - per(points[0]))
    ratios = [(of(after) - of(before)) / (per(after) - per(before)) for before, after in pairs]
    piece = fmean(per(after) - per(before) for before, after in pairs)
    spread = student_t(_SURE, len(pairs) - 1) * stdev(ratios) / ratio
    return BurnPace(ratio, spread, len(pairs), piece)


PACE_MAY_CHANGE = "Its scaling policy may change that pace, which the ± leaves out."


def forecast_spending(job: Job, now: datetime) -> dict[str, Any]:
    """Return a running job's forecast: a sentence (`burn`, such as "At $2.40 an hour it meets its limit at 14:20 UTC
    (± 6 min)."; empty if unknown) and its chart of spending (`ahead`, or None)."""
    burn = burn_of(job)
    if burn is None:
        return {"burn": "", "ahead": None}
    limit = _first_limit(job.account, burn, now)
    sentence = f"{_sentence(job, burn, limit, now)}{_what_may_change(job)}"
    return {"burn": sentence, "ahead": _chart_line(job, burn, limit, now)}


class _Limit(NamedTuple):
    """The limit that is met first: in how many seconds (None: never), and its name."""

    in_s: float | None
    what: str


def _sentence(job: Job, burn: Burn, limit: _Limit, now: datetime) -> str:
    hour = "a simulated hour" if job.simulated else "an hour"
    rate = f"At {display_usd(burn.hourly)} {hour}"
    if burn.done is not None and burn.ends_before(limit.in_s):
        cost = f"{display_usd(burn.done.costs)} (± {display_usd(burn.done.margin)})"
        return f"{rate} it is done {_when(job, burn.done.in_s, now)}, for {cost} in all."
    if limit.in_s is None:
        return f"{rate}."
    band = _band(burn.margin_s(limit.in_s))
    return f"{rate} it meets {limit.what} {_when(job, limit.in_s, now)} {band}."


def _what_may_change(job: Job) -> str:
    """Return a warning where the band cannot know what is planned: it goes by the pace of the last rounds."""
    kind = job.spec.get("training", {}).get("scaling", {}).get("kind", "fixed")
    return "" if kind == "fixed" else f" {PACE_MAY_CHANGE}"


def _chart_line(job: Job, burn: Burn, limit: _Limit, now: datetime) -> dict[str, Any] | None:
    """Return the chart's line from the last round on, with its 80 % range.

    It ends at `line_usd`, or after `done_in_s` if that is sooner. `words` is the sentence, `end` and `when`
    its short form.
    """
    if limit.in_s is None:
        return None
    if burn.done is not None and burn.ends_before(limit.in_s):
        in_s, margin_s, end, what = burn.done.in_s, burn.done.margin_s, "done", "done"
        doubt = burn.done.margin / max(1, burn.done.costs - burn.spent)
    else:
        in_s, margin_s, end, what = limit.in_s, burn.margin_s(limit.in_s), "reached", f"meets {limit.what}"
        doubt = burn.rate.doubt(limit.in_s)
    band = _band(margin_s)
    return {
        "hourly_usd": burn.hourly / PICODOLLARS_PER_USD,
        "doubt": doubt,
        "line_usd": (burn.spent + burn.hourly * limit.in_s / 3600) / PICODOLLARS_PER_USD,
        "done_in_s": burn.done and burn.done.in_s,
        "words": f"{what} {_when(job, in_s, now)} {band}",
        "end": end,
        "when": f"{_shortly(job, in_s, now)} {band}",
    }


def _first_limit(account: Account, burn: Burn, now: datetime) -> _Limit:
    """Return the limit that the job meets first, its own or a budget's. Other jobs keep what they hold there."""
    above = budgets_above(account.pk, now)
    if above and burn.hourly:
        unspent = account.granted_picodollars - account.spent_picodollars
        in_s = (headroom(above[0]) + unspent) * 3600 / burn.hourly
        if burn.limit_in_s is None or in_s < burn.limit_in_s:
            return _Limit(max(0.0, in_s), f"the limit of “{above[0].name}”")
    return _Limit(burn.limit_in_s, "its limit")


def _band(margin_s: float) -> str:
    return f"(± {format_rough_duration(margin_s)})"


def _when(job: Job, in_s: float, now: datetime) -> str:
    if job.simulated:
        return f"after another {format_rough_duration(in_s)} of simulated time"
    return f"at {format_moment(now + timedelta(seconds=in_s), today=now.date())}"


def _shortly(job: Job, in_s: float, now: datetime) -> str:
    if job.simulated:
        return f"in {format_rough_duration(in_s)}"
    then = now + timedelta(seconds=in_s)
    day = "" if then.date() == now.date() else f"{format_day(then, short=True)} "
    return f"{day}{then:%H:%M} UTC"


def announce_expected_limits(*, clock: Clock = SYSTEM_CLOCK) -> None:
    """Write a crossing for each job and budget that is expected to meet its limit, and begin new periods.

    The expected time is left out where simulated jobs take part: their hours are virtual.
    """
    now = clock.now()
    running = Job.objects.filter(observed=Observed.RUNNING).select_related("account")
    known = burns_of(running)
    burns = {job.account.pk: known[job.pk] for job in running if job.pk in known}
    virtual = {job.account.pk for job in running if job.simulated}
    for account in Account.objects.filter(pk__in=burns):
        burn = burns[account.pk]
        if (
            not burn.ends_before(burn.limit_in_s)
            and burn.limit_in_s is not None
            and not _is_announced(account)
        ):
            meets = None if account.pk in virtual else now + timedelta(seconds=burn.limit_in_s)
            note_expected(account, burn.spent, now, meets)
    for budget_id in Budget.objects.filter(closed_at=None).values_list("pk", flat=True):
        _look_at(budget_id, burns, virtual, now)


def _is_announced(payer: Account | Budget) -> bool:
    """Return whether a forecast crossing of this arming exists. The unique row decides; this check saves the write."""
    field = "account" if isinstance(payer, Account) else "budget"
    rows = Crossing.objects.filter(**{field: payer}, kind=CrossingKind.FORECAST, threshold=FORECAST_THRESHOLD)
    return rows.filter(arming=payer.arming).exists()


@transaction.atomic
def _look_at(budget_id: int, burns: dict[int, Burn], virtual: set[int], now: datetime) -> None:
    budget = roll_over(lock_budgets(Budget.objects.filter(pk=budget_id))[0], now)
    below = set(Account.objects.filter(budgets=budget, pk__in=burns).values_list("pk", flat=True))
    spent = budget.spent_picodollars + budget.overrun_picodollars
    expected_at = meets_at([burns[pk] for pk in below], spent, budget, now)
    if expected_at is not None and not _is_announced(budget):
        note_expected(budget, spent, now, None if below & virtual else expected_at)


def meets_at(burns: list[Burn], spent: int, budget: Budget, now: datetime) -> datetime | None:
    """Return when jobs with these rates meet a budget's limit; None if they, or the period, end before."""
    left, at_s = float(budget.limit_picodollars - spent), 0.0
    end = period_end(budget.period, now)
    # Between two jobs' ends the total rate is constant.
    open_ends = [(min(_ends_in_s(burn), 10**9), burn.hourly / 3600) for burn in burns]
    for until_s, _ in sorted(open_ends):
        rate = sum(each for ends_s, each in open_ends if ends_s > at_s)
        if rate * (until_s - at_s) >= left:
            meets = now + timedelta(seconds=at_s + left / rate)
            return meets if end is None or meets < end else None
        left -= rate * (until_s - at_s)
        at_s = until_s
    return None


def _ends_in_s(burn: Burn) -> float:
    """Return the seconds until the job ends or meets its own limit."""
    done_in_s = burn.done.in_s if burn.done is not None else None
    return min(in_s for in_s in (done_in_s, burn.limit_in_s, float(10**9)) if in_s is not None)
