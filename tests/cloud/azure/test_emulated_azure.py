"""The emulated subscription through Azure's own SDK: what the product leans on, and what it must not let through."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError

from cloud.accounts.connections import AzureConnection
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.error_text import code_of
from cloud.platforms.azure.groups import AzureGroups
from emulator.azure.demo import IMAGE, DemoSubscription
from emulator.azure.server import AzureEmulator
from emulator.azure.subscription import RoleAssignment
from tests.cloud.test_platform_contract import alive

GROUP = "starling"


def _document(code: str = "print('hello')", **changes: Any) -> dict[str, Any]:
    container = {
        "name": "c",
        "properties": {
            "image": IMAGE,
            "command": ["python", "-c", code],
            "environmentVariables": [{"name": "SECRET", "secureValue": "s3cret"}],
            "resources": {"requests": {"cpu": 1, "memoryInGB": 1}},
        },
    }
    properties = {"osType": "Linux", "restartPolicy": "Never", "containers": [container], **changes}
    return {"location": "eastus", "tags": {}, "properties": properties}


def _until(true: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 60.0
    while not true():
        assert time.monotonic() < end_s
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def _everything(azure: AzureEmulator, demo: DemoSubscription) -> None:
    """More rights than our roles give: the SDK's own waiting and stopping are tried too."""
    (app,) = azure.subscription.apps.values()
    app.roles.append(RoleAssignment(f"/subscriptions/{azure.subscription.id}", ("*",)))


def _refusal(ask: Callable[[], Any]) -> tuple[int, str]:
    with pytest.raises(HttpResponseError) as refused:
        ask()
    return int(refused.value.status_code or 0), code_of(refused.value)


def test_a_container_runs_with_what_it_was_given_and_nothing_else(
    azure: AzureEmulator, demo: DemoSubscription
) -> None:
    clients = AzureClients(demo.connection)
    operations = clients.container_groups
    document = _document("import os; print(sorted(os.environ)); print(os.environ['SECRET'])")
    made = operations.begin_create_or_update(GROUP, "g", document, polling_interval=0.05).result()
    assert made.provisioning_state == "Succeeded"
    _until(lambda: operations.get(GROUP, "g").instance_view.state == "Succeeded")
    group = operations.get(GROUP, "g")
    (shown,) = group.containers[0].environment_variables
    assert (shown.name, shown.secure_value, shown.value) == ("SECRET", None, None)
    said = clients.containers.list_logs(GROUP, "g", "c").content
    assert "s3cret" in said
    assert not any(name in said for name in os.environ if name.startswith(("AZURE", "STARLING", "DJANGO")))
    (span,) = azure.meter.spans
    assert (span.over, span.cores, span.memory_mb) == (True, 1, 1024)


def test_exit_codes_restart_policies_and_deletes(azure: AzureEmulator, demo: DemoSubscription) -> None:
    operations = AzureClients(demo.connection).container_groups
    operations.begin_create_or_update(
        GROUP, "fails", _document("raise SystemExit(3)"), polling=False
    ).result()
    _until(lambda: operations.get(GROUP, "fails").instance_view.state == "Failed")
    assert operations.get(GROUP, "fails").containers[0].instance_view.current_state.exit_code == 3
    forever = _document("print('again')", restartPolicy="Always")
    operations.begin_create_or_update(GROUP, "forever", forever, polling=False).result()
    _until(lambda: operations.get(GROUP, "forever").instance_view.state == "Running")
    operations.begin_delete(GROUP, "forever", polling=False).result()
    assert azure.groups.pids() == []
    assert all(span.over for span in azure.meter.spans)


def test_what_azure_refuses_has_its_code(azure: AzureEmulator, demo: DemoSubscription) -> None:
    operations = AzureClients(demo.connection, tries=1).container_groups

    def create(name: str, **changes: Any) -> Any:
        return operations.begin_create_or_update(GROUP, name, _document(**changes), polling=False).result()

    assert _refusal(lambda: create("Not A Name"))[0] == 400
    azure.subscription.images = ()
    assert _refusal(lambda: create("g")) == (400, "InaccessibleImage")
    azure.subscription.images = ("*",)
    azure.subscription.cores_at_most = 0
    assert _refusal(lambda: create("g")) == (409, "ContainerGroupQuotaReached")
    azure.subscription.cores_at_most = 400
    azure.subscription.groups_at_most = 400
    azure.groups.stubs = "*"
    for number in range(100):
        create(f"g{number}")
    assert _refusal(lambda: create("g100")) == (429, "TooManyRequests")
    azure.subscription.registered = False
    assert _refusal(lambda: create("h")) == (409, "MissingSubscriptionRegistration")
    (app,) = azure.subscription.apps.values()
    app.roles = []
    assert _refusal(lambda: create("h")) in ((403, "AuthorizationFailed"), (404, "SubscriptionNotFound"))
    app.secret = "changed"
    with pytest.raises(ClientAuthenticationError, match="AADSTS7000215"):
        AzureClients(demo.connection).sign_in()


def test_containers_die_with_their_emulator(demo: DemoSubscription) -> None:
    """However it dies: a process of its own, killed."""
    emulator = subprocess.Popen(
        [sys.executable, "-m", "emulator", "azure"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert emulator.stdout is not None
    reported = json.loads(emulator.stdout.readline())
    access = demo.connection.access.__class__(
        reported["tenant_id"], reported["client_id"], reported["client_secret"]
    )
    connection = AzureConnection(
        access,
        reported["subscription_id"],
        reported["resource_group"],
        endpoint_url=reported["endpoint"],
        ca=reported["ca"],
    )
    clients = AzureClients(connection)
    document = _document("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    groups = AzureGroups(clients)
    clients.container_groups.begin_create_or_update(GROUP, "g", document, polling=False).result()
    _until(lambda: bool(groups.log("g", "c")))
    pid = int(groups.log("g", "c"))
    assert alive(pid)
    emulator.kill()
    emulator.wait()
    _until(lambda: not alive(pid))
    emulator.stdout.close()
    assert emulator.stdin is not None
    emulator.stdin.close()
