"""Gradients of a forecast read as many bytes as those of the job: parameters, data, and other learners' policies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloud.money.billing.work_file import read_work_file
from cloud.timing.forecast import configuration_of
from cloud.timing.forecasting.configuration import Scale
from cloud.timing.forecasting.worst_times import worst_times
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec

WIDE = 256


def job(**algorithm: Any) -> JobSpec:
    """Four passes over data that one policy sampled: from the second on its samples are held to an older policy."""
    return JobSpec.model_validate(
        {
            "budget_usd": "1",
            "training": {
                "environment": {"id": "CartPole-v1"},
                "network": {"kind": "mlp", "hidden": [WIDE, WIDE]},
                "algorithm": {"kind": "ppo", "epochs": 4, "minibatch_size": 64, **algorithm},
                "rollout": {"steps_per_call": 32},
                "scaling": {"kind": "fixed", "actors": 4},
                "loop": {"kind": "staleness_aware", "learners": 2, "trajectories_per_gradient": 2},
                "evaluation": {"every_rounds": 50, "episodes": 1},
                "stop": {"rounds": 4, "env_steps": None},
            },
            "platform": {"kind": "simulated", "workers": 1},
        }
    )


def forecast_bytes(spec: JobSpec) -> list[int]:
    configuration = configuration_of(spec.training, spec.platform)
    sent: list[int] = []
    rounds, flight = configuration.dry_run(Scale().works(spec.training), spec.training.loop, seed=0)
    send = flight.send

    def noted(works: Any) -> None:
        sent.extend(work.bytes_in for work in works if work.kind == "gradient")
        send(works)

    flight.send = noted  # type: ignore[method-assign]
    for _ in range(4):
        rounds.next(4)
    return sent


@pytest.mark.parametrize("held", [0.2, 0.0])
def test_gradients_of_a_forecast_read_what_those_of_the_job_read(held: float, tmp_path: Path) -> None:
    spec = job(kl_coefficient=held)
    for _ in Headless(spec, work=tmp_path / "work.jsonl").events():
        pass
    (segment,) = read_work_file(tmp_path / "work.jsonl")
    real = [work.bytes_in for work in segment.works if work.kind == "gradient"]
    forecast = forecast_bytes(spec)
    assert len(forecast) == len(real) == 4 * 2 * 4
    assert sum(forecast) == pytest.approx(sum(real), rel=0.05)


def test_at_worst_each_trajectory_of_a_slice_is_held_to_another_policy() -> None:
    found = []
    for held in (0.2, 0.0):
        spec = job(kl_coefficient=held)
        configuration = configuration_of(spec.training, spec.platform)
        found.append(worst_times(configuration, spec.training, 4).gradient_s)
    assert found[0] > found[1]
