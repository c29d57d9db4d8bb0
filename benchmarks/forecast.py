"""How often a job ends where it was forecast, on clouds that are somewhere in the ranges of what is known.

Nothing was fitted to these jobs: each kind of job runs on clouds of its own draws and seeds, and the forecast knows
neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean, median

import numpy as np

from benchmarks import Figure
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import configuration_of, forecast
from tests.cloud.test_forecast import HOPPER, PLENTY, spec
from tests.cloud.test_forecast_whole_jobs import A_JOB_OF_EACH_KIND
from tests.cloud.unlearned import really
from training.rl.environments.expectations import expectation_of

JOBS = 40
_FIRST_SEED = 7_000


def measure(quick: bool = False) -> Iterator[Figure]:
    """Forty jobs; ten with `quick`."""
    inside: dict[str, list[bool]] = {"time": [], "cost": []}
    errors: dict[str, list[float]] = {"time": [], "cost": []}
    jobs = 10 if quick else JOBS
    for number in range(jobs):
        for what, within, error in _job(number):
            inside[what].append(within)
            errors[what].append(error)
    for what in ("time", "cost"):
        share, middle = 100 * fmean(inside[what]), 100 * median(errors[what])
        yield Figure(f"{what}: of {jobs} forecasts inside p10 to p90", share, "%", at_least=70, at_most=90)
        yield Figure(f"{what}: median error of the middle", middle, "%", at_most=20)


def _job(number: int) -> Iterator[tuple[str, bool, float]]:
    """One job that runs on a cloud of its own: for time and cost, whether it was inside and how far off."""
    changes, bought = A_JOB_OF_EACH_KIND[number % len(A_JOB_OF_EACH_KIND)]
    training = spec(**HOPPER | changes)
    options = SimulatedOptions(seed=_FIRST_SEED + number, **bought)
    found = forecast(training, options, PLENTY)
    rng = np.random.default_rng(_FIRST_SEED + number)
    scene = configuration_of(training, options)
    drawn = scene.at({name: float(rng.triangular(0, 0.5, 1)) for name in scene.uncertain()})
    expected = expectation_of(training.environment.id)
    steps = round(rng.triangular(expected.shortest, expected.usual, expected.longest + 1e-9))
    ended = really(training, options, drawn.profile, drawn.stack, episode_steps=lambda round_no: steps)
    for what, band, true in (("time", found.minutes, ended.minutes), ("cost", found.dollars, ended.usd)):
        yield what, bool(band.p10 <= true <= band.p90), abs(band.p50 / true - 1.0)
