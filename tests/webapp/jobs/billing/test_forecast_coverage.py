"""How often what comes lies in the bands that a running job's page shows: 80 %, as the page means them.

Nothing was fitted to these jobs. Each runs to its end on a simulated cloud of its own draws; the forecast sees its
rounds so far, as the page does.
"""

from __future__ import annotations

from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
import pytest

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import configuration_of
from rig.stored_rounds import store_rounds
from tests.cloud.test_forecast import HOPPER
from tests.cloud.test_forecast import spec as training_of
from tests.cloud.test_forecast_whole_jobs import A_JOB_OF_EACH_KIND, JOBS_WITH_LEARNERS_THAT_ARE_FUNCTIONS
from tests.cloud.unlearned import Ended, really
from tests.factories import make_job
from training.engine.reports import RoundReport
from training.rl.environments.expectations import expectation_of
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import Observed
from webapp.jobs.billing.burn_rate import Burn, burn_of
from webapp.jobs.models import Job
from webapp.jobs.spec import JobSpec

RAMP = {"kind": "ramp", "actors_first": 4, "actors_last": 40, "over_rounds": 40}
KINDS = [
    kind
    for kind in A_JOB_OF_EACH_KIND + JOBS_WITH_LEARNERS_THAT_ARE_FUNCTIONS
    # A plan that changes the rate is not in the rounds so far; learners that share a machine need one with a GPU.
    if kind[0].get("scaling") != RAMP and "learner_lanes" not in kind[1]
]
SHARES = (0.25, 0.5, 0.75)
PLENTY = 10**15


class _Run(NamedTuple):
    job: Job
    rounds: list[RoundReport]
    ended: Ended


def _run(kind: tuple[dict[str, Any], dict[str, Any]], seed: int) -> _Run:
    changes, bought = kind
    training, options = training_of(**HOPPER | changes), SimulatedOptions(seed=seed, **bought)
    rng = np.random.default_rng(seed)
    scene = configuration_of(training, options)
    cloud = scene.at({name: float(rng.triangular(0, 0.5, 1)) for name in scene.uncertain()})
    expected = expectation_of(training.environment.id)
    steps = round(rng.triangular(expected.shortest, expected.usual, expected.longest + 1e-9))
    rounds: list[RoundReport] = []
    ended = really(
        training,
        options,
        cloud.profile,
        cloud.stack,
        episode_steps=lambda _: steps,
        on_round=rounds.append,
    )
    job = make_job(spec=JobSpec(training=training, platform=options, name="Covered"))
    store_rounds(job, [one.model_dump(mode="json") for one in rounds], SYSTEM_CLOCK.now())
    return _Run(job, rounds, ended)


def _forecast(run: _Run, share: float, limit: int) -> tuple[Burn | None, RoundReport]:
    """What the page knew after this share of the rounds, below this limit."""
    job = Job.objects.select_related("account").get(pk=run.job.pk)
    last = run.rounds[round(share * len(run.rounds)) - 1]
    job.observed, job.round_no = Observed.RUNNING, last.round_no
    job.account.limit_picodollars = limit
    return burn_of(job), last


def _end_of(report: RoundReport) -> tuple[float, int]:
    assert report.spend is not None
    return report.started_s + report.total_s, report.spend.by_now_picodollars


@pytest.mark.slow
@pytest.mark.django_db
def test_four_in_five_outcomes_lie_in_the_bands_of_running_jobs() -> None:
    runs = [_run(kind, 7_000 + 100 * again + at) for again in range(3) for at, kind in enumerate(KINDS)]
    assert len(runs) >= 50
    for share in SHARES:
        inside: dict[str, list[bool]] = {"cost": [], "time": [], "limit": []}
        ratios = []
        for run in runs:
            whole = round(run.ended.usd * 10**12)
            burn, last = _forecast(run, share, PLENTY)
            if burn is not None and burn.done is not None:
                inside["cost"].append(abs(burn.done.costs - whole) <= burn.done.margin)
                late_s = _end_of(last)[0] + burn.done.in_s - 60 * run.ended.minutes
                inside["time"].append(abs(late_s) <= burn.done.margin_s)
                ratios.append(burn.done.costs / whole)
            met_s, limit = _end_of(run.rounds[round((share + 0.2) * len(run.rounds)) - 1])
            burn, last = _forecast(run, share, limit)
            if burn is not None and burn.limit_in_s:
                late_s = _end_of(last)[0] + burn.limit_in_s - met_s
                inside["limit"].append(abs(late_s) <= burn.margin_s(burn.limit_in_s))
        shares = {what: round(fmean(found), 3) for what, found in inside.items()}
        print(f"after {share:.0%}: {shares} of {len(ratios)}, forecast / outcome {median(ratios):.3f}")
        assert min(shares.values()) >= 0.7, (share, shares)
        assert 0.97 <= median(ratios) <= 1.03
