"""Emulated functions and containers import what a real account gets, whatever else this machine has."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest

from cloud.actor import bundle
from cloud.platforms.azure.clients import AzureClients
from emulator.aws.demo import furnish as furnish_aws
from emulator.aws.server import AwsEmulator
from emulator.azure.demo import IMAGE
from emulator.azure.demo import furnish as furnish_azure
from emulator.azure.server import AzureEmulator
from emulator.azure.subscription import RoleAssignment
from rig.servers import wait_until
from tests.cloud import calls
from tests.cloud.aws import lambdas
from tests.cloud.aws.code import create
from tests.cloud.test_platform_contract import gather
from tests.hungry import hungry_package
from training.rl.environments.model import EnvironmentSpec

# What this process finds, and what a process finds that it starts.
_LOOK = """
import importlib.metadata, importlib.util, json, subprocess, sys
def found(names):
    return [name for name in names if importlib.util.find_spec(name)]
def look(names):
    program = "import importlib.util, json, sys; print(json.dumps(["
    program += "name for name in json.loads(sys.argv[1]) if importlib.util.find_spec(name)]))"
    inner = subprocess.run([sys.executable, "-c", program, json.dumps(names)], capture_output=True, check=True)
    packages = sorted({one.name.lower().replace("_", "-") for one in importlib.metadata.distributions()})
    return {"found": found(names), "inside": json.loads(inner.stdout), "packages": packages}
"""
_FUNCTION = _LOOK + "def handler(event, context):\n    return look(event)\n"
SENT = [
    "numpy",
    "gymnasium",
    "mujoco",
    "ale_py",
    "pydantic",
    "msgpack",
    "zstandard",
    "threadpoolctl",
    "awslambdaric",
]
NOT_SENT = ["beside", "torch", "django", "pytest", "boto3", "webapp"]


@pytest.fixture
def _beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that the user has on this machine, like the others that are not sent."""
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "__init__.py").write_text("import gymnasium\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert all(importlib.util.find_spec(name) for name in NOT_SENT), "they are here"


def _check(seen: dict[str, Any]) -> None:
    assert (seen["found"], seen["inside"]) == (SENT, SENT)
    assert set(seen["packages"]) == {*bundle.PACKAGES, *bundle.RUNTIME_PACKAGES}


@pytest.mark.usefixtures("_beside")
def test_a_function_imports_what_its_bundle_brings_and_no_other_package_of_this_machine() -> None:
    with AwsEmulator() as aws:
        demo = furnish_aws(aws)
        client = demo.by_keys.open().client("lambda", tries=1)
        create(client, "starling-looks", demo.actor_role, _FUNCTION, Timeout=60)
        payload = json.dumps([*SENT, *NOT_SENT])
        answer = client.invoke(FunctionName="starling-looks", Payload=payload)
        _check(json.loads(answer["Payload"].read()))


def test_an_environment_of_the_users_own_package_fails_in_a_function_as_it_would_on_aws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hungry_package(tmp_path, monkeypatch), lambdas.opened(at_once=1) as (platform, _):
        ref = platform.publish(0, calls.weights())
        environment = EnvironmentSpec(id="Growing-v0")
        call = calls.rollout("a", ref)
        request = call.request.model_copy(update={"environment": environment})
        platform.submit(call.model_copy(update={"request": request}))
        outcome = gather(platform, 1)["a"]
        assert outcome.status == "failed"
        assert "'Growing-v0'" in outcome.reason


@pytest.mark.usefixtures("_beside")
def test_a_container_imports_what_its_image_brings_and_no_other_package_of_this_machine() -> None:
    with AzureEmulator() as azure:
        demo = furnish_azure(azure)
        (app,) = azure.subscription.apps.values()
        app.roles.append(RoleAssignment(f"/subscriptions/{azure.subscription.id}", ("*",)))
        clients = AzureClients(demo.connection)
        code = f"{_LOOK}\nimport cloud.actor.puller\nprint(json.dumps(look({[*SENT, *NOT_SENT]!r})))"
        container = {
            "name": "c",
            "properties": {
                "image": IMAGE,
                "command": ["python", "-c", code],
                "resources": {"requests": {"cpu": 1, "memoryInGB": 1}},
            },
        }
        properties = {"osType": "Linux", "restartPolicy": "Never", "containers": [container]}
        document = {"location": "eastus", "tags": {}, "properties": properties}
        operations = clients.container_groups
        operations.begin_create_or_update("starling", "g", document, polling=False).result()
        ended = lambda: operations.get("starling", "g").instance_view.state in ("Succeeded", "Failed")  # noqa: E731
        wait_until(ended, within_s=60, what="the container has ended")
        _check(json.loads(clients.containers.list_logs("starling", "g", "c").content))
