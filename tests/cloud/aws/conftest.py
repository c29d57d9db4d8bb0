from collections.abc import Iterator

import pytest

from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator


@pytest.fixture
def aws() -> Iterator[AwsEmulator]:
    with AwsEmulator() as emulator:
        yield emulator


@pytest.fixture
def demo(aws: AwsEmulator) -> DemoAccount:
    return furnish(aws)
