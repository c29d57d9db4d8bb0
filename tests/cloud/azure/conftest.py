from collections.abc import Iterator

import pytest

from cloud.emulator.azure.demo import DemoSubscription, furnish
from cloud.emulator.azure.server import AzureEmulator


@pytest.fixture
def azure() -> Iterator[AzureEmulator]:
    with AzureEmulator() as emulator:
        yield emulator


@pytest.fixture
def demo(azure: AzureEmulator) -> DemoSubscription:
    return furnish(azure)
