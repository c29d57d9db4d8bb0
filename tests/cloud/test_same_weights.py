"""The same job learns the same wherever its actors run: ten synchronous rounds, bit for bit, with faults on top."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cloud.platforms.local import LocalOptions
from tests.cloud.aws import lambdas
from tests.cloud.azure import containers
from tests.cloud.emulated_bills import executions
from tests.training.runs import final_learner
from tests.training.specs import tiny
from training.engine.codec import decode

_ROLLOUT = {"attempts": 5, "memory_mb": lambdas.MEMORY_MB}


def _learner(platform: Any, folder: Path, environment: str) -> bytes:
    spec = tiny(
        environment,
        scaling={"actors": 3},
        stop={"rounds": 10},
        checkpoints={"every_rounds": 10},
        rollout=_ROLLOUT,
    )
    try:
        return final_learner(spec, platform, folder)
    finally:
        platform.close()


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["Hopper-v5", "CartPole-v1"])
def test_here_on_lambda_and_in_containers(tmp_path: Path, environment: str) -> None:
    """On Lambda with throttling, lost replies and a crash; in containers with a crash and a slow start as well."""
    here = _learner(LocalOptions(workers=2).open(), tmp_path / "here", environment)
    assert decode(here)
    with lambdas.opened() as (platform, aws):
        for kind in ("throttle", "lost_reply", "error_after", "crash"):
            aws.faults.order(kind)
        on_lambda = _learner(platform, tmp_path / "lambda", environment)
        assert aws.faults.struck.total() >= 4
        assert set(executions(aws.meter).values()) == {1}
    assert on_lambda == here
    with containers.opened(containers_a_group=1) as (platform, azure):
        for kind in ("throttle", "lost_reply", "error_after", "crash", "slow_start"):
            azure.faults.order(kind)
        in_containers = _learner(platform, tmp_path / "azure", environment)
        assert azure.faults.struck.total() >= 5
        assert azure.groups.pids() == []
    assert in_containers == here
