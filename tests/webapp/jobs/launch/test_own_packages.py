"""A package of the operator's own is not shipped to functions or containers, and a launch there is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from tests.factories import make_spec
from tests.hungry import NAME, hungry_package
from training.rl import packages
from webapp.jobs.launch.preflight import platform_obstacle
from webapp.jobs.spec import JobSpec


@pytest.fixture(autouse=True)
def own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with hungry_package(tmp_path, monkeypatch):
        yield


def spec_of(platform: Any, environment: str) -> JobSpec:
    document = make_spec().model_dump(mode="json")
    document["training"]["environment"]["id"] = environment
    return JobSpec.model_validate({**document, "platform": platform.model_dump(mode="json")})


@pytest.mark.parametrize(
    ("options", "where"), [(LambdaOptions, "functions"), (AzureContainerOptions, "containers")]
)
def test_a_launch_where_actors_lack_the_package_is_refused_with_where_it_runs(
    options: Any, where: str
) -> None:
    found = platform_obstacle(spec_of(options(connection="con_aaaaaaaaaa"), "Growing-v0"))
    assert found is not None
    assert found.path == "training.environment.id"
    assert re.search(rf"Growing-v0 .* {NAME}, which {where} ", found.sentence)
    assert platform_obstacle(spec_of(options(connection="con_aaaaaaaaaa"), "CartPole-v1")) is None


@pytest.mark.parametrize("options", [LocalOptions, SimulatedOptions])
def test_it_runs_where_processes_of_this_machine_do(options: Any) -> None:
    assert platform_obstacle(spec_of(options(), "Growing-v0")) is None


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("LunarLander-v3", "box2d"),
        ("CarRacing-v3", "box2d"),
        ("phys2d/CartPole-v1", "jax"),
        ("tabular/Blackjack-v0", "jax"),
    ],
)
def test_an_environment_of_gymnasium_that_needs_another_package_is_refused_there(
    name: str, package: str
) -> None:
    """A user who installs the package here can train with it here, and actors of a cloud still lack it."""
    found = platform_obstacle(spec_of(LambdaOptions(connection="con_aaaaaaaaaa"), name))
    assert found is not None
    assert re.search(rf"{name} .* {package}, which functions ", found.sentence)
    assert platform_obstacle(spec_of(LocalOptions(), name)) is None


@pytest.mark.parametrize("name", ["CartPole-v1", "Hopper-v5", "ALE/Breakout-v5", "Blackjack-v1"])
def test_every_actor_has_gymnasiums_own_and_ataris(name: str) -> None:
    assert packages.package_of(name) == ""
