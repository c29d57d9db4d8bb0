"""What a look at a resource group finds, and what it leaves alone."""

from __future__ import annotations

import time
from collections.abc import Mapping

from cloud.accounts.register import run_tag, tags
from cloud.platforms.azure.billable_resources import AzureFinder, clear_ended
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.groups import AzureGroups, Container
from emulator.azure.demo import DemoSubscription
from emulator.azure.server import AzureEmulator

WORN = tags(deployment="here", run=run_tag("job-1", 2), owner="lab", expires_unix_s=2e9)


def _make(
    demo: DemoSubscription, name: str, worn: Mapping[str, str], *, seconds: float = 60.0
) -> AzureGroups:
    groups = AzureGroups(AzureClients(demo.connection))
    command = ("python", "-c", f"import time; time.sleep({seconds})")
    groups.create(name, [Container("actor-1", demo.image, command, 1, 2, {}, {})], worn)
    return groups


def _wait_for(azure: AzureEmulator, name: str, state: str) -> None:
    end_s = time.monotonic() + 60.0
    while next(one.state for one in azure.groups.all() if one.name == name) != state:
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_ours_are_found_by_tags_and_by_names_and_ended(azure: AzureEmulator, demo: DemoSubscription) -> None:
    _make(demo, "tagged", WORN)
    _make(demo, "starling-job-9-e1-3", {})
    _make(demo, "somebody-elses", {"app": "shop"})
    finder = AzureFinder(AzureClients(demo.connection))
    found = {one.name: one for one in finder.found()}
    assert set(found) == {"tagged", "starling-job-9-e1-3"}
    tagged = found["tagged"]
    assert (tagged.deployment, tagged.run, tagged.expires_unix_s) == ("here", "job-1/e2", 2e9)
    assert tagged.facts == {"actors": 1}
    for _ in range(2):
        finder.end(tagged)
    assert {one.name for one in finder.found()} == {"starling-job-9-e1-3"}
    assert {one.name for one in azure.groups.all()} == {"starling-job-9-e1-3", "somebody-elses"}


def test_what_ended_by_itself_bills_nothing_and_is_cleared(
    azure: AzureEmulator, demo: DemoSubscription
) -> None:
    groups = _make(demo, "starling-job-1-e1-1", WORN, seconds=0.0)
    _make(demo, "starling-job-1-e1-2", WORN)
    _wait_for(azure, "starling-job-1-e1-1", "Succeeded")
    assert [one.name for one in AzureFinder(AzureClients(demo.connection)).found()] == ["starling-job-1-e1-2"]
    assert clear_ended(groups, "another") == 0
    assert clear_ended(groups, "here") == 1
    assert [one.name for one in azure.groups.all()] == ["starling-job-1-e1-2"]
