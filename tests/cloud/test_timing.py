"""The arithmetic of times and draws, and where profiles come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud import profile as profiles
from cloud import timing
from cloud.profile import ProfileError
from tests.cloud import calls
from tests.cloud.clouds import profile
from training.reports import Usage

CALM = timing.Draws(0.0, 0.0, 0.5, 0.5, 0.5)


def test_hopper_on_lambda_by_hand() -> None:
    """256 steps of 190 µs and as many inferences of 17 µs, at 1,024 MB of 1,769 and 0.8 of a core: 114.4 ms."""
    lambda_profile = profiles.load("lambda")
    request = calls.rollout("c", None).request
    hopper = request.model_copy(
        update={"environment": request.environment.model_copy(update={"id": "Hopper-v5"})}
    )
    call = calls.rollout("c", None, memory_mb=1024).model_copy(update={"request": hopper})
    run = timing.run_ns(lambda_profile, call, Usage(env_steps=256, inferences=256), CALM)
    assert run / timing.NS == pytest.approx(256 * (190e-6 + 17e-6) / (1024 / 1769) / 0.8, abs=1e-9)
    assert run / timing.NS == pytest.approx(0.1144, abs=1e-4)


def test_cold_starts_are_log_normal_and_capped() -> None:
    chancy = profile(cold_s=2.0, cold_sigma=0.5, cold_cap_s=5.0)
    drawn = [timing.start_ns(chancy, True, timing.draw(1, f"c{n}")) / timing.NS for n in range(4000)]
    assert max(drawn) == 5.0
    assert np.median(drawn) == pytest.approx(2.0, rel=0.05)
    below = [value for value in drawn if value < 5.0]
    assert np.percentile(np.log(below), 15.87) == pytest.approx(np.log(2.0) - 0.5, abs=0.1)


def test_draws_depend_on_seed_and_call_only() -> None:
    assert timing.draw(1, "a") == timing.draw(1, "a")
    assert len({timing.draw(seed, name) for seed in (1, 2) for name in "ab"}) == 4


@given(st.integers(0, 10**12))
def test_started_milliseconds_are_billed(duration_ns: int) -> None:
    billed = timing.billed_ms(duration_ns)
    assert 0 <= billed * 10**6 - duration_ns < 10**6


def test_every_profile_that_comes_along_can_be_read() -> None:
    assert "lambda" in profiles.names()
    for name in profiles.names():
        profiles.load(name)


def test_an_unknown_profile_is_named() -> None:
    with pytest.raises(ProfileError, match=r"no profile named 'lamda'; there are .*lambda"):
        profiles.load("lamda")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "warm_s = { value = 0.0026",
            "warm_s = { value = 99.0",
            r"mine.toml:\d+: start.warm_s: value 99 is outside",
        ),
        (
            'kind = "paper", source = "released',
            'kind = "rumour", source = "released',
            r"learner.server_start_s.kind: ",
        ),
        ("warm_s = {", "warm_seconds = {", r"mine.toml:\d+: start.warm_s: Field required"),
        ("[start]", "[start", r"mine.toml:5: "),
        (
            '"Hopper-v5" = { value = 190.0',
            '"Hopper-v5" = { value = -1.0',
            r"mine.toml:\d+: .*Hopper-v5.value: ",
        ),
    ],
)
def test_a_wrong_profile_names_file_and_line(tmp_path: Path, old: str, new: str, expected: str) -> None:
    text = (profiles.PROFILES / "lambda.toml").read_text()
    assert old in text
    wrong = text.replace(old, new)
    (tmp_path / "mine.toml").write_text(wrong)
    with pytest.raises(ProfileError, match=expected) as caught:
        profiles.read(tmp_path / "mine.toml")
    line = int(str(caught.value).split(":")[1])
    if "required" not in str(caught.value):
        assert new.split("{")[0].split('"')[-1].strip() in wrong.splitlines()[line - 1]
