"""What is said of AWS's refusals and of functions that failed, word by word."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from cloud.platforms.aws import invoke as aws_invoke
from cloud.platforms.aws.error_text import refusal
from cloud.platforms.aws.invoke import report_in
from tests.cloud.aws.test_aws_error_text import REPORT, STUCK


def answered(code: str, operation: str, message: str = "") -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, operation)


@pytest.mark.parametrize(
    ("error", "words", "fix"),
    [
        (
            answered("AccessDenied", "ListBucket", "not authorized to perform: s3:ListBucket"),
            "AWS refuses s3:ListBucket to these credentials.",
            "Add s3:ListBucket to the policy, or copy the whole policy again.",
        ),
        (
            answered("AccessDenied", "CreateFunction", "with an explicit deny"),
            "AWS refuses lambda:CreateFunction to these credentials. A policy denies it explicitly.",
            "Find the statement with Effect Deny, and remove the action from it.",
        ),
        (
            answered("InvalidClientTokenId", "GetCallerIdentity"),
            "AWS does not know this access key.",
            "Copy the access key ID again. If the key was deleted or switched off, make a new one.",
        ),
        (
            answered("SignatureDoesNotMatch", "GetCallerIdentity"),
            "The secret does not belong to this access key, or this server's clock is wrong.",
            "Copy the secret access key again; it is shown once, when the key is made.",
        ),
        (
            NoCredentialsError(),
            "This installation has no AWS identity of its own, so it cannot assume a role.",
            "Ask its operator for one (an instance role, or keys of its own). Or use access keys here.",
        ),
    ],
)
def test_what_aws_refuses(error: Exception, words: str, fix: str) -> None:
    refused = refusal(error)
    assert (refused.words, refused.fix) == (words, fix)


@pytest.mark.parametrize(
    ("kind", "message", "log", "code", "words"),
    [
        ("Sandbox.Timedout", "Task timed out", REPORT, "deadline", "161 of 1769 MB"),
        ("Runtime.ExitError", "exit status 1", STUCK, "deadline", "box2d/lunar_lander.py:31 (step)"),
        ("Runtime.ExitError", "signal: killed", REPORT, "function_failed", "lack of memory"),
        ("Runtime.ExitError", "exit status 7", "", "function_failed", "exit status 7"),
        ("Runtime.ImportModuleError", "No module named numpy", "", "bundle", "set it up again"),
        ("Function.ResponseSizeTooLarge", "6291556", "", "result_too_large", "larger"),
        ("KeyError", "'x'", "", "error", "KeyError: 'x'"),
    ],
)
def test_a_functions_failure(kind: str, message: str, log: str, code: str, words: str) -> None:
    body = json.dumps({"errorType": kind, "errorMessage": message}).encode()
    failure = aws_invoke.function_error(body, log, report_in(log))
    assert failure.code == code
    assert words in failure.reason
    assert aws_invoke.function_error(b"\xff", "", None).code == "error"
