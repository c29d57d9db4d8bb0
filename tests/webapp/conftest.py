from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator
from webapp.background import TASK
from webapp.celery import app as celery_app


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


@pytest.fixture
def hints(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """What the worker is asked to do, by task or kind of background work, instead of messages to a broker: the
    first argument of each."""
    sent: dict[str, list[Any]] = defaultdict(list)

    def send(task: str, args: list[Any], **_: Any) -> None:
        kind, *rest = args if task == TASK else (task, *args)
        sent[kind].append(rest[0] if rest else None)

    monkeypatch.setattr(celery_app, "send_task", send)
    return sent


@pytest.fixture
def launched(hints: dict[str, list[Any]]) -> list[str]:
    """The jobs whose launch the worker was asked for."""
    return hints["webapp.jobs.tasks.launch_job"]
