"""What is said of Azure's refusals and of its limit on creates, word by word."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from cloud.platforms.azure.create_limit import CreateLimit
from cloud.platforms.azure.error_text import refusal


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
