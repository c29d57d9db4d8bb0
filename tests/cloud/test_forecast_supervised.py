"""Forecasts of supervised jobs against the jobs, on clouds that are somewhere in the ranges of what is known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.simulated import SimulatedPlatform
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.forecast import configuration_of, forecast
from cloud.timing.forecasting.configuration import Configuration
from cloud.timing.forecasting.plan import ActorPlan
from cloud.timing.forecasting.result import Band
from cloud.timing.forecasting.workload import Workload
from cloud.timing.place import TimingPlace
from tests.cloud.recorded import RealExecutor
from tests.training.runs import events_of
from tests.training.specs import descent
from training.data.library import manifest_of
from training.engine.messages import BlobRef, Call
from training.engine.ports import Control
from training.functions.body import WarmCache
from training.functions.run import execute
from training.scaling.plan import Bounds
from training.tasks.kinds import task_of
from training.tasks.supervised_spec import Supervised

PLENTY = 10**15
JOBS = 40
MODELS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("digits", {"kind": "logistic"}),
    ("breast_cancer", {"kind": "logistic"}),
    ("generated_noisy", {"kind": "logistic"}),
    ("generated_clicks", {"kind": "click_through"}),
    ("glyphs_small", {"kind": "lenet"}),
)


class Job(NamedTuple):
    training: Supervised
    options: SimulatedOptions


class Ended(NamedTuple):
    minutes: float
    usd: float


def drawn_job(number: int) -> Job:
    """Return a job of any model, data, loop, number of functions and size of memory."""
    rng = np.random.default_rng(number)
    data, model = MODELS[number % len(MODELS)]
    minibatch, local_steps = int(rng.choice([16, 32, 64, 128])), int(rng.choice([1, 2, 4]))
    minibatch *= 8 if data == "generated_clicks" else 1
    most = min(64, manifest_of(data).rows // (minibatch * local_steps))
    functions = int(np.exp(rng.uniform(0, np.log(most + 1))))
    scaling: dict[str, Any] = {"kind": "fixed", "actors": functions}
    if rng.random() < 0.25:
        scaling = {
            "kind": "ramp",
            "actors_first": functions,
            "actors_last": 1 + functions // 4,
            "over_rounds": 4,
        }
    document: dict[str, Any] = {
        "data": data,
        "model": model,
        "optimiser": {"kind": str(rng.choice(["sgd", "momentum"])), "learning_rate": 0.01},
        "minibatch": minibatch,
        "local_steps": local_steps,
        "significance": float(rng.choice([0.0, 0.0, 0.05])),
        "scaling": scaling,
        "loop": {"kind": str(rng.choice(["hybrid", "bulk_synchronous", "fully_asynchronous"]))},
        "calls": {"memory_mb": int(rng.choice([512, 1024, 1769, 3008]))},
        "stop": {"rounds": int(rng.integers(2, 6))},
        "seed": number,
    }
    if data == "glyphs_small":
        document["stop"] = {"rounds": None, "samples": 2500}
    bought: dict[str, Any] = {"learner": str(rng.choice(["function", "server"]))}
    if rng.random() < 0.2:
        bought = {"profile": "one-machine"}
        document["scaling"] = {"kind": "fixed", "actors": min(functions, 16)}
    return Job(Supervised.model_validate(document), SimulatedOptions(seed=100 + number, workers=1, **bought))


def really(job: Job, number: int) -> Ended:
    """Run the job on a cloud that is somewhere in the ranges, under a seed of its own."""
    rng = np.random.default_rng(1000 + number)
    scene = configuration_of(job.training, job.options)
    cloud = scene.at({name: float(rng.triangular(0, 0.5, 1)) for name in scene.uncertain()})
    inner = SimulatedPlatform(job.options, profile=cloud.profile, stack=cloud.stack, executor=RealExecutor())
    place = TimingPlace(cloud.profile, cloud.stack, job.options, PriceBook.load())
    ledger = MemoryLedger(PLENTY)
    platform = MeteredPlatform(inner, ledger, place.tariff(job.training.memory_mb))
    bounds = Bounds(memory_sizes_mb=job.options.memory_sizes_mb(job.training.memory_mb))
    last = events_of(job.training, platform, control=lambda: Control(bounds=bounds))[-1]
    platform.close()
    return Ended(last.platform_s / 60, ledger.spend().spent_picodollars / 10**12)


def is_inside(band: Band, true: float) -> bool:
    return band.p10 <= true <= band.p90


def test_a_limit_of_samples_ends_a_forecast_within_an_epoch() -> None:
    few, whole = (descent(stop={"rounds": 1, "samples": samples}) for samples in (320, None))
    found, epoch = (forecast(training, SimulatedOptions(), PLENTY) for training in (few, whole))
    assert found.steps.p50 == pytest.approx(320)
    assert (found.rounds.p50, found.ends_by) == (1, "steps")
    assert found.calls.p50 < 0.5 * epoch.calls.p50


def test_calls_that_judge_share_the_rows_that_were_held_out() -> None:
    training = descent()
    works = Workload(training).evaluation(4, 0.0)
    assert len(works) == 4
    assert sum(work.samples for work in works) == pytest.approx(training.manifest.held_out_rows, abs=4)


def test_a_sparse_push_is_forecast_by_the_places_that_its_rows_have() -> None:
    training = Supervised.model_validate(
        {"data": "generated_clicks", "model": {"kind": "click_through"}, "minibatch": 1024}
    )
    task, works = task_of(training), Workload(training)
    request = task.slice(0, 0)
    values: dict[str, Any] = {"round_no": 1, "seed": 0, "deadline_s": 30.0, "memory_mb": 1769}
    weights = task.begin().weights
    ref = BlobRef(version=0, sha256="0" * 64, byte_count=len(weights))
    inputs = task.inputs_of(request)
    call = Call(id="c-a1", request=request, where="actor", weights=ref, inputs=inputs, **values)
    pushed = len(execute(call, weights, WarmCache()).payload)
    assert works.sampling("s").bytes_out == pytest.approx(pushed, rel=0.3)
    assert pushed < 0.1 * len(weights)
    fewer = works.update("u", 1).bytes_in
    assert works.update("u", 2).bytes_in - fewer == works.sampling("s").bytes_out


def test_functions_of_the_first_epoch_start_cold_where_later_ones_are_fewer() -> None:
    assert ActorPlan([0, 2, 4], [7, 2, 4]).rises.tolist() == [5, 0, 0]
    assert ActorPlan([0, 2], [2, 7]).rises.tolist() == [0, 5]


def test_without_uncertainty_it_is_the_job_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Configuration, "uncertain", lambda self: {})
    for number, scaling in ((5, None), (1, {"kind": "ramp", "actors_first": 7, "actors_last": 2})):
        job = drawn_job(number)
        if scaling:
            job = job._replace(training=descent(data="breast_cancer", minibatch=32, scaling=scaling))
        found, ended = forecast(job.training, job.options, PLENTY), really(job, number)
        assert found.minutes.p50 == pytest.approx(ended.minutes, rel=0.15)
        assert found.dollars.p50 == pytest.approx(ended.usd, rel=0.1)


@pytest.mark.endurance
def test_most_supervised_jobs_end_where_they_were_forecast() -> None:
    inside, errors = [], []
    for number in range(JOBS):
        job = drawn_job(number)
        found = forecast(job.training, job.options, PLENTY)
        ended = really(job, number)
        for band, true in ((found.minutes, ended.minutes), (found.dollars, ended.usd)):
            inside.append(is_inside(band, true))
            errors.append(abs(band.p50 / true - 1.0))
    share = float(np.mean(inside))
    print(
        f"{100 * share:.0f} % of {JOBS} jobs' times and costs are inside; median error {np.median(errors):.2f}"
    )
    assert share >= 0.7
    assert np.median(errors) <= 0.2
