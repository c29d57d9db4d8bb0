"""A role is taken on under this installation's own identity, and not every installation has one."""

from __future__ import annotations

import os

import pytest

from cloud.accounts.connections import AwsConnection, AwsRole
from cloud.platforms.aws import error_text as aws_words
from cloud.platforms.aws import invoke as aws_invoke
from cloud.platforms.aws.concurrency_limit import AccountLimits
from cloud.platforms.aws.request_body import Pieces

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def without_identity(monkeypatch: pytest.MonkeyPatch) -> AwsConnection:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return AwsConnection(AwsRole("arn:aws:iam::123456789012:role/actors", "e-1"), endpoint_url=NOWHERE)


def test_without_one_a_call_is_refused_with_what_to_do(without_identity: AwsConnection) -> None:
    clients = without_identity.open()
    reply = aws_invoke.invoke(clients.client("lambda", tries=1), "starling-actor-1769mb", Pieces([b"{}"]))
    assert reply.ran is False
    assert not reply.again
    assert reply.failure is not None
    assert reply.failure.code == "credentials"
    assert "no AWS identity" in reply.failure.reason
    assert "use access keys" in reply.failure.reason


def test_without_one_nothing_else_stumbles(without_identity: AwsConnection) -> None:
    from botocore.exceptions import NoCredentialsError

    clients = without_identity.open()
    assert "use access keys" in AccountLimits.of(clients.client("lambda", tries=1)).why_assumed
    with pytest.raises(NoCredentialsError) as refused:
        clients.client("sts").get_caller_identity()
    assert "assume a role" in aws_words.refusal(refused.value).words
