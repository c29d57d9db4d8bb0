"""`manage.py calibrate`: what it writes, and when it does not."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from cloud.timing.calibration import run_parts
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A calibration without the measuring; `busy` is what others took meanwhile."""
    given: dict[str, Any] = {"busy": 0.01}

    def calibration(environments: Sequence[str], effort: Any, base: Any, today: Any, tell: Any) -> Any:
        given.update(environments=tuple(environments), effort=effort)
        return run_parts.MachineCalibration(base, profiles.load("one-machine"), given["busy"], 0.0)

    monkeypatch.setattr(run_parts, "calibration", calibration)
    return given


def calibrate(*arguments: str) -> str:
    out = StringIO()
    call_command("calibrate", *arguments, stdout=out)
    return out.getvalue()


def test_it_writes_a_stack_and_a_profile_that_can_be_read(found: dict[str, Any], tmp_path: Path) -> None:
    output = calibrate("--out", str(tmp_path), "--name", "mine")
    assert "call_ms" in output
    assert stacks.read(tmp_path / "mine.toml") == stacks.load("starling-stack")
    (profile,) = tmp_path.glob("this-machine-20*.toml")
    assert profiles.read(profile) == profiles.load("one-machine")
    assert found["environments"] == run_parts.ENVIRONMENTS


def test_without_a_folder_it_writes_to_the_installations_own(
    found: dict[str, Any], tmp_path: Path, settings: Any
) -> None:
    settings.STARLING_DATA = tmp_path
    calibrate("--name", "mine")
    assert (tmp_path / "profiles" / "mine.toml").exists()


def test_figures_from_a_busy_machine_are_not_written(found: dict[str, Any], tmp_path: Path) -> None:
    found["busy"] = 0.4
    with pytest.raises(CommandError, match="40 % of the cores") as refused:
        calibrate("--out", str(tmp_path))
    assert refused.value.returncode == 1
    assert not list(tmp_path.iterdir())
    calibrate("--out", str(tmp_path), "--name", "mine", "--anyway")
    assert "NO GOOD" in (tmp_path / "mine.toml").read_text()


def test_a_quick_look_says_that_it_is_one(found: dict[str, Any], tmp_path: Path) -> None:
    found["busy"] = 0.4
    calibrate("--quick", "--environments", "CartPole-v1", "--out", str(tmp_path), "--name", "mine")
    assert "QUICK LOOK" in (tmp_path / "mine.toml").read_text()
    assert found["effort"].quick
    assert found["environments"] == ("CartPole-v1",)


def test_an_unknown_environment_is_refused_with_the_nearest(found: dict[str, Any]) -> None:
    with pytest.raises(CommandError, match="did you mean Hopper-v5") as refused:
        calibrate("--environments", "Hoper-v5")
    assert refused.value.returncode == 2
