"""Environments of others: only those the operator enabled, travelling where they say how."""

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from cloud.platforms.local import LocalOptions
from tests.training.runs import Forgetful
from tests.training.specs import tiny
from training.engine.ports import Control
from training.engine.train import train
from training.rl import packages

DOCUMENTED = Path(__file__).parents[2] / "docs" / "environments.md"


@pytest.fixture
def corridor(tmp_path, monkeypatch):
    """The documented example as a package, enabled as the operator would; forgotten afterwards."""
    import gymnasium

    (code,) = re.findall(r"```python\n(.*?)```", DOCUMENTED.read_text(), flags=re.DOTALL)
    (tmp_path / "our_envs").mkdir()
    (tmp_path / "our_envs" / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(packages, "_enabled", [])
    monkeypatch.setattr(packages, "_loaded", set())
    yield
    gymnasium.registry.pop("Corridor-v0", None)


def test_an_id_of_a_package_that_is_not_enabled_is_unknown(corridor):
    with pytest.raises(ValidationError, match="no environment named 'Corridor-v0'"):
        tiny("Corridor-v0")


def test_the_documented_example_is_learned_by_workers(corridor):
    packages.enable(["our_envs"])
    platform = LocalOptions(workers=1).open()
    try:
        events = list(train(tiny("Corridor-v0"), platform=platform, checkpoints=Forgetful(), control=Control))
    finally:
        platform.close()
    assert events[0].notes == ()  # it says how it travels
    assert events[-1].reason_code == "rounds", events[-1]


def test_an_enabled_package_that_is_missing_is_named(corridor):
    packages.enable(["no_such_envs"])
    with pytest.raises(packages.PackageMissing, match=r"'no_such_envs' is enabled .* cannot be imported"):
        tiny("Whatever-v0")
