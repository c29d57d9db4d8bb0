"""What holds for the tests of connections to any cloud: our own texts, a time limit, no secret repeated."""

import json
import threading
import time

import pytest
from botocore import exceptions as botocore_errors
from botocore.exceptions import ClientError

from cloud.accounts import checks
from cloud.accounts.checks import AccountCheck, AccountReport, Findings
from cloud.platforms.aws import error_text as aws_words
from cloud.platforms.azure import error_text as azure_words

REGION = "eu-central-1"


@pytest.mark.parametrize(
    "error",
    [
        botocore_errors.NoCredentialsError(),
        botocore_errors.ConnectTimeoutError(endpoint_url="https://canary"),
        botocore_errors.ReadTimeoutError(endpoint_url="https://canary"),
        botocore_errors.SSLError(endpoint_url="https://canary", error="canary"),
        botocore_errors.ProxyConnectionError(proxy_url="https://canary"),
        botocore_errors.EndpointConnectionError(endpoint_url="https://canary"),
        ClientError({"Error": {"Code": "SomethingNew", "Message": "canary"}}, "Any"),
        RuntimeError("canary"),
    ],
)
def test_no_sdk_text_comes_through(error: Exception) -> None:
    for refusal in (aws_words.refusal(error), azure_words.refusal(error)):
        assert refusal.words.endswith(".")
        assert refusal.fix
        assert "canary" not in f"{refusal.words}{refusal.fix}"


def test_a_cloud_that_hangs_is_cut_off_with_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    answered, go_on = threading.Event(), threading.Event()

    class LateLimit(threading.Thread):
        """Its limit begins with the first answer, however late this machine starts the thread."""

        def join(self, timeout: float | None = None) -> None:
            assert answered.wait(60)
            super().join(timeout)

    def ask(findings: Findings) -> None:
        findings.found(AccountCheck("first", True, "There."))
        answered.set()
        go_on.wait(120)

    monkeypatch.setattr(threading, "Thread", LateLimit)
    began = time.monotonic()
    report = checks.within(1.0, REGION, ask)
    go_on.set()
    assert time.monotonic() - began < 30
    assert [check.name for check in report.checks] == ["first", checks.CUT_OFF]
    assert not report.ok


def test_an_unexpected_error_is_reported_without_its_text() -> None:
    def ask(findings: Findings) -> None:
        raise RuntimeError("canary")

    report = checks.within(5, REGION, ask)
    assert "RuntimeError" in report.checks[-1].words
    assert "canary" not in json.dumps(report.as_dict())


def test_secrets_are_blotted_out_of_reports() -> None:
    report = AccountReport("me", "1", REGION, (), (AccountCheck("a", False, "said s3cret back", "s3cret"),))
    assert "s3cret" not in json.dumps(checks.scrubbed(report.as_dict(), ["s3cret", ""]))


def test_an_empty_report_is_not_good() -> None:
    assert not AccountReport("", "", REGION, (), ()).ok
