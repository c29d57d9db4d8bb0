from collections.abc import Iterator

import pytest

from emulator.azure.demo import DemoSubscription, furnish
from emulator.azure.server import AzureEmulator


@pytest.fixture
def azure() -> Iterator[AzureEmulator]:
    with AzureEmulator() as emulator:
        yield emulator


@pytest.fixture
def demo(azure: AzureEmulator) -> DemoSubscription:
    return furnish(azure)
