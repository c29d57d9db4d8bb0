"""Setting a resource group up for containers, and taking everything of ours away again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cloud.accounts.provision.azure import remove, set_up
from cloud.accounts.provision.permissions import AZURE, prefix_of
from cloud.accounts.provision.steps import SetUpStep
from cloud.accounts.register import group_name, tags
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.groups import AzureGroups, Container
from emulator.azure.demo import DemoSubscription
from emulator.azure.server import AzureEmulator
from rig.servers import wait_until


def _by_name(steps: Iterator[SetUpStep]) -> dict[str, SetUpStep]:
    return {step.name: step for step in steps}


def _set_up(demo: DemoSubscription, image: str = "") -> dict[str, SetUpStep]:
    clients = AzureClients(demo.connection)
    return _by_name(set_up(clients, "con_1", "lab", image or demo.image, patience_s=20.0, poll_s=0.1))


def test_one_container_is_run_and_taken_away(azure: AzureEmulator, demo: DemoSubscription) -> None:
    azure.faults.order("lost_reply")
    for _ in range(2):
        steps = _set_up(demo)
        assert {step.state for step in steps.values()} == {"done", "made", "gone"}, steps
        assert "ended as it" in steps["One container"].words
        assert azure.groups.all() == []
    assert [span.over for span in azure.meter.spans] == [True, True]


def test_a_bad_hour_of_the_cloud_does_not_fail_it(azure: AzureEmulator, demo: DemoSubscription) -> None:
    clients = AzureClients(demo.connection)
    steps = set_up(clients, "con_1", "lab", demo.image, patience_s=60.0, poll_s=0.1)
    before = [next(steps) for _ in range(4)]
    azure.faults.shares = {"service_error": 0.4, "lost_reply": 0.2}
    after = list(steps)
    assert [step.state for step in (*before, *after)] == ["done"] * 4 + ["made", "gone"], after
    assert azure.faults.struck["service_error"] > 0


class _WithDeedOnceRead(AzureClients):
    """After each read of a group something is done to it."""

    deed: Callable[[Any, str], object]

    @property
    def container_groups(self) -> Any:
        return _Operations(super().container_groups, self.deed)


class _Operations:
    def __init__(self, real: Any, deed: Callable[[Any, str], object]) -> None:
        self._real = real
        self._deed = deed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def get(self, resource_group: str, name: str) -> Any:
        found = self._real.get(resource_group, name)
        self._deed(self._real, name)
        return found


def set_up_while_deleted(azure: AzureEmulator, demo: DemoSubscription) -> dict[str, SetUpStep]:
    """The steps if someone deletes the container's group once it was seen."""
    azure.faults.slow_start_s = 3_600.0
    azure.faults.order("slow_start")
    clients = _WithDeedOnceRead(demo.connection)
    where = demo.connection.resource_group
    clients.deed = lambda real, name: real.begin_delete(where, name, polling=False)
    return _by_name(set_up(clients, "con_1", "lab", demo.image, patience_s=3_600.0, poll_s=0.1))


def test_a_deleted_trial_is_reported_at_once(azure: AzureEmulator, demo: DemoSubscription) -> None:
    step = set_up_while_deleted(azure, demo)["One container"]
    assert step.state == "missing"
    assert "Someone deleted" in step.words


def test_an_image_without_our_code_is_reported(azure: AzureEmulator, demo: DemoSubscription) -> None:
    step = _set_up(demo, "registry.example/other:1")["One container"]
    assert step.state == "missing"
    assert "cannot fetch" in step.words
    assert azure.groups.all() == []


@pytest.mark.parametrize(
    ("change", "name", "fix"),
    [
        ("secret", "Sign-in", "secret's Value"),
        ("registered", "Container instances", "az provider register"),
        ("group", "Resource group elsewhere", "Azure portal"),
    ],
)
def test_what_is_missing_is_reported_with_what_to_do(
    azure: AzureEmulator, demo: DemoSubscription, change: str, name: str, fix: str
) -> None:
    connection = demo.connection
    if change == "secret":
        connection = replace(connection, access=replace(connection.access, client_secret="wrong"))
    elif change == "registered":
        azure.subscription.registered = False
    else:
        connection = replace(connection, resource_group="elsewhere")
        azure.subscription.apps[connection.access.client_id].roles[0] = replace(
            azure.subscription.apps[connection.access.client_id].roles[0],
            scope=f"/subscriptions/{connection.subscription_id}",
        )
    *_, last = set_up(AzureClients(connection), "con_1", "lab", demo.image, poll_s=0.1)
    assert (last.name, last.state) == (name, "missing")
    assert fix in last.fix
    assert "wrong" not in last.words.replace("is wrong", "")


def test_removing_takes_what_is_ours_and_nothing_else(azure: AzureEmulator, demo: DemoSubscription) -> None:
    clients = AzureClients(demo.connection)
    groups = AzureGroups(clients)
    sleeper = Container("c", demo.image, ("python", "-c", "import time; time.sleep(60)"), 1, 1, {}, {})
    worn = tags(deployment="con_1", run="job/e1", owner="lab", expires_unix_s=2e9)
    groups.create("ours", [sleeper], worn)
    groups.create("others", [sleeper], {**worn, "starling:deployment": "con_2"})
    steps = _by_name(remove(clients, "con_1", poll_s=0.1))
    assert steps["Container group ours"].state == "gone"
    assert [one.name for one in azure.groups.all()] == ["others"]
    assert "Nothing of this" in _by_name(remove(clients, "con_1", poll_s=0.1))["Container groups"].words


def test_a_removal_takes_a_group_that_ends_between_two_looks(
    azure: AzureEmulator, demo: DemoSubscription, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    code = f"import os, time\nwhile not os.path.exists({str(end)!r}): time.sleep(0.01)"
    worn = tags(deployment="con_1", run="job/e1", owner="lab", expires_unix_s=2e9)
    waits = Container("c", demo.image, ("python", "-c", code), 1, 1, {}, {})
    AzureGroups(AzureClients(demo.connection)).create("ours", [waits], worn)

    def end_it(real: Any, name: str) -> None:
        end.touch()
        wait_until(
            lambda: all(group.state == "Succeeded" for group in azure.groups.all()),
            within_s=60,
            what="its end",
        )

    clients = _WithDeedOnceRead(demo.connection)
    clients.deed = end_it
    steps = _by_name(remove(clients, "con_1", poll_s=0.1))
    assert {step.state for step in steps.values()} == {"done", "gone"}, steps
    assert azure.groups.all() == []


_ONLY_FOR_THE_TEST = {"Microsoft.Authorization/permissions/read"}


@pytest.mark.parametrize("left_out", [one.action for one in AZURE if one.action not in _ONLY_FOR_THE_TEST])
def test_a_missing_right_is_named_with_what_to_do(
    azure: AzureEmulator, demo: DemoSubscription, left_out: str
) -> None:
    app = azure.subscription.apps[demo.connection.access.client_id]
    app.roles = [replace(role, not_actions=(left_out,)) for role in app.roles]
    clients = AzureClients(demo.connection)
    steps = [*set_up(clients, "con_1", "lab", demo.image, patience_s=20.0, poll_s=0.1)]
    steps += remove(clients, "con_1", poll_s=0.1)
    said = [sentence for step in steps if step.state == "missing" for sentence in (step.words, step.fix)]
    assert {action for sentence in said for action in re.findall(r"Microsoft\.[\w./]+\w", sentence)} == {
        left_out
    }
    assert any(f"Azure refuses {left_out} " in sentence for sentence in said)
    assert any(f"Add {left_out} " in sentence for sentence in said)


def test_a_removal_leaves_the_groups_of_another_connection_in_one_resource_group(
    azure: AzureEmulator, demo: DemoSubscription
) -> None:
    """Also those that it could take for its own by their names, and those without tags."""
    sleeper = Container("c", demo.image, ("python", "-c", "import time; time.sleep(60)"), 1, 1, {}, {})
    ended = Container("c", demo.image, ("python", "-c", "pass"), 1, 1, {}, {})
    keys = ("con_aaaaaaaaaa", "con_bbbbbbbbbb")
    names: dict[str, set[str]] = {}
    for key in keys:
        connection = replace(demo.connection, prefix=prefix_of(key))
        groups = AzureGroups(AzureClients(connection))
        worn = tags(deployment=key, run="job/e1", owner="lab", expires_unix_s=2e9)
        made = {
            group_name(connection.prefix, "job", 1, number): one
            for number, one in enumerate((sleeper, ended))
        }
        for name, container in made.items():
            groups.create(name, [container], worn)
        groups.create(group_name("starling", key, 1, 1), [sleeper], {})
        names[key] = set(made)
    clients = AzureClients(replace(demo.connection, prefix=prefix_of(keys[0])))
    steps = list(remove(clients, keys[0], poll_s=0.1))
    assert {step.state for step in steps} == {"done", "gone"}
    left = {one.name for one in azure.groups.all()}
    untagged = {group_name("starling", key, 1, 1) for key in keys}
    assert left == names[keys[1]] | untagged
