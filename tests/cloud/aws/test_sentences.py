"""What is said of AWS's refusals and of functions that failed, word by word."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest
from botocore.exceptions import ClientError, NoCredentialsError

from cloud.accounts.provision.aws import FUNCTION_ROLE, set_up
from cloud.accounts.provision.aws_bucket import bucket_name
from cloud.accounts.provision.aws_inventory import Owner
from cloud.accounts.provision.aws_removal import remove
from cloud.accounts.provision.permissions import prefix_of
from cloud.platforms.aws import invoke as aws_invoke
from cloud.platforms.aws.checks import NO_MORE_RIGHTS, NOT_ROOT, ROLE_DEMANDS_ID
from cloud.platforms.aws.error_text import refusal
from cloud.platforms.aws.functions import deploy, function_name
from cloud.platforms.aws.functions import remove as delete_function
from cloud.platforms.aws.invoke import report_in
from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from tests.cloud import calls
from tests.cloud.aws import lambdas
from tests.cloud.aws.test_aws_error_text import REPORT, STUCK
from tests.cloud.test_platform_contract import gather

OWNER = Owner("https://starling.example.org", "con_aaaaaaaaaa", "lab")


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


def test_why_calls_wait_for_the_account_is_reported() -> None:
    with lambdas.opened(at_once=2) as (platform, aws):
        assert platform.throttling_reasons() == ""
        aws.faults.shares["throttle"] = 1.0
        ref = platform.publish(0, calls.weights())
        for number in range(5):
            platform.submit(calls.rollout(f"c{number}", ref, slot=number))
        end_s = time.monotonic() + 60.0
        while "5 calls wait" not in platform.throttling_reasons():
            assert time.monotonic() < end_s, platform.throttling_reasons()
            assert platform.next(0.02) is None
        assert platform.throttling_reasons() == (
            "AWS is throttling calls: CallerRateLimitExceeded. 5 calls wait; at most 1 are sent at once until AWS"
            " accepts more."
        )
        aws.faults.end()
        assert {one.status for one in gather(platform, 5).values()} == {"done"}
        assert platform.throttling_reasons() == ""


def test_functions_that_cannot_be_kept_ready_are_reported_with_the_reason_of_aws() -> None:
    with lambdas.opened(at_once=2, provisioned=1) as (platform, aws):
        platform.submit(calls.rollout("c0", platform.publish(0, calls.weights())))
        assert gather(platform, 1)["c0"].status == "done"
        end_s = time.monotonic() + 60
        while not (said := platform.throttling_reasons()):
            assert time.monotonic() < end_s
            time.sleep(0.02)
        assert said == (
            "No instances are kept ready: AWS says: Specified ConcurrentExecutions for function decreases account's"
            " UnreservedConcurrentExecution below its minimum value of [100]. Calls run on ordinary instances."
        )
        assert aws.meter.provisioned == []


def test_steps_of_a_bucket(aws: AwsEmulator, demo: DemoAccount) -> None:
    list(set_up(demo.by_role.open(), OWNER, (), lambdas.thin, bucket=True, patience_s=0))
    s3 = demo.by_role.open().client("s3")
    for key in ("starling/weights/a", "starling/weights/b"):
        s3.put_object(
            Bucket=bucket_name("starling", OWNER.connection), Key=key, Body=b"left by a run that died"
        )

    def removed() -> str:
        *_, last = remove(demo.by_role.open(), OWNER, (), bucket=True, patience_s=0)
        return last.words

    assert removed() == "Emptied of 2 objects and deleted."
    assert removed() == "It was gone already."


def test_a_set_up_that_was_half_done(aws: AwsEmulator, demo: DemoAccount) -> None:
    own = replace(demo.by_role, prefix=prefix_of(OWNER.connection))
    name = function_name(own.prefix, 1769)
    deploy(own.open().client("lambda"), name, lambdas.thin(), demo.actor_role, 1024, timeout_s=30)
    steps = {step.name: step.words for step in set_up(own.open(), OWNER, (1769,), lambdas.thin, patience_s=0)}
    assert "memory and time limit were set: 1,769 MB" in steps[f"Function {name}"]
    list(remove(own.open(), OWNER, (1769,), patience_s=0))
    assert list(remove(own.open(), OWNER, (), patience_s=0))[-1].words == (
        "Nothing of this connection is in the account."
    )


def test_functions_that_other_connections_may_use(aws: AwsEmulator, demo: DemoAccount) -> None:
    clients = demo.by_role.open()
    name = function_name("starling", 1769)
    deploy(clients.client("lambda"), name, lambdas.thin(), demo.actor_role, 1769, timeout_s=30)
    steps = {step.name: step.words for step in set_up(clients, OWNER, (1769,), lambdas.thin, patience_s=0)}
    assert "do not say which connection it belongs to: it is used here" in steps[f"Tags of {name}"]
    kept = list(remove(clients, OWNER, (1769,), patience_s=0))[1].words
    assert kept == (
        "Its tags do not say which connection it belongs to, so it is kept. If no one needs it, delete it in AWS."
    )
    delete_function(clients.client("lambda"), name)
    assert list(remove(clients, OWNER, (1769,), patience_s=0))[1].words == (
        "It was gone already. If there is a log, AWS deletes its lines after 7 days."
    )


def test_names_of_checks() -> None:
    assert (NOT_ROOT, ROLE_DEMANDS_ID, NO_MORE_RIGHTS, FUNCTION_ROLE) == (
        "Not the account's root user",
        "The role demands the external id",
        "No more rights than needed",
        "Role of the functions",
    )
