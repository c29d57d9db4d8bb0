"""A running job's prediction from its own rounds: when it ends, what it costs, and the score it has then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from statistics import fmean, median, pstdev

from django.db.models import Avg, F, Q, Sum

from cloud.money.billing.price_book import PriceError, UnknownSku
from cloud.timing.forecast import NoForecast, configuration_of
from cloud.timing.forecasting.configuration import Configuration
from cloud.timing.forecasting.what_if import (
    Ends,
    JobProgress,
    JobTotals,
    Mishaps,
    RateChange,
    change_between,
    predict_end,
    rent_usd_a_second,
)
from training.scaling.fixed import Fixed
from training.statistics.curve_forecast import CurveBand, predict_score, smoothed
from training.tasks.kinds import task_of
from webapp.job_states import ACTIVE, Observed
from webapp.jobs.billing.burn_rate import JobPoint, at_this_pace, read_points
from webapp.jobs.launch.forecasts import forecast_of
from webapp.jobs.models import Job, Round
from webapp.jobs.spec import JobSpec
from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.money.models import RENT, Charge
from webapp.money.services import LimitTooLow, check_lower_limit

POINTS = 300
ROUNDS_AT_LEAST = 6
_RATES_OVER = 40
_LONGER = 100
_LENGTHS = ("env_steps", "samples", "epochs", "rounds", "minutes")
_WITHOUT_LIMIT = Decimal(1_000_000)


class NoPrediction(ValueError):
    """The job cannot be predicted. The text says why."""


@dataclass(frozen=True)
class WhatIf:
    """A prediction with what it is for. `actors` None: as the scaling policy decides."""

    actors: int | None
    limit_picodollars: int
    end: JobTotals
    score: CurveBand | None
    points: tuple[JobPoint, ...]


def predict(job: Job, *, actors: int | None, limit_picodollars: int | None = None) -> WhatIf:
    """Return the job's prediction with that number of actors and that limit (None: as they are). NoPrediction if there
    is none.
    """
    if job.observed not in ACTIVE or job.observed == Observed.DRAINING:
        raise NoPrediction("Only a job that runs can be predicted.")
    points = points_of(job)
    if len(points) < ROUNDS_AT_LEAST:
        raise NoPrediction(f"A prediction needs {ROUNDS_AT_LEAST} rounds; {len(points)} have ended.")
    limit = job.account.limit_picodollars if limit_picodollars is None else limit_picodollars
    if limit < job.account.limit_picodollars:
        _check_lower(job, limit)
    training = job.training_facts
    spec, configuration = _configured(job)
    progress = _progress(job, spec, configuration, points)
    change = _change(job, spec, configuration, progress, actors)
    ends = Ends(
        training.progress_limit,
        training.rounds_limit,
        training.minutes_limit,
        limit / PICODOLLARS_PER_USD,
        spec.training.evaluation.every_rounds,
    )
    end = predict_end(progress, ends, change)
    if end is None:
        raise NoPrediction(
            "Nothing that can be foreseen ends this job: it has no limit of steps, rounds or time."
        )
    scored = [(point.steps, point.score) for point in points if point.score is not None and point.steps > 0]
    score = predict_score(
        [steps for steps, _ in scored],
        [value for _, value in scored],
        end.steps.p50,
        higher_is_better=training.score.higher_is_better,
    )
    return WhatIf(actors, limit, end, score, tuple(points))


def _check_lower(job: Job, limit: int) -> None:
    try:
        check_lower_limit(job.account, limit)
    except LimitTooLow as refusal:
        raise NoPrediction(str(refusal)) from None


def _configured(job: Job) -> tuple[JobSpec, Configuration]:
    spec = job.readable_spec()
    if spec is None:
        raise NoPrediction("This version cannot read the job's spec.")
    try:
        return spec, configuration_of(spec.training, spec.platform)
    except (UnknownSku, PriceError) as error:
        raise NoPrediction(f"Without a price there is no prediction: {error}.") from None


def points_of(job: Job) -> list[JobPoint]:
    """Return the job after each round, or after every n-th and its last rounds."""
    every = (F("job__round_no") + POINTS) / POINTS
    recent = Q(round_no__gt=job.round_no - _RATES_OVER)
    rounds = Round.objects.filter(job=job).annotate(left=F("round_no") % every)
    return read_points(rounds.filter(Q(left=0) | recent)).get(job.pk, [])


def _progress(
    job: Job, spec: JobSpec, configuration: Configuration, points: Sequence[JobPoint]
) -> JobProgress:
    """Return where the job is, and its rates over the last rounds with about the same number of actors."""
    recent = at_this_pace(points[-_RATES_OVER - 1 :])
    if len(recent) < 3:
        recent = points[-3:]
    first, last = recent[0], recent[-1]
    steps = max(1.0, last.steps - first.steps)
    actors = fmean(point.actors for point in recent[1:])
    rent = rent_usd_a_second(configuration, actors)
    judging = task_of(spec.training).judging
    mishaps = Mishaps.of(configuration)
    rates = _rates(recent)
    typical = median if mishaps.are_rare(actors) else fmean
    calls = Charge.objects.filter(account=job.account, round_no__lte=last.round_no).exclude(kind=RENT)
    paid = calls.exclude(settled_picodollars=None).aggregate(
        whole=Sum("settled_picodollars", default=0),
        judged=Sum("settled_picodollars", filter=Q(kind=judging), default=0),
        recent=Sum(
            "settled_picodollars", filter=Q(round_no__gt=first.round_no) & ~Q(kind=judging), default=0
        ),
    )
    every = spec.training.evaluation.every_rounds
    pauses = [
        after.started_s - before.at_s
        for before, after in pairwise(points)
        if before.round_no % every == 0 and after.round_no == before.round_no + 1
    ]
    return JobProgress(
        steps=last.steps,
        rounds=last.round_no,
        time_s=last.at_s,
        spent_usd=paid["whole"] / PICODOLLARS_PER_USD + rent * last.at_s,
        seconds_a_step=typical(rates) if rates else 0.0,
        usd_a_step=paid["recent"] / PICODOLLARS_PER_USD / steps,
        steps_a_round=steps / max(1, last.round_no - first.round_no),
        doubt=_doubt(rates),
        actors=actors,
        rent_usd_a_second=rent,
        evaluation_s=fmean(pauses[-3:]) if pauses else None,
        evaluation_usd=paid["judged"] / PICODOLLARS_PER_USD / max(1, last.round_no // every),
        mishaps=mishaps,
    )


def _rates(points: Sequence[JobPoint]) -> list[float]:
    """Return the seconds a step between points. Rounds without a new step, which replayed data, count to the next."""
    rates, took_s, steps = [], 0.0, points[0].steps
    for point in points[1:]:
        took_s += point.took_s
        if point.steps > steps:
            rates.append(took_s / (point.steps - steps))
            took_s, steps = 0.0, point.steps
    return rates


def _doubt(rates: Sequence[float]) -> float:
    """Return the error of the rate of time as a share, from its variation between rounds without the slowest tenth."""
    kept = sorted(rates)[: max(2, len(rates) - max(1, len(rates) // 10))]
    if len(kept) < 2 or not fmean(kept):
        return 0.0
    return pstdev(kept) / fmean(kept) / float(len(kept) ** 0.5)


def _change(
    job: Job, spec: JobSpec, configuration: Configuration, progress: JobProgress, actors: int | None
) -> RateChange | None:
    before = max(1, round(progress.actors))
    if actors is None or before == actors:
        return None
    try:
        now, then = (forecast_of(_with_actors(spec, count)) for count in (before, actors))
    except (NoForecast, ValueError) as error:
        raise NoPrediction(
            f"How another number of actors changes this job cannot be forecast. {error}"
        ) from None
    cold_usd = _cold_usd(job, spec)
    return change_between(configuration, spec.training, now, then, before, actors, cold_usd)


def _cold_usd(job: Job, spec: JobSpec) -> float | None:
    """Return what the start of one actor cost: what its call of the first round cost more than one of the second."""
    kind = task_of(spec.training).sampling
    calls = Charge.objects.filter(
        account=job.account, kind=kind, round_no__in=(1, 2), settled_picodollars__gt=0
    )
    mean = {
        row["round_no"]: row["mean"]
        for row in calls.values("round_no").annotate(mean=Avg("settled_picodollars"))
    }
    if len(mean) < 2:
        return None
    return max(0.0, float(mean[1] - mean[2])) / PICODOLLARS_PER_USD


def _with_actors(spec: JobSpec, actors: int) -> JobSpec:
    """Return the job with this number of actors in each round, without a limit, and so long that its start does not
    count. All seeds share the forecast.
    """
    stop = spec.training.stop
    longer = {
        name: _LONGER * value for name, value in stop if isinstance(value, int | float) and name in _LENGTHS
    }
    changes = {"scaling": Fixed(actors=actors), "seed": 0, "stop": stop.model_copy(update=longer)}
    training = spec.training.model_copy(update=changes)
    return spec.model_copy(
        update={"training": training, "budget_usd": _WITHOUT_LIMIT, "tags": (), "group": ""}
    )


def final_score(job: Job) -> float | None:
    """Return the smoothed score of the job's rounds, as predictions mean it."""
    scores = [point.score for point in points_of(job) if point.score is not None]
    return float(smoothed(scores)[-1]) if scores else None
