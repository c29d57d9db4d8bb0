"""When a running job ends and what it costs then, as it is or with another number of actors or another limit.

The rates are the job's own, measured over its last rounds; rent of machines is added by the second, because ledgers
book it in slices. A forecast only tells how rates change with the number of actors: its own error is nearly the same
for both numbers, and drops out of their ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from cloud.money.billing.price_book import PICODOLLARS_PER_USD
from cloud.money.pricing import total
from cloud.timing.forecasting.bill import ForecastBill
from cloud.timing.forecasting.configuration import Configuration
from cloud.timing.forecasting.result import Band, Forecast
from cloud.timing.numbers.profile import Functions, Pool
from cloud.timing.virtual_time import NS
from training.tasks.training import Training

Doubles = npt.NDArray[np.float64]
_DRAWS = 2_000
_RATE_DRIFTS = 0.05
"""The standard deviation of a rate's change over the rest of a run, as a share: work grows, clouds vary."""
_PER_DOUBLING = 0.06
"""The standard deviation of a forecast ratio of rates, as a share, for each doubling of the number of actors."""
_SHARED = 0.8
"""The correlation of the errors of time and cost: most cost is time of actors."""
_EVALUATIONS_GROW = 1.2
_EVALUATIONS_VARY = 0.35
_UNSEEN_EVALUATIONS_VARY = 0.8
"""Of an evaluation's time: the change of its middle, and the standard deviation of its logarithm."""
_STARTS_VARY = 0.35
_SOFTWARE_VARIES = 0.08
_RARE = 0.3
"""Mishaps a round below which their number is drawn apart."""


@dataclass(frozen=True)
class Mishaps:
    """Calls that fail or come late: how many of all, and how long their round then waits."""

    share: float
    delay_s: float

    @staticmethod
    def of(configuration: Configuration) -> Mishaps:
        chance, fleet = configuration.profile.chance, configuration.profile.actors
        again_s = fleet.cold_s.value if isinstance(fleet, Functions) else 0.0
        delay_s = max(chance.late_s.value, again_s)
        return Mishaps(chance.failure_share.value + chance.late_share.value, delay_s)

    def are_rare(self, actors: float) -> bool:
        """Return whether most rounds have none, so that rates over a few rounds do not know them."""
        return self.share * actors < _RARE


@dataclass(frozen=True)
class JobProgress:
    """A running job at its last round: totals, rates over the last rounds, and their error as a share.

    Money includes rent up to that moment, but rates leave out evaluations and rent, which are given by the second:
    `evaluation_s` and `evaluation_usd` are those of one evaluation, None before the first. `actors` is the mean number
    over those rounds. `mishaps` are those that the rates leave out.
    """

    steps: float
    rounds: float
    time_s: float
    spent_usd: float
    seconds_a_step: float
    usd_a_step: float
    steps_a_round: float
    doubt: float
    actors: float
    rent_usd_a_second: float = 0.0
    evaluation_s: float | None = None
    evaluation_usd: float = 0.0
    mishaps: Mishaps | None = None


@dataclass(frozen=True)
class Ends:
    """What ends the job: totals of steps, rounds and minutes (None: no limit), and dollars. It is evaluated after every
    so many rounds, and at its end.
    """

    steps: float | None
    rounds: float | None
    minutes: float | None
    limit_usd: float
    evaluated_every: int = 1_000_000_000


@dataclass(frozen=True)
class RateChange:
    """How rates change with another number of actors, by forecasts of the same job: ratios of time, cost and round.

    `start_s` is how long the round with new actors waits for them, and `start_usd` what they cost meanwhile.
    """

    time: float = 1.0
    cost: float = 1.0
    round_steps: float = 1.0
    doublings: float = 0.0
    kept_back_usd: float = 0.0
    start_s: float = 0.0
    start_usd: float = 0.0
    rent_usd_a_second: float | None = None
    actors: float | None = None


@dataclass(frozen=True)
class JobTotals:
    """Totals at the job's end. `ends_by`: steps, rounds, minutes or budget."""

    time_s: Band
    usd: Band
    steps: Band
    ends_by: str


def rent_usd_a_second(configuration: Configuration, actors: float) -> float:
    """Return what rented machines cost in a second, busy or not."""
    tariff = configuration.tariff
    hour = float(sum(total(rent.lines(3600 * NS)) for rent in tariff.rents))
    if tariff.pool is not None:
        hour += actors * total(tariff.pool.actor_rent(1).lines(3600 * NS))
    return hour / 3600 / PICODOLLARS_PER_USD


def _start(
    configuration: Configuration, training: Training, more: float, cold_usd: float | None
) -> tuple[float, float]:
    """Return how long a round waits until so many more actors have started, and what they cost meanwhile.

    `cold_usd` is what the start of one actor cost earlier in this run; it holds the software's start as well. The
    slowest start counts for the time. Containers cost by the second whether they start or run.
    """
    fleet = configuration.profile.actors
    if more < 1:
        return 0.0, 0.0
    if isinstance(fleet, Pool):
        return _slowest(fleet.start_s.value, fleet.start_sigma.value, more), 0.0
    if not isinstance(fleet, Functions):
        return 0.0, 0.0
    second = ForecastBill(configuration.tariff, training).actor_second / PICODOLLARS_PER_USD
    cold_s = fleet.cold_s.value if cold_usd is None or not second else cold_usd / second
    return _slowest(cold_s, _SOFTWARE_VARIES, more), more * second * cold_s


def _slowest(middle_s: float, sigma: float, of: float) -> float:
    return middle_s * exp(sigma * NormalDist().inv_cdf(0.5 ** (1.0 / of)))


def change_between(
    configuration: Configuration,
    training: Training,
    before: Forecast,
    after: Forecast,
    actors_before: float,
    actors_after: float,
    cold_usd: float | None = None,
) -> RateChange:
    """Return how rates change between two long forecasts of one job, that differ in the actors alone.

    `cold_usd`: what the start of one function cost earlier in the run.
    """
    rents = [rent_usd_a_second(configuration, actors) for actors in (actors_before, actors_after)]

    def a_step(forecast: Forecast, rent: float) -> tuple[float, float, float]:
        steps, minutes = forecast.steps.p50, forecast.minutes.p50
        calls = max(0.0, forecast.whole_dollars.p50 - rent * minutes * 60)
        return minutes / steps, calls / steps, steps / max(1.0, forecast.rounds.p50)

    (time, cost, steps), (time_after, cost_after, steps_after) = (
        a_step(forecast, rent) for forecast, rent in zip((before, after), rents, strict=True)
    )
    wait_s, wait_usd = _start(configuration, training, actors_after - actors_before, cold_usd)
    return RateChange(
        time=time_after / time,
        cost=cost_after / cost if cost else 1.0,
        round_steps=steps_after / steps,
        doublings=abs(log(actors_after / actors_before)) / log(2.0),
        kept_back_usd=after.kept_back,
        start_s=wait_s,
        start_usd=wait_usd,
        rent_usd_a_second=rents[1],
        actors=actors_after,
    )


def predict_end(progress: JobProgress, ends: Ends, change: RateChange | None = None) -> JobTotals | None:
    """Return the prediction; None if nothing that is known ends the job."""
    change = change or RateChange()
    rng = np.random.default_rng(0)
    spread = np.hypot(max(progress.doubt, _RATE_DRIFTS), _PER_DOUBLING * change.doublings)
    normal = rng.standard_normal((4, _DRAWS))
    with_time = _SHARED * normal[0] + np.sqrt(1 - _SHARED**2) * normal[1]
    seconds = progress.seconds_a_step * change.time * np.exp(spread * normal[0])
    calls = progress.usd_a_step * change.cost * np.exp(spread * with_time)
    rent = progress.rent_usd_a_second if change.rent_usd_a_second is None else change.rent_usd_a_second
    round_steps = max(1e-9, progress.steps_a_round * change.round_steps)
    judged_s, judged_usd = _evaluation(progress, rent, seconds * round_steps, normal[2])
    once_s = change.start_s * np.exp(_STARTS_VARY * normal[3])
    # Evaluations are spread over the rounds here; which of them are made is counted below.
    a_step = 1.0 / (ends.evaluated_every * round_steps)
    usd = calls + rent * seconds + judged_usd * a_step
    spent = progress.spent_usd + rent * once_s + change.start_usd * np.exp(_STARTS_VARY * normal[3])
    left = {
        "steps": np.full(_DRAWS, inf if ends.steps is None else ends.steps - progress.steps),
        "rounds": np.full(
            _DRAWS, inf if ends.rounds is None else (ends.rounds - progress.rounds) * round_steps
        ),
        "minutes": (inf if ends.minutes is None else ends.minutes * 60 - progress.time_s - once_s)
        / (seconds + judged_s * a_step),
        "budget": _affordable(ends.limit_usd - spent - change.kept_back_usd, usd),
    }
    names = list(left)
    every = np.stack([np.maximum(0.0, left[name]) for name in names])
    first = every.argmin(axis=0)
    steps = every.min(axis=0)
    if not np.isfinite(steps).all():
        return None
    steps = np.where(first < 2, np.ceil(steps / round_steps - 1e-9) * round_steps, steps)  # rounds are whole
    judged = _evaluations_left(progress, ends, steps / round_steps, first < 3)
    late_s = _delays(progress, change, steps / round_steps, rng)
    time_s = progress.time_s + once_s + steps * seconds + judged * judged_s + late_s
    cost = spent + steps * (calls + rent * seconds) + judged * judged_usd + rent * late_s
    return JobTotals(
        time_s=Band.of(list(time_s)),
        usd=Band.of(list(np.minimum(ends.limit_usd, cost))),
        steps=Band.of(list(progress.steps + steps)),
        ends_by=names[int(np.bincount(first, minlength=len(names)).argmax())],
    )


def _evaluation(
    progress: JobProgress, rent: float, round_s: Doubles, normal: Doubles
) -> tuple[Doubles, Doubles]:
    """Return the seconds and the dollars of an evaluation. Before the first one, it is taken for a round."""
    if progress.evaluation_s is None:
        seconds = round_s * np.exp(_UNSEEN_EVALUATIONS_VARY * normal)
    else:
        seconds = _EVALUATIONS_GROW * progress.evaluation_s * np.exp(_EVALUATIONS_VARY * normal)
    return seconds, progress.evaluation_usd + rent * seconds


def _delays(progress: JobProgress, change: RateChange, rounds: Doubles, rng: np.random.Generator) -> Doubles:
    """Return how long rounds wait for calls that fail or come late, where that is too rare for rates to know it."""
    actors = progress.actors if change.actors is None else change.actors
    mishaps = progress.mishaps
    if mishaps is None or not mishaps.are_rare(actors):
        return np.zeros(_DRAWS)
    return np.asarray(mishaps.delay_s * rng.poisson(mishaps.share * actors * rounds), dtype=np.float64)


def _evaluations_left(
    progress: JobProgress, ends: Ends, rounds: Doubles, by_itself: npt.NDArray[np.bool_]
) -> Doubles:
    """Return how many evaluations are to come; a job that ends by itself is evaluated at its end as well."""
    last = progress.rounds + rounds
    scheduled = np.floor(last / ends.evaluated_every) - np.floor(progress.rounds / ends.evaluated_every)
    at_end = by_itself & (np.abs(last / ends.evaluated_every - np.round(last / ends.evaluated_every)) > 1e-6)
    left: Doubles = scheduled + at_end
    return left


def _affordable(left_usd: Doubles, usd_a_step: Doubles) -> Doubles:
    """Return the steps that the money pays, for each draw."""
    with np.errstate(divide="ignore"):
        steps: Doubles = np.where(usd_a_step > 0, np.maximum(0.0, left_usd) / usd_a_step, inf)
    return steps


def picodollars_of(band: Band) -> tuple[int, int, int]:
    """Return a band of dollars in whole picodollars."""
    low, middle, high = (round(dollars * PICODOLLARS_PER_USD) for dollars in (band.p10, band.p50, band.p90))
    return low, middle, high
