from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.factories import make_project, make_user
from tests.signed_in import signed_in
from webapp.celery import app as celery_app


@pytest.fixture(autouse=True)
def _keys_of_this_test(settings: Any, tmp_path: Path) -> None:
    settings.STARLING_DATA = tmp_path
    settings.STARLING_MASTER_KEYS = []
    settings.STARLING_AWS_PRINCIPAL = "arn:aws:iam::999988887777:role/starling"


@pytest.fixture
def messages_sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the worker would be told."""
    sent: list[Any] = []
    monkeypatch.setattr(celery_app, "send_task", lambda name, args: sent.append((name, args)))
    return sent


@pytest.fixture
def owner() -> Any:
    return make_user()


@pytest.fixture
def project(owner: Any) -> Any:
    return make_project(owner)


@pytest.fixture
def as_owner(owner: Any, project: Any) -> Client:
    return signed_in(owner)
