from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator


@pytest.fixture(scope="module")
def account() -> Iterator[tuple[AwsEmulator, DemoAccount]]:
    """An emulated AWS account for all tests of a module, with identities and without functions."""
    with AwsEmulator() as aws:
        yield aws, furnish(aws)


@pytest.fixture
def aws(account: tuple[AwsEmulator, DemoAccount], settings: Any, tmp_path: Path) -> AwsEmulator:
    """The account without what earlier tests left in it, reached by a new installation."""
    settings.STARLING_DATA = tmp_path
    settings.STARLING_MASTER_KEYS = []
    settings.STARLING_AWS_ENDPOINT = account[0].endpoint
    for function in account[0].functions.alive():
        account[0].functions._by_name.pop(function.name)
    account[0].logs.groups.clear()
    account[0].meter.invocations.clear()
    return account[0]
