from collections.abc import Iterator

import pytest

from cloud.emulator.aws.demo import DemoAccount, furnish
from cloud.emulator.aws.server import AwsEmulator


@pytest.fixture
def aws() -> Iterator[AwsEmulator]:
    with AwsEmulator() as emulator:
        yield emulator


@pytest.fixture
def demo(aws: AwsEmulator) -> DemoAccount:
    return furnish(aws)
