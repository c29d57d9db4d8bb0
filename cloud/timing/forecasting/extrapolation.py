"""From a trial of a few rounds to the whole run: when its stop rule or its budget ends it, and its counts then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, floor, inf

import numpy as np

from cloud.timing.forecasting.bill import ForecastBill
from cloud.timing.forecasting.concurrency import Count, Counts, no_counts
from cloud.timing.forecasting.plan import ActorPlan
from cloud.timing.forecasting.trial import Trial
from cloud.timing.virtual_time import NS
from training.tasks.training import Training

MOST_ROUNDS = 1e11


@dataclass(frozen=True)
class Outlook:
    """How the job ends by one extrapolation: `whole_picodollars` is its cost without a budget."""

    ends_by: str
    rounds: float
    counts: Counts
    parts: Mapping[str, float]
    whole_picodollars: float
    longest_round_s: float

    @property
    def minutes(self) -> float:
        return float(self.counts[Count.TIME_NS]) / NS / 60

    @property
    def picodollars(self) -> float:
        return sum(self.parts.values())


class Extrapolation:
    """The counts after any number of rounds: sums over stretches of rounds with the same number of actors."""

    def __init__(self, training: Training, plan: ActorPlan, trial: Trial) -> None:
        self._training = training
        self._trial = trial
        self._begins = np.append(plan.begins, MOST_ROUNDS)
        per_round = np.array([np.interp(plan.actors, trial.anchors, column) for column in trial.steady.T])
        self._per_round: Counts = per_round
        until = np.cumsum(per_round * np.diff(self._begins), axis=1)
        self._sums: Counts = np.concatenate([no_counts()[:, None], until], axis=1)
        rises = plan.rises
        # The first round's new actors start together with those that were tried.
        later = np.arange(len(rises)) > 0
        self._rising = np.concatenate([[0.0], np.cumsum((rises > 0) & later)])
        self._risen = np.concatenate([[0.0], np.cumsum(rises)])

    def after(self, rounds: float, *, ended: bool = True) -> Counts:
        """Return all counts after this many rounds; `ended`: including the run's end."""
        stretch = max(0, int(np.searchsorted(self._begins, rounds, side="left")) - 1)
        trial = self._trial
        counts = self._sums[:, stretch] + self._per_round[:, stretch] * (rounds - self._begins[stretch])
        counts += trial.first
        counts += self._risen[stretch + 1] * trial.rise_each
        counts[Count.TIME_NS] += self._rising[stretch + 1] * trial.rise_ns
        every, beside = self._training.evaluation.every_rounds, self._training.loop.judges_beside
        # One that would run beside the next round is not started after the last one.
        counts += (ceil(rounds / every) - 1 if ended and beside else floor(rounds / every)) * trial.evaluation
        if ended and (beside or rounds % every):
            counts += trial.last
        at_least_nothing: Counts = np.maximum(counts, 0.0)
        return at_least_nothing

    @property
    def longest_round_s(self) -> float:
        """The time of a round with the most actors."""
        return float(self._per_round[Count.TIME_NS].max()) / NS

    def rounds_until(self, count: Count, amount: float) -> float:
        """Return after how many whole rounds `amount` is reached; infinite if never."""

        def reached(rounds: float) -> bool:
            # Slightly less is enough: sums of floats are not exact.
            return bool(self.after(rounds, ended=False)[count] >= amount * (1 - 1e-9))

        return least_rounds(reached, MOST_ROUNDS)

    def rounds_of_steps(self, steps: float) -> float:
        """Return after how many rounds the run has this many steps. It leaves an epoch at that point."""
        whole = self.rounds_until(Count.STEPS, steps)
        if whole == inf or not self._training.loop.over_epochs:
            return whole
        before, after = (float(self.after(at, ended=False)[Count.STEPS]) for at in (whole - 1, whole))
        return whole - 1 + min(1.0, (steps - before) / (after - before))


def least_rounds(reached: Callable[[float], bool], most: float) -> float:
    """Return the least whole number of rounds, at least 1, for which `reached` is true; infinite if `most` is."""
    if not reached(most):
        return inf
    low, high = 0.0, 1.0
    while not reached(high):
        low, high = high, min(most, high * 4)
    while high - low > 1:
        middle = float((low + high) // 2)
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def outlook(
    training: Training,
    extrapolation: Extrapolation,
    bill: ForecastBill,
    limit_picodollars: float,
    actors: int,
    least: int,
) -> Outlook:
    """Return the outlook to the first known end of the stop rule, or to the budget. The job only begins if the budget
    has `least`.
    """
    ends = {"steps": inf, "rounds": inf, "minutes": inf}
    stop = training.stop
    if stop.progress_limit is not None:
        ends["steps"] = extrapolation.rounds_of_steps(stop.progress_limit)
    if stop.rounds is not None:
        ends["rounds"] = float(stop.rounds)
    if stop.minutes is not None:
        ends["minutes"] = extrapolation.rounds_until(Count.TIME_NS, stop.minutes * 60 * NS)
    ends_by = min(ends, key=lambda name: ends[name])
    if ends[ends_by] == inf:
        ends_by = "nothing"
    rounds = min(ends.get(ends_by, inf), MOST_ROUNDS)
    whole = sum(bill.parts(extrapolation.after(rounds)).values())
    affordable = 0.0
    if least <= limit_picodollars:
        affordable = _affordable(training, extrapolation, bill, limit_picodollars, actors, rounds)
    if affordable < rounds:
        ends_by, rounds = "budget", affordable
    counts = extrapolation.after(rounds, ended=ends_by != "budget") if rounds else no_counts()
    return Outlook(ends_by, rounds, counts, bill.parts(counts), whole, extrapolation.longest_round_s)


def _affordable(
    training: Training,
    extrapolation: Extrapolation,
    bill: ForecastBill,
    limit: float,
    actors: int,
    rounds: float,
) -> float:
    """Return how many of the rounds are made before the ledger refuses: each time the worst case must still fit.

    The first always does.
    """
    every = training.evaluation.every_rounds
    if every <= rounds and _cost(extrapolation, bill, every) + bill.first_evaluation(actors) > limit:
        rounds = float(every)
    usable = limit - bill.kept_back(actors, extrapolation.longest_round_s)
    if _cost(extrapolation, bill, rounds) <= usable:
        return rounds
    return max(1.0, least_rounds(lambda at: _cost(extrapolation, bill, at) > usable, rounds) - 1)


def _cost(extrapolation: Extrapolation, bill: ForecastBill, rounds: float) -> float:
    return sum(bill.parts(extrapolation.after(rounds, ended=False)).values())
