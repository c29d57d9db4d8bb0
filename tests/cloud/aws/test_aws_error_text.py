"""What AWS says, in words for the person whose job it is."""

from __future__ import annotations

import pytest
from botocore import exceptions as sdk

from cloud.platforms.aws import invoke as aws_invoke
from cloud.platforms.aws.invoke import report_in

REPORT = (
    "REPORT RequestId: 8f5a-1\tDuration: 1012.31 ms\tBilled Duration: 1641 ms\tMemory Size: 1769 MB\t"
    "Max Memory Used: 161 MB\tInit Duration: 628.44 ms\t\n"
)
STUCK = (
    "Timeout (0:00:12)!\nThread 0x00007f (most recent call first):\n"
    '  File "/var/task/gymnasium/envs/box2d/lunar_lander.py", line 31 in step\n'
    '  File "/var/task/training/functions/rollout.py", line 118 in _sample\n'
)


def test_the_providers_line_is_read_whole() -> None:
    report = report_in("START RequestId: 8f5a-1\nprinted\nEND RequestId: 8f5a-1\n" + REPORT)
    assert report is not None
    assert (report.request_id, report.billed_s, report.memory_mb, report.most_memory_mb) == (
        "8f5a-1",
        1.641,
        1769,
        161,
    )
    assert report.duration_s == pytest.approx(1.01231)
    assert report.init_s == pytest.approx(0.62844)
    warm = report_in(REPORT.partition("\tInit")[0])
    assert warm is not None
    assert warm.init_s == 0.0
    assert report_in("no such line") is None
    assert report_in("REPORT RequestId: someone printed this") is None


def _error(code: str, status: int, **more: str) -> sdk.ClientError:
    response = {
        "Error": {"Code": code, "Message": "m"},
        "ResponseMetadata": {"HTTPStatusCode": status},
        **more,
    }
    return sdk.ClientError(response, "Invoke")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("error", "code", "ran", "again"),
    [
        (
            _error("TooManyRequestsException", 429, Reason="ConcurrentInvocationLimitExceeded"),
            "function_failed",
            False,
            True,
        ),
        (_error("ResourceConflictException", 409), "function_failed", False, True),
        (_error("EC2ThrottledException", 502), "function_failed", False, True),
        (_error("ExpiredTokenException", 403), "credentials", False, False),
        (_error("AccessDeniedException", 403), "credentials", False, False),
        (_error("ResourceNotFoundException", 404), "function_missing", False, False),
        (_error("RequestTooLargeException", 413), "request_too_large", False, False),
        (_error("InvalidRequestContentException", 400), "cloud_refused", False, False),
        (_error("ServiceException", 500), "function_failed", None, False),
        (_error("GatewayTimeout", 504), "function_failed", None, False),
        (sdk.ReadTimeoutError(endpoint_url="x"), "function_failed", None, False),
        (sdk.ConnectionClosedError(endpoint_url="x"), "function_failed", None, False),
        (sdk.ConnectTimeoutError(endpoint_url="x"), "function_failed", False, True),
        (sdk.EndpointConnectionError(endpoint_url="x"), "function_failed", False, True),
        (sdk.NoCredentialsError(), "credentials", False, False),
    ],
)
def test_only_what_certainly_did_not_run_is_sent_again(
    error: Exception, code: str, ran: bool | None, again: bool
) -> None:
    reply = aws_invoke.failed(error, "starling-actor-1769mb")
    assert reply.failure is not None
    assert (reply.failure.code, reply.ran, reply.again) == (code, ran, again)
    assert reply.failure.reason
