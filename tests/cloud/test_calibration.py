"""Calibration: numbers from measurements, files that read back equal, and a quick look at this machine."""

from __future__ import annotations

import importlib
import random
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rounds import shapes
from cloud.timing.calibration import learning, machine, machine_profile, part, run_parts
from cloud.timing.calibration.figures import fit, of, quantity
from cloud.timing.calibration.samples import (
    Slot,
    initial,
    learn_on_gpu,
    network_for,
    recipe,
    trajectory,
    update_call,
)
from cloud.timing.calibration.toml_writer import toml_of, write_toml
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.quantity import Quantity
from tests.cloud import clouds
from training.engine import torch_loading
from training.functions.body import WarmCache
from training.functions.run import execute
from training.rl.algorithms import optimisation
from training.rl.algorithms.autograd import Autograd
from training.rl.algorithms.closed_form import ClosedForm
from training.rl.batch import Batch
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.model import EnvironmentSpec
from training.rl.networks import MLP
from training.rl.spaces import Spaces
from training.spec import TrainingSpec


def test_a_quantity_is_the_median_between_percentiles() -> None:
    found = quantity([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0], "eleven clocks")
    assert (found.value, found.low, found.high, found.kind) == (6.0, 2.0, 10.0, "measured")


def test_no_figure_is_more_certain_than_five_percent() -> None:
    found = quantity([100.0, 100.0, 100.0], "a clock")
    assert (found.low, found.high) == (95.0, 105.0)


def test_what_is_not_chance_widens_a_range() -> None:
    found = quantity([100.0], "a clock", low=60.0, high=101.0)
    assert (found.low, found.high) == (60.0, 105.0)


def test_figures_have_four_digits_and_stay_in_their_range() -> None:
    found = of(1.23456789, 1.23456789, 1.23456789, "a clock", "measured")
    assert (found.value, found.low, found.high) == (1.235, 1.235, 1.235)


def test_a_fit_finds_what_times_were_made_of() -> None:
    rows = [(1.0, size) for size in (1.0, 10.0, 100.0, 1000.0)]
    times = [3.0 + 0.5 * size for _, size in rows]
    found = fit(rows, times)
    assert found == pytest.approx([3.0, 0.5], rel=1e-9)


def test_a_fit_has_no_negative_times() -> None:
    rows = [(1.0, size) for size in (1.0, 2.0, 3.0)]
    found = fit(rows, [1.0, 3.0, 5.0])
    assert found[0] == 0.0
    assert found[1] > 0.0


def test_a_fit_of_nothing_is_nothing() -> None:
    assert fit([(1.0,), (2.0,)], [-1.0, -2.0]) == [0.0]


@pytest.mark.parametrize("name", stacks.names())
def test_a_stack_reads_back_equal(name: str, tmp_path: Path) -> None:
    written = stacks.load(name)
    write_toml(tmp_path / "copy.toml", written, "A copy,\nof two lines.")
    assert stacks.read(tmp_path / "copy.toml") == written


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_reads_back_equal(name: str, tmp_path: Path) -> None:
    written = profiles.load(name)
    write_toml(tmp_path / "copy.toml", written, "A copy.")
    assert profiles.read(tmp_path / "copy.toml") == written


def test_sources_may_hold_any_character(tmp_path: Path) -> None:
    source = 'a "quoted" \\ word, × and − and \x7f\n\ttabbed'
    odd = Quantity(value=1e-7, low=0.0, high=1e22, source=source, kind="assumed")
    stack = stacks.load("starling-stack").model_copy(
        update={"call_ms": odd, "environment_step_us": {'a "name".with = all': odd, "": odd}}
    )
    write_toml(tmp_path / "odd.toml", stack, "Odd.")
    assert stacks.read(tmp_path / "odd.toml") == stack


def test_what_has_no_place_in_a_file_is_refused() -> None:
    stack = stacks.load("starling-stack").model_copy(update={"title": object()})
    with pytest.raises(TypeError, match="has no place"):
        toml_of(stack, "Refused.")


@pytest.mark.parametrize("environment", ["CartPole-v1", "Hopper-v5", "ALE/SpaceInvaders-v5"])
def test_trajectories_without_sampling_can_be_learned_from(environment: str) -> None:
    spaces = ENTRIES[environment].spaces(4)
    batch = Batch.of([trajectory(spaces, 8, 2, seed) for seed in range(2)], range(1), spaces)
    assert batch.size == 32


def test_an_update_of_them_takes_the_requested_passes() -> None:
    spaces = ENTRIES["Hopper-v5"].spaces(4)
    network, algorithm = network_for(spaces), recipe(spaces, epochs=3, minibatch_size=64)
    state = initial(algorithm, network, spaces).encode()
    call = update_call(algorithm, network, state, [trajectory(spaces, 128, 1, 0)])
    usage = execute(call, None, WarmCache()).usage
    assert (usage.minibatches, usage.samples) == (6, 384)


def test_a_slots_calls_go_on_with_new_weights_each() -> None:
    slot = Slot(EnvironmentSpec(id="CartPole-v1"))
    first, weights = slot.call(8)
    slot.slot_state = execute(first, weights, WarmCache()).slot_state
    second, _ = slot.call(8)
    assert second.slot_state == slot.slot_state is not None
    assert first.weights != second.weights


def test_others_are_distinguished_from_us() -> None:
    watch = machine.OtherLoad()
    random.Random(0).randbytes(10_000_000)
    busy, background = watch.shares()
    assert 0.0 <= busy <= 1.5
    assert 0.0 <= background <= 1.5


def test_the_machine_is_described_with_its_date() -> None:
    reported = machine.describe(date(2026, 11, 21))
    assert "cores" in reported
    assert "numpy" in reported
    assert reported.endswith("21 November 2026")


def test_a_part_that_breaks_says_why() -> None:
    with pytest.raises(part.PartFailed, match="no environment named 'Hoper-v5'"):
        part.run("actor", {"environment": "Hoper-v5", "lengths": [2], "repeats": 1})


def test_the_quietest_of_some_runs_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([(0.5, 0.0), (0.3, 0.0), (0.4, 0.1)])
    numbers = iter([{"try": 1}, {"try": 2}, {"try": 3}])

    class Watch:
        def shares(self) -> tuple[float, float]:
            return next(shares)

    parts = part.Parts(lambda reported: None, patience_s=60.0)
    monkeypatch.setattr(parts, "_wait_until_quiet", lambda: None)
    monkeypatch.setattr(machine, "OtherLoad", Watch)
    monkeypatch.setattr(part, "run", lambda *_, **__: next(numbers))
    assert parts.run("anything", "anything", {}) == {"try": 2}
    assert parts.busy == 0.3


def test_every_part_of_the_plan_can_be_measured() -> None:
    for planned in run_parts._plan(["CartPole-v1", "Hopper-v5", "ALE/Pong-v5"], run_parts.QUICK).values():
        module = importlib.import_module(f"cloud.timing.calibration.parts.{planned.part}")
        assert callable(module.measure)


def test_visits_to_a_part_are_put_together() -> None:
    earlier = {"turns": [1, 2], "macs": 5, "cases": {"0": {"minibatches": 3, "times_us": [[1, 2]]}}}
    later = {"turns": [3], "macs": 5, "cases": {"0": {"minibatches": 3, "times_us": [[3, 4]]}}}
    assert part.concatenate(earlier, later) == {
        "turns": [1, 2, 3],
        "macs": 5,
        "cases": {"0": {"minibatches": 3, "times_us": [[1, 2], [3, 4]]}},
    }


@pytest.mark.parametrize("shape", shapes.SHAPES, ids=lambda shape: shape.name)
def test_shapes_that_are_compared_are_jobs(shape: shapes.Shape) -> None:
    training = TrainingSpec.model_validate(shape.training(5))
    assert training.scaling.largest == shape.actors


@pytest.mark.slow
def test_a_quick_look_writes_what_the_simulated_cloud_reads(tmp_path: Path) -> None:
    base = stacks.load("starling-stack")
    reported: list[str] = []
    found = run_parts.calibration(
        ("CartPole-v1", "Pendulum-v1"), run_parts.QUICK, base, date(2026, 11, 21), reported.append
    )
    steps = [words for one in reported if (words := re.match(r"(\d+ of \d+): (.+)", one))]
    assert [one[1] for one in steps] == [f"{number} of {len(steps)}" for number in range(1, len(steps) + 1)]
    assert "steps of Pendulum-v1" in [one[2] for one in steps]
    stack, profile = tmp_path / "stack.toml", tmp_path / "profile.toml"
    write_toml(stack, found.stack, "A quick look.")
    write_toml(profile, found.profile, "A quick look.")
    assert stacks.read(stack) == found.stack
    assert profiles.read(profile) == found.profile
    measured = found.stack.environment_step_us["CartPole-v1"]
    assert measured.kind == "measured"
    assert "quick look" in measured.source
    update = found.stack.update
    for one in (update.gradient_ms, update.apply_ms, update.apply_us_per_megabyte):
        assert one is not None
        assert one.kind == "measured"
    # What was not measured stays as it was.
    assert found.stack.update.gpu_cnn == base.update.gpu_cnn
    rounds = part.run(
        "benchmarks.rounds.times",
        {"training": shapes.SHAPES[0].training(1), "stack": str(stack), "profile": str(profile)},
    )
    assert all(seconds > 0.0 for seconds in rounds["total_s"])


def test_learners_that_share_a_gpu_slow_each_other_as_much_as_was_measured() -> None:
    shared = {
        "mlp": {"1": [100.0], "2": [120.0, 120.0], "4": [160.0] * 4},
        "cnn": {"1": [100.0], "2": [190.0, 190.0], "4": [370.0] * 4},
    }
    found = machine_profile._sharing(shared, "mlp", "here"), machine_profile._sharing(shared, "cnn", "here")
    assert [one.value for one in found] == pytest.approx([0.2, 0.9])
    assert {one.kind for one in found} == {"measured"}
    assert machine_profile._sharing(None, "mlp", "here").kind == "assumed"


def test_a_gpu_is_measured_also_where_a_core_is_quicker(monkeypatch: pytest.MonkeyPatch) -> None:
    spaces = Spaces((4,), (2,))
    monkeypatch.setattr(torch_loading, "_GPU_FILES", (Path("/"),))
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr(optimisation, "is_quicker_on_gpu", optimisation.is_quicker_on_gpu)
    assert optimisation.descent_for(MLP(), spaces, 64) is ClosedForm
    learn_on_gpu()
    assert optimisation.descent_for(MLP(), spaces, 64) is Autograd


def test_processes_that_share_are_all_measured() -> None:
    """Where there is no GPU they share cores, which is enough to see that each makes updates while others do."""
    found = part.run("sharing", {"learners": [2], "seconds": 0.01, "kinds": ["mlp"]})
    assert [len(times_us) for times_us in found["mlp"].values()] == [2]
    assert min(found["mlp"]["2"]) > 0.0


def test_what_gradients_and_their_versions_take_is_found_again_in_calls_that_take_it() -> None:
    base = clouds.stack(
        minibatch_us=200.0, minibatch_us_per_million_macs=100.0, update_us_per_megabyte=2000.0
    ).update

    def case(megabytes: float, samples: int, us: float) -> dict[str, Any]:
        work = {"minibatches": 1, "samples": samples, "macs": 10_000, "bytes_in": int(megabytes * 1e6)}
        return {**work, "us": [us, us]}

    measured = {
        network: {
            "gradient": case(size, 1000, 3000 + 2000 * size + 200 + 1000 * 0.01 * 100),
            "apply_1": case(4 * size, 0, 1500 + 800 * 4 * size + 200),
            "apply_8": case(11 * size, 0, 1500 + 800 * 11 * size + 200),
        }
        for network, size in (("small", 0.05), ("large", 0.5))
    }
    found = learning.of_gradients(base, measured, "here")
    parts = found.gradient_ms, found.apply_ms, found.apply_us_per_megabyte
    assert [None if one is None else one.value for one in parts] == pytest.approx([3.0, 1.5, 800.0])
