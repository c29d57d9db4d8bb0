"""The arithmetic of speeds and draws, and files of numbers: what comes along, what is refused with file and line."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.money.billing.work import CallRecord
from cloud.timing import virtual_time as timing
from cloud.timing.forecasting.explanation import title_of
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.quantity import ProfileError, Quantity, quantities, with_values
from cloud.timing.numbers.stack import Speed, Stack
from cloud.timing.simulation.draws import Draws, draw
from cloud.timing.simulation.speed import Speeds
from tests.cloud.clouds import profile, quantity, stack
from training.tasks.score import USUAL

CALM = Draws(0.0, 0.0, 0.5, 0.5, 0.5)


def work(**changes: object) -> CallRecord:
    plain = {"id": "c", "name": "c", "kind": "rollout", "where": "actor"}
    return CallRecord(**(plain | changes))  # type: ignore[arg-type]


def test_a_rollout_by_hand() -> None:
    """2 ms a call, 256 steps of 195 µs, as many inferences of 15 + 0.005 · 400 µs, half a MB: on half of 0.8 core."""
    speeds = Speeds(
        profile(core_ratio=0.8),
        stack(
            call_ms=2.0,
            environment_step_fallback_us=190.0,
            step_us=5.0,
            inference_us=15.0,
            inference_us_per_million_macs=400.0,
            codec_us_per_megabyte=1000.0,
        ),
    )
    requested = work(steps=256, inferences=256, macs=5000, bytes_out=500_000, memory_mb=500)
    by_hand_us = (2000 + 256 * 195 + 256 * (15 + 2) + 500) / 0.5 / 0.8
    assert speeds.run_ns(requested, CALM) == pytest.approx(by_hand_us * 1000, abs=1)


def test_only_functions_build_their_environments_again() -> None:
    rebuilding = stack(call_ms=2.0, rebuild_s=0.5)
    ran = {
        name: Speeds(cloud, rebuilding).run_ns(work(memory_mb=1000), CALM)
        for name, cloud in (("function", profile()), ("standing", profile(pool={})))
    }
    assert ran == {"function": 502 * 10**6, "standing": 2 * 10**6}


@pytest.mark.parametrize(
    ("memory_mb", "copies", "quicker"),
    [
        (500, 4, 0.5),  # half a core
        (1000, 4, 1.0),
        (1400, 4, 1.0),  # one thread: the rest of the second core is not used
        (1600, 4, 1 + 0.6 * 0.5),  # two threads on 1.6 cores
        (2000, 4, 1 + 1.0 * 0.5),
        (2000, 3, 1 + 0.5 * 0.5),  # one thread steps two copies, the other one
        (2000, 1, 1.0),
        (3000, 4, 1 + 1.0 * 0.5),  # the busiest of three threads still steps two copies
        (4000, 4, 1 + 3.0 * 0.5),
        (9000, 8, 1 + 3.0 * 0.5),  # six cores at most: the busiest steps two copies
    ],
)
def test_copies_share_the_cores_of_a_large_function(memory_mb: int, copies: int, quicker: float) -> None:
    speeds = Speeds(profile(), stack(environment_step_fallback_us=100.0, further_core_share=0.5))
    job = work(stepped="Hopper-v5", steps=1000, memory_mb=memory_mb, copies=copies)
    assert speeds.run_ns(job, CALM) == pytest.approx(1000 * 100_000 / quicker, abs=1)


@pytest.mark.parametrize(
    ("environment", "step_us", "share"),
    [("CartPole-v1", 100.0, 0.5), ("Hopper-v5", 70.0, 0.5), ("Hopper-v5", 100.0, 0.0)],
    ids=["Python holds its lock", "threads take longer to wake", "a stack without threads"],
)
def test_other_copies_stay_on_one_core(environment: str, step_us: float, share: float) -> None:
    threads = {"further_core_share": share} if share else {}
    speeds = Speeds(profile(), stack(environment_step_fallback_us=step_us, **threads))
    job = work(stepped=environment, steps=1000, memory_mb=2000, copies=4)
    assert speeds.run_ns(job, CALM) == pytest.approx(1000 * step_us * 1000, abs=1)


def test_a_container_with_several_cores_steps_copies_on_them() -> None:
    speeds = Speeds(
        profile(pool={"cores_per_actor": 2.0}),
        stack(environment_step_fallback_us=100.0, further_core_share=0.5),
    )
    job = work(stepped="Hopper-v5", steps=1000, memory_mb=500, copies=4)
    assert speeds.run_ns(job, CALM) == pytest.approx(1000 * 100_000 / 1.5, abs=1)


@pytest.mark.parametrize(
    ("memory_mb", "share", "quicker"),
    [
        (500, 0.5, 0.5),  # half of a core
        (1000, 0.5, 1.0),
        (4000, 0.5, 1 / (0.5 + 0.5 / 4)),
        (4000, 0.0, 1.0),
        (9000, 1.0, 6.0),  # six cores at most
    ],
)
def test_what_an_actor_learns_is_shared_over_its_cores_by_amdahls_law(
    memory_mb: int, share: float, quicker: float
) -> None:
    speeds = Speeds(profile(), stack(minibatch_us=1000.0, learning_parallel_share=share))
    job = work(kind="update", minibatches=100, memory_mb=memory_mb)
    assert speeds.run_ns(job, CALM) == pytest.approx(100 * 1_000_000 / quicker, abs=1)


def test_gradients_and_their_steps_have_times_of_their_own_beside_their_samples() -> None:
    measured = {"update_gradient_ms": 3.0, "update_apply_ms": 1.0}
    for changes, beside_ms in ((measured, (3.0, 1.0, 50.0)), ({}, (50.0, 50.0, 50.0))):
        speeds = Speeds(profile(), stack(update_call_ms=50.0, minibatch_us=0.0, **changes))
        calls = [work(kind=kind, where="learner") for kind in ("gradient", "apply", "update")]
        assert [speeds.update_ns(call) for call in calls] == [round(1e6 * ms) for ms in beside_ms]
        assert speeds.run_ns(work(kind="gradient", memory_mb=1000), CALM) == round(1e6 * beside_ms[0])


def test_a_version_reads_its_gradients_at_a_rate_of_its_own_where_that_was_measured() -> None:
    rates = {"update_apply_ms": 1.0, "update_us_per_megabyte": 1000.0, "minibatch_us": 200.0}
    reading = {"apply": 600, "gradient": 2000}
    for kind, reading_us in reading.items():
        call = work(kind=kind, where="learner", bytes_in=2_000_000, minibatches=1)
        measured = Speeds(
            profile(), stack(**rates, update_gradient_ms=1.0, update_apply_us_per_megabyte=300.0)
        )
        assert measured.update_ns(call) == 1000 * (1000 + reading_us + 200)
        other = Speeds(profile(), stack(**rates, update_gradient_ms=1.0))
        assert other.update_ns(call) == 1000 * (1000 + 2000 + 200)


def test_an_update_by_hand() -> None:
    """5 ms a call, 2 MB at 1 ms, 80 minibatches of 400 µs, 20,480 samples of .01 million macs at 300 µs a million."""
    speeds = Speeds(
        profile(),
        stack(
            update_call_ms=5.0,
            update_us_per_megabyte=1000.0,
            minibatch_us=400.0,
            minibatch_us_per_million_macs=300.0,
        ),
    )
    requested = work(
        kind="update", where="learner", bytes_in=2_000_000, minibatches=80, samples=20_480, macs=10_000
    )
    by_hand_us = 5000 + 2000 + 80 * 400 + 20_480 * 0.01 * 300
    assert speeds.update_ns(requested) == pytest.approx(by_hand_us * 1000, abs=1)


def test_hessian_products_take_as_many_gradients() -> None:
    speeds = Speeds(profile(), stack(hessian_product_per_gradient=2.0))
    plain = work(kind="update", where="learner", minibatches=10)
    detecting = work(kind="update", where="learner", minibatches=10, hessian_products=15)
    assert speeds.update_ns(plain) == 10 * 100_000_000
    assert speeds.update_ns(detecting) == (10 + 15 * 2) * 100_000_000


def test_cold_starts_are_log_normal_and_capped() -> None:
    speeds = Speeds(profile(cold_s=2.0, cold_sigma=0.5, cold_cap_s=5.0), stack())
    drawn = [speeds.cold_ns(draw(1, f"c{n}")) / timing.NS for n in range(4000)]
    assert max(drawn) == 5.0
    assert np.median(drawn) == pytest.approx(2.0, rel=0.05)
    below = [value for value in drawn if value < 5.0]
    assert np.percentile(np.log(below), 15.87) == pytest.approx(np.log(2.0) - 0.5, abs=0.1)


def test_a_cold_start_imports_and_makes_its_environment() -> None:
    speeds = Speeds(profile(core_ratio=0.5), stack(import_s=0.5, first_environment_s=0.25))
    assert speeds.cold_ns(CALM) == 3_500_000_000


def test_draws_depend_on_seed_and_call_only_and_are_evenly_spread() -> None:
    assert draw(1, "a") == draw(1, "a")
    assert len({draw(seed, name) for seed in (1, 2) for name in "ab"}) == 4
    many = [draw(3, f"call-{n}") for n in range(4000)]
    for name in ("failure", "failure_at", "late"):
        values = np.array([getattr(one, name) for one in many])
        assert values.min() > 0.0
        assert values.max() < 1.0
        # Kolmogorov's distance of 4,000 even draws is above 0.031 once in a thousand.
        assert np.abs(np.sort(values) - np.arange(4000) / 4000).max() < 0.031
    for name in ("start_normal", "straggler_normal"):
        values = np.array([getattr(one, name) for one in many])
        assert abs(values.mean()) < 0.06
        assert values.std() == pytest.approx(1.0, abs=0.05)


@given(st.integers(0, 10**12))
def test_started_milliseconds_are_billed(duration_ns: int) -> None:
    billed = timing.billed_ms(duration_ns)
    assert 0 <= billed * 10**6 - duration_ns < 10**6


def test_a_range_is_walked_by_quantiles() -> None:
    wide = Quantity(value=2.0, low=1.0, high=6.0, source="made up", kind="assumed")
    assert [wide.at(quantile) for quantile in (0.0, 0.25, 0.5, 0.75, 1.0)] == [1.0, 1.5, 2.0, 4.0, 6.0]


def test_all_quantities_can_be_listed_and_replaced() -> None:
    loaded = profiles.load("lambda")
    found = quantities(loaded)
    assert ("network", "round_trip_s") in found
    assert ("actors", "cold_s") in found
    moved = with_values(loaded, lambda path, one: one.high if path == ("actors", "cold_s") else one.value)
    assert quantities(moved)["actors", "cold_s"].value == found["actors", "cold_s"].high
    assert with_values(loaded, lambda path, one: one.value) == loaded
    steps = quantities(stacks.load("starling-stack"))
    assert ("environment_step_us", "Hopper-v5") in steps


def test_every_profile_and_stack_that_comes_along_can_be_read() -> None:
    assert {"lambda", "aci-paper", "aci-today", "one-machine", "one-machine-spot", "ray-nodes"} <= set(
        profiles.names()
    )
    clusters = {"nitro-cluster", "minionsrl-cluster", "stellaris-cluster", "stellaris-gpu", "stellaris-hpc"}
    assert clusters <= set(profiles.names())
    for name in profiles.names():
        profiles.load(name)
    for name in stacks.names():
        stacks.load(name)


def test_what_does_not_exist_is_named() -> None:
    with pytest.raises(ProfileError, match=r"'lamda'; there are .*lambda"):
        profiles.load("lamda")
    with pytest.raises(ProfileError, match=r"'fast'; there are .*starling-stack"):
        stacks.load("fast")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("warm_s = { value = 0.0026", "warm_s = { value = 99.0", r"warm_s: value 99 .* range"),
        (
            'kind = "paper", source = "released',
            'kind = "rumour", source = "released',
            r"server_start_s.kind: ",
        ),
        ("\nwarm_s = {", "\nwarm_seconds = {", r"warm_s: Field required"),
        ("[actors]", "[actors", r"mine.toml:\d+: "),
        ("late_s = { value = 1.0", "late_s = { value = -1.0", r"late_s.value: "),
        ('source = "how late"', 'source = ""', r"late_s.source: "),
        (', source = "how late"', "", r"late_s.source: Field required"),
        ("late_s = { value = 1.0", "late_s = { value = nan", r"late_s.value: "),
        ('duration_sku = "lambda.duration.x86"', 'duration_sku = "lambda.duration.x68"', r"no price for"),
        (
            'default_learner_sku = "c5.4xlarge"',
            'default_learner_sku = "c5.metal"',
            r"no price for 'c5.metal'",
        ),
    ],
)
def test_a_wrong_profile_names_file_and_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    text = (profiles.PROFILES / "lambda.toml").read_text()
    assert old in text
    wrong = text.replace(old, new, 1)
    (tmp_path / "mine.toml").write_text(wrong)
    with pytest.raises(ProfileError, match=expected) as caught:
        profiles.read(tmp_path / "mine.toml")
    line = int(str(caught.value).split(":")[1])
    if new and "required" not in expected:
        assert new.strip() in wrong.splitlines()[line - 1]


def test_a_wrong_stack_names_file_and_line(tmp_path: Path) -> None:
    text = (stacks.STACKS / "starling-stack.toml").read_text()
    (tmp_path / "mine.toml").write_text(
        text.replace("coordinator_ms = { value = ", "coordinator_ms = { value = -", 1)
    )
    with pytest.raises(ProfileError, match=r"mine.toml:\d+: coordinator_ms.value: "):
        stacks.read(tmp_path / "mine.toml")


def test_every_number_of_every_cloud_and_stack_has_words() -> None:
    """A number without a phrase is an error, not its name with blanks for underscores."""
    for kind, files in (("profile", profiles.FILES), ("stack", stacks.FILES)):
        for name in files.names():
            for path in quantities(files.load(name)):
                assert "_" not in USUAL.say(title_of((kind, *path)))
    with pytest.raises(KeyError):
        title_of(("profile", "actors", "nobody_knows_s"))


def test_a_profile_says_whose_cloud_it_is(tmp_path: Path) -> None:
    """An unlisted region is not taken for AWS's: the file says it."""
    text = (profiles.PROFILES / "aci-today.toml").read_text()
    moved = text.replace('region = "eastus"', 'region = "swedencentral"')
    assert Profile.model_validate(tomllib.loads(moved)).provider == "azure"
    (tmp_path / "wrong.toml").write_text(moved.replace('provider = "azure"', 'provider = "acme"'))
    with pytest.raises(ProfileError, match=r"^wrong\.toml:\d+: provider: .*'aws' or 'azure'"):
        profiles.read(tmp_path / "wrong.toml")


def on_a_gpu(**fields: Any) -> Stack:
    """A minibatch takes a GPU 3 ms; a core takes 1 ms, and 10 ms for each million multiplications."""
    base = stack(minibatch_us=1000.0, minibatch_us_per_million_macs=10_000.0)
    gpu = Speed(fixed_us=Quantity(**quantity(3000.0)), us_per_million_macs=Quantity(**quantity(0.0)))
    return base.model_copy(
        update={"update": base.update.model_copy(update={"gpu_mlp": gpu, "gpu_cnn": gpu, **fields})}
    )


def test_our_software_learns_on_a_core_what_a_gpu_takes_longer_for() -> None:
    small, large = (
        work(kind="update", where="learner", minibatches=10, samples=samples, macs=10_000)
        for samples in (1000, 10_000)
    )
    for one, on_core_ms in ((small, 10 + 100), (large, 10 + 1000)):
        assert Speeds(profile(), on_a_gpu()).update_ns(one) == on_core_ms * 10**6
        assert Speeds(profile(), on_a_gpu(), gpu=True).update_ns(one) == 30 * 10**6
    tiny = replace(small, samples=100)
    ours = Speeds(profile(), on_a_gpu(mlp_where_quicker=True), gpu=True)
    assert [ours.update_ns(one) / 1e6 for one in (tiny, small, large)] == [20, 30, 30]
    # Convolutions are never quicker there.
    assert ours.update_ns(replace(tiny, pictures=True)) == 30 * 10**6
    # Products of an MLP are numpy's, wherever it learns.
    curved = replace(large, hessian_products=3)
    assert ours.update_ns(curved) == (30 + 3 * 2 * 101) * 10**6
    assert Speeds(profile(), on_a_gpu(), gpu=True).update_ns(curved) == (30 + 3 * 2 * 3) * 10**6
