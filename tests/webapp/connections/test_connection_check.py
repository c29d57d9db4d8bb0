"""How connections are tested, and how that is told."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from tests.factories import FixedClock, make_connection
from tests.webapp.connections.connected import url
from webapp.celery import app as celery_app
from webapp.connections import connection_check, queries, services, text
from webapp.connections.models import CheckState, Connection

pytestmark = pytest.mark.django_db


@pytest.fixture
def reports(monkeypatch: pytest.MonkeyPatch) -> list[Connection]:
    """Tests that find a fixed thing; the connections they were made for."""
    tested: list[Connection] = []

    def report_on(connection: Connection) -> dict[str, Any]:
        tested.append(connection)
        check = {"name": "a", "ok": True, "words": "w", "fix": "", "optional": False}
        return {
            "identity": "me",
            "account": "123456789012",
            "region": "r",
            "quotas": [],
            "checks": [check],
            "ok": True,
        }

    monkeypatch.setattr(connection_check, "report_on", report_on)
    return tested


def test_a_test_is_reported_in_the_row(
    project: Any, messages_sent: list[Any], reports: list[Connection]
) -> None:
    connection = connection_check.request_test(connection=make_connection(project))
    connection_check.run_test(connection.pk, connection.test_no)
    connection.refresh_from_db()
    assert connection.test_state == CheckState.DONE
    assert connection.account_id == "123456789012"
    connection_check.run_test(connection.pk, connection.test_no)  # the message came twice
    assert len(reports) == 1


def test_a_test_that_was_overtaken_says_nothing(
    project: Any, messages_sent: list[Any], reports: list[Connection]
) -> None:
    connection = connection_check.request_test(connection=make_connection(project))
    old = connection.test_no
    connection_check.request_test(connection=connection)
    connection_check.run_test(connection.pk, old)
    assert not reports
    services.remove_connection(connection=connection)
    connection_check.run_test(connection.pk, old + 1)
    assert not reports


def test_a_page_waits_for_no_one(as_owner: Client, project: Any, messages_sent: list[Any]) -> None:
    connection = make_connection(project)
    as_owner.post(url(project, connection.pk, "test"))
    report = as_owner.get(url(project, connection.pk).removesuffix("/") + "/report").content.decode()
    assert "data-waiting" in report
    assert "Testing" in report


def test_a_test_that_no_one_took_up_is_reported(project: Any, messages_sent: list[Any]) -> None:
    clock = FixedClock()
    connection = connection_check.request_test(connection=make_connection(project), clock=clock)
    assert text.connection_status(connection, clock.now()).waiting
    late = clock.now() + queries.GIVEN_UP_AFTER + timedelta(seconds=1)
    assert "manage.py up" in text.connection_status(connection, late).sentence


def test_there_is_nothing_to_test_before_it_is_set_up(as_owner: Client, project: Any) -> None:
    connection = make_connection(project, secret="")
    page = as_owner.post(url(project, connection.pk, "test"), follow=True).content.decode()
    assert "nothing to test" in page
    connection.refresh_from_db()
    assert connection.test_state == CheckState.NEVER


def test_a_broker_that_is_away_fails_no_request(
    as_owner: Client, project: Any, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise ConnectionError("no broker")

    monkeypatch.setattr(celery_app, "send_task", away)
    with django_capture_on_commit_callbacks(execute=True):
        assert as_owner.post(url(project, make_connection(project).pk, "test")).status_code == 302


def _checked(**fields: Any) -> dict[str, Any]:
    return {"name": "lambda:X", "ok": True, "words": "Why.", "fix": "", "optional": False, **fields}


@pytest.mark.parametrize(
    ("checks", "word", "first"),
    [
        ([_checked()], "Ready", "Yes"),
        ([_checked(), _checked(ok=None)], "Ready", "Yes"),
        ([_checked(), _checked(ok=False, optional=True)], "Ready", "Could be better"),
        ([_checked(), _checked(ok=False, optional=True), _checked(ok=False)], "Not ready", "Missing"),
    ],
)
def test_how_a_report_reads(checks: list[Any], word: str, first: str, project: Any) -> None:
    connection = make_connection(project)
    connection.test_state, connection.test_report = CheckState.DONE, {"checks": checks}
    assert text.connection_status(connection, FixedClock().now()).word == word
    rows = text.rows({"checks": checks})
    assert [*rows.wanting, *rows.fine][0].word == first
