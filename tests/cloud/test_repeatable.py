"""The same seed gives the same learner with 1, 2 or 8 real worker processes, on either platform."""

from pathlib import Path

import pytest

from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from tests.training.runs import final_learner
from tests.training.specs import tiny


def _learner(options: LocalOptions | SimulatedOptions, folder: Path, loop: str) -> bytes:
    platform = options.open()
    try:
        spec = tiny("Hopper-v5", loop={"kind": loop}, scaling={"actors": 5}, stop={"rounds": 3})
        return final_learner(spec, platform, folder)
    finally:
        platform.close()


@pytest.mark.parametrize("many", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_asynchronous_loop_repeats_on_the_simulated_cloud(tmp_path: Path, many: int) -> None:
    """There time is virtual: which fragment comes first follows from the seed, not from how fast workers really are."""
    options = {workers: SimulatedOptions(workers=workers, seed=3) for workers in (1, many)}
    learners = {
        _learner(option, tmp_path / str(workers), "asynchronous") for workers, option in options.items()
    }
    assert len(learners) == 1
    assert learners != {_learner(SimulatedOptions(workers=2, seed=4), tmp_path / "other", "asynchronous")}


@pytest.mark.parametrize("many", [2, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("loop", ["synchronous", pytest.param("pipelined", marks=pytest.mark.slow)])
def test_the_number_of_workers_changes_nothing(tmp_path: Path, loop: str, many: int) -> None:
    """Eight workers on two cores answer in any order; a simulated cloud with failures sends calls again."""
    options = {f"local {workers}": LocalOptions(workers=workers) for workers in (1, many)}
    options["simulated"] = SimulatedOptions(workers=2, seed=3)
    learners = {name: _learner(option, tmp_path / name, loop) for name, option in options.items()}
    assert len(set(learners.values())) == 1
