"""A job that would run out of memory is refused before it is launched, whichever way, with what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings

from cloud.platforms.azure_container import AzureContainerOptions
from cloud.platforms.hosts import HostsOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from tests.factories import make_job, make_project, make_spec, make_user
from tests.webapp.api_callers import ApiCaller
from tests.webapp.ways_to_launch import assert_refused
from training.engine.memory_limit import machine_bytes
from webapp.jobs.form.forms import job_form
from webapp.jobs.form.presets import presets
from webapp.jobs.launch.job_memory import (
    format_memory,
    memory_obstacle,
    memory_of,
    memory_sentence,
    most_job_bytes,
)
from webapp.jobs.models import Job
from webapp.jobs.spec import JobSpec
from webapp.schedulers import services as schedulers
from webapp.schedulers.request import TrainingRequest

_GIGABYTE = 2**30
LARGE: dict[str, Any] = {"steps_per_call": 65_536, "environments_per_actor": 256}


@pytest.fixture
def allowed() -> Iterator[Callable[[int], None]]:
    """Sets how many megabytes a job may take here."""
    with override_settings(STARLING_MAX_JOB_MEMORY_MB=4096):

        def allow(megabytes: int) -> None:
            from django.conf import settings

            settings.STARLING_MAX_JOB_MEMORY_MB = megabytes

        yield allow


def large() -> dict[str, Any]:
    """The cartpole preset with actors that sample 16.8 million steps a call each."""
    changes = {"training__rollout": LARGE, "platform": {"kind": "local", "workers": 2}}
    document: dict[str, Any] = make_spec(**changes).model_dump(mode="json")
    return document


def spec_with(**training: Any) -> JobSpec:
    return JobSpec.model_validate(
        {"training": training, "platform": {"kind": "local", "workers": 2}, "budget_usd": "1"}
    )


def test_a_job_may_take_half_of_what_the_machine_has_beyond_the_site_or_what_the_operator_says(
    allowed: Callable[[int], None],
) -> None:
    assert most_job_bytes() == 4 * _GIGABYTE
    allowed(0)
    assert most_job_bytes() == max(_GIGABYTE, (machine_bytes() - _GIGABYTE) // 2)


@pytest.mark.parametrize("cores", [2, 8])
def test_every_preset_fits_on_a_machine_of_8_gb(cores: int, allowed: Callable[[int], None]) -> None:
    allowed((8 - 1) * 1024 // 2)
    for preset in presets().values():
        platform = preset.spec.platform
        if isinstance(platform, LocalOptions | SimulatedOptions) and platform.workers is None:
            platform = platform.model_copy(update={"workers": cores})
        assert memory_obstacle(preset.spec.model_copy(update={"platform": platform})) is None, preset.key


@pytest.mark.parametrize(
    ("training", "path", "words"),
    [
        (
            {"rollout": LARGE},
            "training.rollout.steps_per_call",
            "(at most about 1",
        ),
        (
            {
                "algorithm": {"kind": "a2c"},
                "rollout": {"steps_per_call": 65_536, "environments_per_actor": 16},
            },
            "training.rollout.steps_per_call",
            "(at most about 1",
        ),
        (
            {"network": {"kind": "mlp", "hidden": [4096] * 6}},
            "training.network.hidden",
            "2.2 GB, and a message",
        ),
        (
            {"network": {"kind": "mlp", "hidden": [4096, 4096]}},
            "training.network.hidden",
            "Hidden layers",
        ),
        (
            {
                "algorithm": {"kind": "ppo", "minibatch_size": 1_000_000},
                "network": {"kind": "mlp", "hidden": [2048]},
                "rollout": {"steps_per_call": 65_536, "environments_per_actor": 16},
            },
            "training.algorithm.minibatch_size",
            "(at most about",
        ),
    ],
)
def test_what_grows_too_large_is_named_with_how_much_would_fit(
    training: dict[str, Any], path: str, words: str, allowed: Callable[[int], None]
) -> None:
    found = memory_obstacle(spec_with(**training))
    assert found is not None
    assert found.path == path
    assert words in found.sentence


def test_the_number_that_the_sentence_names_fits(allowed: Callable[[int], None]) -> None:
    spec = spec_with(rollout={"steps_per_call": 65_536, "environments_per_actor": 64})
    found = memory_obstacle(spec)
    assert found is not None
    (most,) = [
        int(word.replace(",", "")) for word in found.sentence.split() if word[0].isdigit() and "," in word
    ]
    actors = spec.training.scaling.largest
    fewer = spec_with(rollout={"steps_per_call": most // actors // 64, "environments_per_actor": 64})
    assert memory_obstacle(fewer) is None
    more = spec_with(rollout={"steps_per_call": most // actors // 48, "environments_per_actor": 64})
    assert memory_obstacle(more) is not None


def test_actors_elsewhere_do_not_count_here_and_have_the_memory_that_is_bought(
    allowed: Callable[[int], None],
) -> None:
    spec = spec_with(
        environment={"id": "Humanoid-v5"},
        network={"kind": "mlp", "hidden": [64]},
        rollout={"steps_per_call": 2048, "environments_per_actor": 256, "memory_mb": 1024},
        scaling={"kind": "fixed", "actors": 1},
    )

    def on(platform: Any) -> JobSpec:
        return spec.model_copy(update={"platform": platform})

    hosts = memory_of(on(HostsOptions()))
    assert hosts is not None
    assert hosts.bytes_here == hosts.needs.job_bytes
    small = memory_obstacle(on(AzureContainerOptions(connection="con_aaaaaaaaaa", memory_gb=2)))
    assert small is not None
    assert "each actor needs" in small.sentence
    assert "has 2.0 GB; give it more (platform.memory_gb)" in small.sentence
    whole_group = AzureContainerOptions(connection="con_aaaaaaaaaa", memory_gb=16, containers_a_group=1)
    assert memory_obstacle(on(whole_group)) is None
    allowed(20_000)
    functions = memory_obstacle(on(SimulatedOptions(profile="lambda", workers=1)))
    assert functions is not None
    assert "has 1.0 GB; give it more (training.rollout.memory_mb)" in functions.sentence


def test_memory_is_said_in_two_digits() -> None:
    said = [format_memory(size * 2**20) for size in (0.2, 64, 123.4, 1019, 1023.9, 1536, 10_240, 215_040)]
    assert said == ["1 MB", "64 MB", "120 MB", "1.0 GB", "1.0 GB", "1.5 GB", "10 GB", "210 GB"]


@pytest.mark.django_db
def test_no_way_to_launch_takes_it(allowed: Callable[[int], None]) -> None:
    user = make_user()
    project = make_project(user)
    parent = make_job(project, user)
    assert_refused(project, user, large(), "training.rollout.steps_per_call", "Sample fewer steps a round")
    allowed(200)
    again = ApiCaller(user).post(f"/projects/{project.slug}/jobs/{parent.pk}/again", {"new_seed": True})
    assert again.status_code == 422
    assert "and may take 200 MB" in again.json()["errors"][0]["sentence"]
    assert list(Job.objects.all()) == [parent]


def test_the_command_refuses_it_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], allowed: Callable[[int], None]
) -> None:
    path = tmp_path / "large.json"
    path.write_text(json.dumps(large()))
    with pytest.raises(SystemExit) as ended:
        call_command("train", str(path))
    assert ended.value.code == 2
    assert "Sample fewer steps a round" in capsys.readouterr().err


@pytest.mark.django_db
def test_a_scheduler_is_not_trained_with_more_actors_than_fit(allowed: Callable[[int], None]) -> None:
    request = TrainingRequest.model_validate({"workload": "cartpole", "scheduling": {"actors_max": 64}})
    assert not schedulers.obstacles(make_project(), request)
    allowed(200)
    (found,) = schedulers.obstacles(make_project(), request)
    assert found.path == "scheduling.actors_max"
    assert "may take 200 MB" in found.sentence


@pytest.mark.django_db
def test_the_checklist_says_how_much_a_job_needs(client: Any, allowed: Callable[[int], None]) -> None:
    spec = make_spec()
    assert re.match(r"About 140 MB .* and 64 MB in each actor", memory_sentence(spec))
    user = make_user()
    project = make_project(user)
    client.force_login(user)
    fields = job_form(start=spec).as_typed()
    page = client.post(f"/p/{project.slug}/jobs/new/checks", {**fields, "seeds": "1"}).content.decode()
    assert memory_sentence(spec) in unescape(page)
    assert "4.0 GB" in memory_sentence(spec)
