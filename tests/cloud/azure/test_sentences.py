"""What is said of Azure's refusals and of its limit on creates, word by word."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from cloud.accounts.provision.azure import remove, set_up
from cloud.platforms.azure.checks import CONTAINERS_USABLE, GROUP_EXISTS
from cloud.platforms.azure.clients import AzureClients
from cloud.platforms.azure.create_limit import CreateLimit
from cloud.platforms.azure.error_text import refusal
from emulator.azure.demo import DemoSubscription
from emulator.azure.server import AzureEmulator
from tests.cloud import calls
from tests.cloud.azure import containers
from tests.cloud.azure.test_azure_container import hear, submit, until
from tests.cloud.azure.test_azure_provision import set_up_while_deleted


class AnsweredError(Exception):
    """An error as Azure's SDK raises it."""

    def __init__(self, code: str, message: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.error = SimpleNamespace(code=code)


@pytest.mark.parametrize(
    ("error", "words", "fix"),
    [
        (
            AnsweredError(
                "AuthorizationFailed", "perform action 'Microsoft.ContainerInstance/containerGroups/read'"
            ),
            "Azure refuses Microsoft.ContainerInstance/containerGroups/read to the app.",
            "Add Microsoft.ContainerInstance/containerGroups/read to the app's role, or copy the two roles again, and"
            " give both to the app.",
        ),
        (
            AnsweredError("", "AADSTS700016: no app"),
            "This tenant has no app with this client ID.",
            "Copy Application (client) ID from the app registration's overview, and check the tenant.",
        ),
        (
            AnsweredError("", "AADSTS7000222: expired"),
            "The client secret has expired.",
            "Make a new one under Certificates & secrets of the app registration, and type it in here.",
        ),
        (
            AnsweredError("ResourceGroupNotFound"),
            "There is no such resource group.",
            "Make it in the Azure portal, in the region of this connection.",
        ),
        (
            AnsweredError("InaccessibleImage"),
            "Azure cannot fetch the image.",
            "Check its name, that it is public, and that it was pushed.",
        ),
        (
            AnsweredError("RegistryErrorResponse"),
            "The registry of the image answers Azure with an error, or limits its requests.",
            "Wait some minutes. If it lasts, see the registry's state, or keep the image in another registry.",
        ),
    ],
)
def test_what_azure_refuses(error: Exception, words: str, fix: str) -> None:
    refused = refusal(error)
    assert (refused.words, refused.fix) == (words, fix)


def test_a_create_that_waits() -> None:
    class Full:
        def take(self, windows: Sequence[tuple[int, float]]) -> float:
            return 3600.0

    limit = CreateLimit(Full(), ((2, 300.0), (3, 3600.0)), now_s=lambda: 0.0)
    limit.take()
    assert limit.words() == (
        "Azure takes 2 creates of container groups in 5 minutes and 3 an hour, counted over all jobs in this"
        " subscription; there is room for the next one in 60 min"
    )


def test_groups_that_fail_to_start_are_taken_away_and_others_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.platforms.azure.fleet._BACKOFF_S", (300.0,))
    skipped_s = 0.0
    with containers.opened() as (platform, azure):
        platform.fleet._now_s = lambda: time.monotonic() + skipped_s
        azure.faults.order("failed_start", 2)
        platform.submit(calls.rollout("c", platform.publish(0, calls.weights())))
        reported: list[str] = []
        outcome = None
        while outcome is None:
            outcome = platform.next(0.2)
            if words := platform.throttling_reasons():
                reported.append(words)
                skipped_s += 300.0
        assert outcome.status == "done"
        assert len(reported) == 2
        for words in reported:
            assert re.fullmatch(
                r"A container group did not start: .*[^.]\. The next try is in (300|2\d\d) s\.", words
            )
        hear(platform, ["gone", "gone", "standing"])


def test_why_calls_wait_for_containers_is_reported() -> None:
    class Full:
        def take(self, windows: Sequence[tuple[int, float]]) -> float:
            return 600.0

    with containers.opened(creates=Full()) as (platform, azure):
        submit(platform, 2)
        until(lambda: bool(platform.throttling_reasons()), platform)
        assert platform.throttling_reasons().endswith(
            "; there is room for the next one in 10 min. Until then 1 order waits."
        )
        assert azure.meter.spans == [], "it was not requested"


def test_one_container_that_is_tried(azure: AzureEmulator, demo: DemoSubscription) -> None:
    clients = AzureClients(demo.connection)
    steps = {step.name: step for step in set_up(clients, "con_1", "lab", demo.image, poll_s=0.1)}
    assert (
        steps["One container"].words == f"It fetched {demo.image}, ran for a moment and ended as it should."
    )
    removed = {step.name: step.words for step in remove(clients, "con_1", poll_s=0.1)}
    assert removed["Container groups"] == "Nothing of this connection is in the resource group."


def test_one_container_that_someone_deletes(azure: AzureEmulator, demo: DemoSubscription) -> None:
    step = set_up_while_deleted(azure, demo)["One container"]
    assert step.words == "Someone deleted its group before it had ended. Set up again."


def test_names_of_checks() -> None:
    assert (CONTAINERS_USABLE, GROUP_EXISTS) == (
        "Container instances may be used in this region",
        "The resource group exists",
    )
