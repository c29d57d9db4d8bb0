"""The worst case of a job's first round: the budget must cover it before anything begins.

The check before a launch, the checklist beside the form, the forecast and the check before a run's first round use
this.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from cloud.money.pricing import CallPrice, total
from cloud.money.rents.job import rent_until
from cloud.timing.forecasting.calls import first_call
from cloud.timing.forecasting.configuration import Configuration
from cloud.timing.forecasting.worst_times import WorstTimes, worst_times
from training.calls.update import UPDATE_ATTEMPTS
from training.engine.messages import Call
from training.engine.reports import Usage
from training.loops.asynchronous import FAILURES_ALLOWED_PER_ACTOR
from training.loops.staleness_aware import StalenessAware
from training.tasks.kinds import task_of
from training.tasks.training import Training

_BOTH_WAYS = 2
_A_MOMENT_S = 0.001


@dataclass(frozen=True)
class FirstRound:
    """Picodollars: what calls may have cost and reserve at one moment, and the rent due within `longest_s`."""

    calls: int
    rent: int
    longest_s: float

    @property
    def picodollars(self) -> int:
        return self.calls + self.rent


def first_round(configuration: Configuration, training: Training, actors: int) -> FirstRound:
    """Return the worst case of a round with this many actors, before any call was measured."""
    times = worst_times(configuration, training, actors)
    longest_s = _longest_s(training, times, actors)
    return FirstRound(
        calls=_calls(configuration, training, times, actors, longest_s),
        rent=rent_until(configuration.tariff, actors, longest_s),
        longest_s=longest_s,
    )


def _longest_s(training: Training, times: WorstTimes, actors: int) -> float:
    """Return the seconds from the first slice of rent to the end of the round, with all retries."""
    updating_s = UPDATE_ATTEMPTS * times.update_s
    if (gradients := training.loop.gradients) is not None:
        updating_s = _learning_s(training, gradients, times, actors)
    sampled_s = times.actors_ready_s + _sampling_s(training, times, actors, training.loop.learns_from(actors))
    learned_s = max(sampled_s, times.learner_ready_s) + updating_s
    if training.loop.collects == "beside learning":  # the next data is sampled beside the first update
        return learned_s + _sampling_s(training, times, actors, actors)
    return learned_s


def _sampling_s(training: Training, times: WorstTimes, actors: int, fragments: int) -> float:
    """Return the time by which queued calls are done, in any order (Graham's bound on list scheduling)."""
    places = min(actors, times.at_once)
    attempts = _attempts(training, times)
    if not training.loop.waits_for_slowest and times.overruns and times.tries > 1:
        # Calls that are cut off are sent again, as long as one of so many in a row returns data.
        fragments *= FAILURES_ALLOWED_PER_ACTOR * actors + 1
        attempts = training.attempts
    turns = (fragments + places - 1) / places if fragments > places else 1.0
    return turns * attempts * times.attempt_s


def _gradients(training: Training, loop: StalenessAware, actors: int) -> int:
    """Return how many gradients a round has, without those that are tried again."""
    return ceil(actors / loop.trajectories_per_gradient) * task_of(training).passes


def _learning_s(training: Training, loop: StalenessAware, times: WorstTimes, actors: int) -> float:
    """Return the time of all passes over a round's slices, each gradient a version by itself at worst."""
    gradients = _gradients(training, loop, actors)
    turns = ceil(gradients / min(loop.learners, max(1, times.at_once)))
    turns = max(turns, task_of(training).passes)
    return training.attempts * turns * times.gradient_s + UPDATE_ATTEMPTS * gradients * times.update_s


def _learning(
    configuration: Configuration, training: Training, loop: StalenessAware, times: WorstTimes, actors: int
) -> int:
    """Return what a round's gradients and versions may cost, with those in flight reserved in full."""
    gradients = _gradients(training, loop, actors)
    gradient, version = first_call(training, "gradient"), first_call(training, "apply")
    tariff = configuration.tariff
    price = tariff.actor if gradient.where == "actor" else tariff.learner
    attempted = training.attempts * gradients * _paid(price, gradient, times.gradient_billed_s)
    made = UPDATE_ATTEMPTS * gradients * _paid(tariff.learner, version, times.update_billed_s)
    return attempted + loop.learners * tariff.worst_case(gradient) + made + tariff.worst_case(version)


def _attempts(training: Training, times: WorstTimes) -> int:
    """Return how often a call may be attempted until its outcome counts."""
    return times.tries * training.attempts


def _calls(
    configuration: Configuration, training: Training, times: WorstTimes, actors: int, longest_s: float
) -> int:
    """Return the most expensive moment: all earlier attempts are paid, and calls in flight are reserved in full."""
    attempts, actor, learner = (
        _attempts(training, times),
        configuration.tariff.actor,
        configuration.tariff.learner,
    )
    task = task_of(training)
    sampling, update = first_call(training, task.sampling), first_call(training, task.learning)
    whole = configuration.tariff.worst_case(sampling)
    attempted = _paid(actor, sampling, times.billed_s)
    in_flight = actors * ((attempts - 1) * attempted + whole)
    learning = (UPDATE_ATTEMPTS - 1) * _paid(learner, update, times.update_billed_s)
    learning += configuration.tariff.worst_case(update)
    loop = training.loop
    if (gradients := loop.gradients) is not None:
        learning = _learning(configuration, training, gradients, times, actors)
        if not gradients.actors_wait:
            # Actors go on for as long as the round lasts.
            return learning + in_flight + _by_time(actor, sampling, actors, longest_s)
    if not loop.waits_for_slowest:
        calls = attempts * loop.learns_from(actors) * (2 + loop.versions_apart)
        # An actor does one thing at a time, so it is billed for at most the whole time, and for each call's fee.
        by_time = _by_time(actor, sampling, actors, longest_s)
        by_time += calls * _price(actor, sampling, _A_MOMENT_S)
        # Attempts that are cut off make no data, so there may be any number of them.
        sampled = by_time if times.overruns else min(by_time, calls * attempted)
        return sampled + in_flight + learning
    sampled = actors * attempts * attempted
    if loop.collects == "beside learning":
        return sampled + in_flight + learning
    return max(in_flight, sampled + learning)


def _by_time(price: CallPrice | None, call: Call, actors: int, longest_s: float) -> int:
    """Return what actors may cost that are busy for this long, with the fees of calls that run to their deadlines."""
    calls = actors * ceil(longest_s / call.deadline_s)
    return actors * _price(price, call, longest_s) + calls * _price(price, call, _A_MOMENT_S)


def _paid(price: CallPrice | None, call: Call, billed_s: float) -> int:
    """Return what a call may cost that is billed for this long, or until its deadline."""
    return min(price.worst_case(call), _price(price, call, billed_s)) if price is not None else 0


def _price(price: CallPrice | None, call: Call, billed_s: float) -> int:
    """Return the price of this much time, by storage both ways, on the more expensive kind of instance."""
    if price is None:
        return 0
    usages = [Usage(billed_s=billed_s, provisioned=kept, detours=_BOTH_WAYS) for kept in (False, True)]
    return max(total(price.lines(call, usage) or ()) for usage in usages)
