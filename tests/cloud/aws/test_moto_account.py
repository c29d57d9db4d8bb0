"""Set-up, use and removal in moto's account, with our policy: another maker's idea of AWS agrees with our calls.

moto's checks of rights are not all of AWS's. This file makes up for it where it can:
- it asks for every right, but of S3, on any resource, so policies here allow theirs on any resource;
- it names a right by the operation that was called (`s3:HeadBucket`), so policies here have those names as well;
- it computes signatures of requests without a body differently, so signatures are not compared.

What it does not check is in `NOT_CHECKED`; the emulated account checks those rights.
"""

from __future__ import annotations

import io
import json
import re
import time
import zipfile
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import boto3
import pytest
from moto import mock_aws
from moto.core.authorization import disable_iam_authentication, enable_iam_authentication
from moto.iam.access_control import IAMRequestBase

from cloud.accounts.connections import AwsConnection, AwsKeys
from cloud.accounts.provision import policies
from cloud.accounts.provision.aws import set_up
from cloud.accounts.provision.aws_bucket import LIFE_DAYS, bucket_name
from cloud.accounts.provision.aws_inventory import Owner
from cloud.accounts.provision.aws_removal import remove, remove_sizes
from cloud.accounts.provision.permissions import AWS, OPERATIONS_NAMED_OTHERWISE, Permission
from cloud.accounts.provision.policies import AwsScope
from cloud.actor.bundle import Bundle
from cloud.platforms.aws import error_text, log
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws.invoke import invoke
from cloud.platforms.aws.request_body import Pieces
from cloud.platforms.aws.weights import AwsWeights
from tests.cloud import calls

REGION, ACCOUNT = "eu-central-1", "123456789012"
OWNER = Owner("https://starling.example.org", "con_aaaaaaaaaa", "lab")
PREFIX = "starling-aaaaaaaaaa"
SIZES = (512, 1024)
NAMES = [function_name(PREFIX, size) for size in SIZES]
BUCKET = bucket_name(PREFIX, OWNER.connection)
ACTION = re.compile(r"\b[a-z0-9]+:[A-Z]\w+")
NOT_CHECKED = {
    "iam:PassRole": "without a call",
    "s3:GetObject": "by presigned address",
    "iam:SimulatePrincipalPolicy": "unknown to moto",
    "lambda:GetAccountSettings": "unknown to moto",
    "lambda:PutProvisionedConcurrencyConfig": "unknown to moto",
    "lambda:GetProvisionedConcurrencyConfig": "unknown to moto",
    "lambda:ListProvisionedConcurrencyConfigs": "unknown to moto",
    "lambda:DeleteProvisionedConcurrencyConfig": "unknown to moto",
}
TRIED_OFTEN = {"lambda:GetFunction", "lambda:TagResource", "s3:ListBucket", "logs:PutRetentionPolicy"}


@pytest.fixture(autouse=True)
def moto(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An account with the stack of a connection by keys; every request needs its right."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setattr(IAMRequestBase, "check_signature", lambda request: None)
    with mock_aws(config={"lambda": {"use_docker": False}}), enable_iam_authentication():
        yield


def _connected(permissions: list[Permission], region: str = REGION) -> AwsConnection:
    """Our stack in the account, with the policy of these permissions as moto reads it."""
    scope = AwsScope(region, ACCOUNT, PREFIX)
    with disable_iam_authentication():
        template = policies.as_text(policies.cloudformation(scope))
        boto3.client("cloudformation", region_name=region).create_stack(
            StackName="starling", TemplateBody=template, Capabilities=["CAPABILITY_NAMED_IAM"]
        )
        iam = boto3.client("iam", region_name=region)
        document = json.dumps(_as_moto_reads(policies.aws_policy(scope, permissions)))
        iam.put_user_policy(UserName=scope.own_role_name, PolicyName="as-moto-reads", PolicyDocument=document)
        (of_stack,) = iam.list_attached_user_policies(UserName=scope.own_role_name)["AttachedPolicies"]
        iam.detach_user_policy(UserName=scope.own_role_name, PolicyArn=of_stack["PolicyArn"])
        key = iam.create_access_key(UserName=scope.own_role_name)["AccessKey"]
    return AwsConnection(AwsKeys(key["AccessKeyId"], key["SecretAccessKey"]), region, PREFIX)


def _as_moto_reads(policy: Any) -> Any:
    statements = []
    for one in policy["Statement"]:
        named = [name for action in one["Action"] for name in _as_moto_names(action)]
        of_s3 = named[0].startswith("s3:")
        statements.append({"Effect": "Allow", "Action": named, "Resource": one["Resource"] if of_s3 else "*"})
    return {"Version": policy["Version"], "Statement": statements}


def _as_moto_names(action: str) -> list[str]:
    """The action by its own name and by those of the operations that need it."""
    service, _, right = action.replace("tag:", "tagging:").partition(":")
    others = [operation for operation, needed in OPERATIONS_NAMED_OTHERWISE.items() if needed == right]
    return [f"{service}:{name}" for name in (right, *others)]


@cache
def _package(code: str, python: str = "3.12") -> Bundle:
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("lambda_function.py", code)
        return Bundle(file.getvalue(), len(code), python)


def _life(connection: AwsConnection) -> Iterator[str]:
    """All that people read while they set the account up, change it, use it, and clear it."""
    before, after = partial(_package, "before"), partial(_package, "after", "3.13")
    for packed, bucket, sizes in ((before, False, SIZES[:1]), (after, True, SIZES)):
        for step in set_up(connection.open(), OWNER, sizes, packed, bucket=bucket, patience_s=0):
            yield from (step.words, step.fix)
    yield from _job(connection)
    for step in remove_sizes(connection.open(), OWNER, SIZES[1:], patience_s=0):
        yield from (step.words, step.fix)
    for step in remove(connection.open(), OWNER, SIZES[:1], bucket=True, patience_s=0):
        yield from (step.words, step.fix)


def _job(connection: AwsConnection) -> Iterator[str]:
    """A call, a network of 2 MiB for it, a version, and the call's line in the log."""
    clients = connection.open()
    functions = clients.client("lambda")
    reply = invoke(functions, NAMES[0], Pieces([b"{}"]))
    yield reply.failure.reason if reply.failure is not None else ""
    weights = AwsWeights(clients.client("s3"), BUCKET, f"{PREFIX}/weights/run")
    weights.publish(0, bytes(2 * 2**20))
    yield weights.failure
    weights.close()
    yield weights.failure
    for call in (
        lambda: functions.publish_version(FunctionName=NAMES[0]),
        lambda: log.reports_of(clients.client("logs"), NAMES[0], ["c1"], time.time() - 60.0),
    ):
        try:
            call()
        except Exception as error:
            yield from error_text.refusal(error)[1:]


@pytest.mark.parametrize("region", [REGION, "us-east-1", "cn-north-1"])
def test_an_account_is_set_up_used_and_cleared_with_our_policy(region: str) -> None:
    connection = _connected(list(AWS), region)
    steps = list(
        set_up(connection.open(), OWNER, SIZES, lambda: _package("before"), bucket=True, patience_s=0)
    )
    assert {step.state for step in steps[3:]} == {"made"}, steps
    again = set_up(connection.open(), OWNER, SIZES, lambda: _package("before"), bucket=True, patience_s=0)
    assert {step.state for step in again} == {"done"}
    _check_what_was_made(region)
    assert [said for said in _job(connection) if said] == []
    gone = list(remove(connection.open(), OWNER, (), bucket=True, patience_s=0))
    assert {step.state for step in gone[1:]} == {"gone"}, gone
    with disable_iam_authentication():
        assert boto3.client("lambda", region_name=region).list_functions()["Functions"] == []
        assert boto3.client("logs", region_name=region).describe_log_groups()["logGroups"] == []
        assert boto3.client("s3", region_name=region).list_buckets()["Buckets"] == []


def _check_what_was_made(region: str) -> None:
    """As the account's owner sees it."""
    with disable_iam_authentication():
        functions, logs, s3 = (boto3.client(one, region_name=region) for one in ("lambda", "logs", "s3"))
        listed = {one["FunctionName"]: one for one in functions.list_functions()["Functions"]}
        assert {name: one["MemorySize"] for name, one in listed.items()} == dict(
            zip(NAMES, SIZES, strict=True)
        )
        for one in listed.values():
            assert one["Role"].endswith(f":iam::{ACCOUNT}:role/{PREFIX}-actor")
            assert functions.list_tags(Resource=one["FunctionArn"])["Tags"] == OWNER.tags
        groups = {
            one["logGroupName"]: one["retentionInDays"] for one in logs.describe_log_groups()["logGroups"]
        }
        assert groups == {f"/aws/lambda/{name}": 7 for name in NAMES}
        tags = {one["Key"]: one["Value"] for one in s3.get_bucket_tagging(Bucket=BUCKET)["TagSet"]}
        assert tags == OWNER.tags
        (rule,) = s3.get_bucket_lifecycle_configuration(Bucket=BUCKET)["Rules"]
        assert rule["Expiration"]["Days"] == LIFE_DAYS
        # AWS names the place of a bucket in its first region by nothing.
        place = s3.get_bucket_location(Bucket=BUCKET)["LocationConstraint"]
        assert (place or "us-east-1") == region


@pytest.mark.parametrize(
    "left_out",
    [
        one.action if one.action in TRIED_OFTEN else pytest.param(one.action, marks=pytest.mark.slow)
        for one in AWS
        if one.action not in NOT_CHECKED
    ],
)
def test_without_a_right_its_request_is_refused_and_the_right_is_named(left_out: str) -> None:
    said = list(_life(_connected([one for one in AWS if one.action != left_out])))
    (named,) = {action for sentence in said for action in ACTION.findall(sentence)}
    assert named in _as_moto_names(left_out)
    assert any(f"AWS refuses {named} " in sentence for sentence in said)


def test_the_policy_opens_no_other_bucket() -> None:
    connection = _connected(list(AWS))
    with disable_iam_authentication():
        place = {"LocationConstraint": REGION}
        boto3.client("s3", region_name=REGION).create_bucket(Bucket="others", CreateBucketConfiguration=place)
    weights = AwsWeights(connection.open().client("s3"), "others", f"{PREFIX}/weights/run")
    weights.publish(0, bytes(2 * 2**20))
    assert "AWS refuses s3:PutObject" in weights.failure


def test_a_network_is_fetched_as_it_was_stored() -> None:
    connection = _connected(list(AWS))
    list(set_up(connection.open(), OWNER, (), lambda: _package("before"), bucket=True, patience_s=0))
    s3 = connection.open().client("s3")
    weights = AwsWeights(s3, BUCKET, f"{PREFIX}/weights/run")
    network = bytes(range(256)) * 2**13
    call = calls.rollout("c1", weights.publish(0, network))
    inline, address = weights.of(call)
    assert inline is None
    assert address is not None
    assert address.startswith(f"https://{BUCKET}.s3.{REGION}.amazonaws.com/{PREFIX}/weights/run/")
    (found,) = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert s3.get_object(Bucket=BUCKET, Key=found["Key"])["Body"].read() == network
