"""Forecasts a job's time and cost before it runs: ranges over chance and over numbers that are uncertain.

A few rounds are simulated, with work counted by arithmetic from the spec, many times over: each time with another
seed of chance, and with each uncertain number of the profile and the stack elsewhere in its range, more often near
its middle. First rounds, with their cold starts, are counted separately from later ones, which make up the rest of
the run. The same spec always has the same forecast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
import numpy.typing as npt

from cloud.money.billing.price_book import PICODOLLARS_PER_USD
from cloud.platforms.options import PlatformOptions
from cloud.timing.forecasting.bill import ForecastBill, forecast_parts
from cloud.timing.forecasting.concurrency import AllCallsFail, Count
from cloud.timing.forecasting.configuration import Configuration, Name, Scale
from cloud.timing.forecasting.explanation import ForecastFacts, relevant, sentences, title_of
from cloud.timing.forecasting.extrapolation import MOST_ROUNDS, Extrapolation, Outlook, outlook
from cloud.timing.forecasting.first_round import first_round
from cloud.timing.forecasting.places import configuration_of
from cloud.timing.forecasting.plan import (
    ActorPlan,
    Unforeseeable,
    assumed_plan,
    plan_of,
    possible_actors,
    shrinking,
)
from cloud.timing.forecasting.result import Band, Forecast, Matter, NoForecast
from cloud.timing.forecasting.trial import Trial, TrialEffort, run_trial
from cloud.timing.forecasting.workload import spaces_of
from cloud.timing.numbers.profile import Pool
from cloud.timing.numbers.quantity import Quantity
from training.engine.seeds import derive
from training.rl.environments.expectations import expectation_of
from training.scaling.plan import Bounds
from training.spec import TrainingSpec
from training.tasks.kinds import task_of
from training.tasks.training import Training

_CALLS = 14_000
_DRAWS = (8, 24)
_STEADY_AT_MOST = 24
_WARM_UP_AT_MOST = 12
_EVALUATION_CALLS = 16
_MATTERING = 3
_RANKED_FLEET = 8
_ACTORS: Name = ("actors",)
_TRIAL: Name = ("episode",)


def forecast(training: Training, options: PlatformOptions, budget_picodollars: int) -> Forecast:
    """Return the forecast of this spec on this platform. Raises NoForecast."""
    return forecast_in(configuration_of(training, options), training, budget_picodollars)


def first_round_picodollars(training: Training, options: PlatformOptions, actors: int | None = None) -> int:
    """Return what must be free before anything begins: all that the first round may cost at worst.

    `actors`: its number of actors, if the scaling policy's first decision does not determine it.
    """
    return first_round(
        configuration_of(training, options), training, actors or _first_actors(training)
    ).picodollars


def _first_actors(training: Training) -> int:
    return training.scaling.decide((), Bounds(), derive(training.seed, "scaling", 1), training.score).actors


def forecast_in(configuration: Configuration, training: Training, budget_picodollars: int) -> Forecast:
    """Return the forecast of a job in any configuration. Raises NoForecast."""
    try:
        return _Forecaster(configuration, training, budget_picodollars).forecast()
    except AllCallsFail:
        raise NoForecast(
            f"Calls would not come back within their {training.longest_call_s:g} s, so that the job would stop."
            f" Ask for fewer {training.progress_unit} per call, or for a longer longest call."
        ) from None


class _Forecaster:
    """`_plan` is None where the scaling policy depends on what only training shows."""

    def __init__(self, configuration: Configuration, training: Training, budget_picodollars: int) -> None:
        self._configuration = configuration
        self._training = training
        self._budget = budget_picodollars
        self._spaces, self._known = spaces_of(training)
        self._bill = ForecastBill(configuration.tariff, training)
        self._least = first_round(configuration, training, _first_actors(training)).picodollars
        self._unread = ""
        try:
            self._plan: ActorPlan | None = plan_of(training, self._most_rounds())
        except Unforeseeable as error:
            self._plan, self._unread = None, str(error)

    def forecast(self) -> Forecast:
        stop = self._training.stop
        if (
            self._bill.costs_nothing
            and stop.progress_limit is None
            and stop.rounds is None
            and stop.minutes is None
        ):
            raise NoForecast(
                "How long this takes cannot be predicted: it ends when it has learned enough, and nothing else ends it."
                f" Set {self._training.progress_unit}, {self._training.round_name}s or time."
            )
        uncertain = {
            name: quantity
            for name, quantity in self._configuration.uncertain().items()
            if relevant(name, self._training, self._configuration)
        }
        outlooks = self._outlooks(uncertain)
        matters = self._matters(uncertain)
        hits = float(np.mean([end.ends_by == "budget" for end in outlooks]))
        usual = sorted(outlooks, key=lambda end: end.minutes)[len(outlooks) // 2]
        facts = ForecastFacts(
            training=self._training,
            configuration=self._configuration,
            spaces_known=self._known,
            unread=self._unread,
            actors=possible_actors(self._training),
            shrinking=shrinking(self._training),
            influential=tuple(name for name, _ in matters),
        )
        return Forecast(
            minutes=Band.of([end.minutes for end in outlooks]),
            dollars=_dollars([min(end.picodollars, self._budget) for end in outlooks]),
            whole_dollars=_dollars([end.whole_picodollars for end in outlooks]),
            parts={
                part.key: _dollars([end.parts[part.key] for end in outlooks]) for part in forecast_parts()
            },
            steps=Band.of([end.counts[Count.STEPS] for end in outlooks]),
            rounds=Band.of([ceil(end.rounds) for end in outlooks]),
            calls=Band.of([end.counts[Count.CALLS] for end in outlooks]),
            cold_starts=Band.of([end.counts[Count.COLD] for end in outlooks]),
            ends_by="budget" if hits > 0.5 else usual.ends_by,
            budget_share=hits,
            kept_back=self._bill.kept_back(self._most_actors, usual.longest_round_s) / PICODOLLARS_PER_USD,
            least_budget=self._least / PICODOLLARS_PER_USD,
            costs_nothing=self._bill.costs_nothing,
            simulated=self._configuration.profile.region != "here",
            assumptions=sentences(facts),
            matters=tuple(matter for _, matter in matters),
        )

    @property
    def _most_actors(self) -> int:
        return int(self._plan.actors.max()) if self._plan is not None else possible_actors(self._training)[1]

    def _most_rounds(self) -> float:
        stop = self._training.stop
        rounds = stop.rounds if stop.rounds is not None else MOST_ROUNDS
        if stop.progress_limit is not None:
            rounds = min(rounds, ceil(stop.progress_limit / self._training.progress_a_call))
        return rounds

    def _outlooks(self, uncertain: Mapping[Name, Quantity]) -> list[Outlook]:
        """Return one outlook a draw. Over all draws, each uncertain number is once in each of equal parts of its
        range.
        """
        most = self._most_actors
        warm_up = self._warm_up()
        scale = Scale.of(self._training, most, warm_up + 2)
        anchors = (self._plan or self._some_plan(0.5)).anchors
        draws, steady = self._effort(scale, anchors, warm_up)
        effort = TrialEffort(warm_up, steady)
        rng = np.random.default_rng(0)
        names = [*uncertain, _ACTORS, _TRIAL]
        places = {name: _likely((rng.permutation(draws) + 0.5) / draws) for name in names}
        works = scale.works(self._training)
        outlooks = []
        for draw in range(draws):
            at = {name: float(places[name][draw]) for name in names}
            configuration = self._configuration.at(at).scaled_down(scale.fewer)
            plan = self._plan or self._some_plan(at[_ACTORS])
            trial = run_trial(
                configuration,
                works,
                self._training.loop,
                scale,
                plan.anchors,
                effort,
                self._trial_steps(at[_TRIAL]),
                seed=draw,
            )
            outlooks.append(self._outlook(plan, trial))
        return outlooks

    def _outlook(self, plan: ActorPlan, trial: Trial) -> Outlook:
        extrapolation = Extrapolation(self._training, plan, trial)
        result = outlook(
            self._training, extrapolation, self._bill, self._budget, int(plan.actors.max()), self._least
        )
        if result.ends_by == "nothing":
            raise NoForecast(
                f"This job would run for years. Set {self._training.progress_unit},"
                f" {self._training.round_name}s or time."
            )
        return result

    def _warm_up(self) -> int:
        """Return the rounds until the steady state: late actors of a pool have their first call in a second round,
        and asynchronous actors first fill the queue of the learner.
        """
        loop = self._training.loop
        if not loop.waits_for_slowest:
            return min(_WARM_UP_AT_MOST, loop.versions_apart + 2)
        if loop.gradients is not None:
            # The first round holds no gradients.
            return 2
        return 2 if isinstance(self._configuration.profile.actors, Pool) else 1

    def _effort(self, scale: Scale, anchors: Sequence[int], warm_up: int) -> tuple[int, int]:
        """Return the number of draws and of steady rounds: about as many calls in all for any spec."""
        loop = scale.loop(self._training.loop)
        calls = [loop.learns_from(scale.actors(actors)) + 1 for actors in anchors]
        if loop.over_epochs:
            an_epoch = scale.works(self._training).calls_an_epoch
            calls = [2 * an_epoch] * len(anchors)
        if (gradients := loop.gradients) is not None:
            # At worst each gradient is a version by itself.
            passes = task_of(self._training).passes
            calls = [one + 2 * passes * ceil(one / gradients.trajectories_per_gradient) for one in calls]
        beginning = warm_up * calls[0] + sum(calls[1:]) + _EVALUATION_CALLS
        rounds = (_CALLS / _DRAWS[1] - beginning) // sum(calls)
        steady = int(min(_STEADY_AT_MOST, max(2 if len(anchors) == 1 else 1, rounds)))
        a_draw = beginning + steady * sum(calls)
        return int(min(_DRAWS[1], max(_DRAWS[0], _CALLS // a_draw))), steady

    def _some_plan(self, quantile: float) -> ActorPlan:
        """Return a plan for a policy that cannot be foreseen: some of its possible numbers, round by round."""
        return assumed_plan(self._training, self._most_rounds(), quantile)

    def _trial_steps(self, quantile: float) -> float:
        if not isinstance(self._training, TrainingSpec):
            return 0.0
        steps = expectation_of(self._training.subject, pictures=self._spaces.pictures)
        length = Quantity(
            value=steps.usual, low=steps.shortest, high=steps.longest, source="expected", kind="assumed"
        )
        return length.at(quantile)

    def _matters(self, uncertain: Mapping[Name, Quantity]) -> list[tuple[Name, Matter]]:
        """Return the numbers whose ranges move minutes or dollars most, each moved by itself, with a small fleet."""
        plan = self._plan or self._some_plan(0.5)
        actors = int(plan.actors[-1])
        usual = ActorPlan.always(actors)
        scale = Scale.of(self._training, actors, 2, _RANKED_FLEET)
        fewer = max(scale.fewer, actors // _RANKED_FLEET)
        scale = Scale(fewer, scale.shorter)
        works = scale.works(self._training)

        def ends(name: Name | None, quantile: float) -> tuple[float, float]:
            at = {} if name is None else {name: quantile}
            steps = self._trial_steps(at.get(_TRIAL, 0.5))
            configuration = self._configuration.at(at).scaled_down(fewer)
            effort = TrialEffort(1, 1)
            result = self._outlook(
                usual, run_trial(configuration, works, self._training.loop, scale, [actors], effort, steps, 0)
            )
            return result.minutes, result.whole_picodollars / PICODOLLARS_PER_USD

        ranked = []
        middle = ends(None, 0.5)
        for name in [*uncertain, _TRIAL]:
            low, high = ends(name, 0.0), ends(name, 1.0)
            spreads = [
                abs(one - other) / usual_one if usual_one else 0.0
                for one, other, usual_one in zip(low, high, middle, strict=True)
            ]
            matter = Matter(title_of(name), (low[0], high[0]), (low[1], high[1]))
            ranked.append((max(spreads), name, matter))
        ranked.sort(key=lambda row: (-row[0], row[1]))
        return [(name, matter) for spread, name, matter in ranked[:_MATTERING] if spread > 0.005]


def _likely(uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return quantiles of a range that are likelier near its middle, which is the value (a triangle over the range)."""
    from_middle = 2.0 * uniform - 1.0
    return 0.5 + 0.5 * np.sign(from_middle) * (1.0 - np.sqrt(1.0 - np.abs(from_middle)))


def _dollars(picodollars: Sequence[float]) -> Band:
    return Band.of([amount / PICODOLLARS_PER_USD for amount in picodollars])


__all__ = [
    "Band",
    "Forecast",
    "Matter",
    "NoForecast",
    "configuration_of",
    "first_round_picodollars",
    "forecast",
    "forecast_in",
]
