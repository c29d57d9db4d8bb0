"""One emulated account in several regions: what each keeps for itself, and what belongs to the account."""

from __future__ import annotations

import io
import json
import urllib.request
import zipfile
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from cloud.accounts.connections import AwsConnection, AwsKeys
from emulator.aws.account import EVERYTHING, EmulatedAccount, Key, Policy
from emulator.aws.server import AwsEmulator

HOME, ELSEWHERE = "us-east-1", "eu-west-1"
NAME = "starling-actor-128mb"
BUCKET = "starling-weights-1"


@pytest.fixture
def aws() -> Iterator[AwsEmulator]:
    account = EmulatedAccount(concurrency_by_region={ELSEWHERE: 10})
    with AwsEmulator(account=account, region=HOME, other_regions=(ELSEWHERE,)) as emulator:
        yield emulator


@pytest.fixture
def key(aws: AwsEmulator) -> Key:
    return aws.account.add_user("ada", EVERYTHING)


def _client(aws: AwsEmulator, key: Key, service: str, region: str) -> Any:
    access = AwsKeys(key.access_key_id, key.secret)
    return AwsConnection(access, region, endpoint_url=aws.endpoint).open().client(service, tries=1)


def _create_function(aws: AwsEmulator, key: Key, region: str, answer: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        code = f"import os\ndef handler(event, context):\n    return [{answer!r}, os.environ['AWS_REGION']]\n"
        archive.writestr("main.py", code)
    role = aws.account.add_role("runs", Policy(()), service="lambda.amazonaws.com")
    _client(aws, key, "lambda", region).create_function(
        FunctionName=NAME,
        Role=role.arn,
        Runtime="python3.12",
        Handler="main.handler",
        Code={"ZipFile": packed.getvalue()},
        Tags={"app": "starling", "where": answer},
    )


def _code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_functions_logs_and_bills_of_one_name_are_apart(aws: AwsEmulator, key: Key) -> None:
    for region in (HOME, ELSEWHERE):
        _create_function(aws, key, region, f"of {region}")
        lambdas = _client(aws, key, "lambda", region)
        answer = lambdas.invoke(FunctionName=NAME, Payload=b"{}")
        assert json.loads(answer["Payload"].read()) == [f"of {region}", region]
        arn = f"arn:aws:lambda:{region}:{aws.account.id}:function:{NAME}"
        assert lambdas.get_function_configuration(FunctionName=NAME)["FunctionArn"] == arn
        tagging = _client(aws, key, "resourcegroupstaggingapi", region)
        (found,) = tagging.get_resources(TagFilters=[{"Key": "app"}])["ResourceTagMappingList"]
        assert found["ResourceARN"] == arn
        events = _client(aws, key, "logs", region).filter_log_events(logGroupName=f"/aws/lambda/{NAME}")
        assert sum("REPORT" in event["message"] for event in events["events"]) == 1
        assert [one.function for one in aws.regions[region].meter.invocations] == [NAME]
    _client(aws, key, "logs", HOME).delete_log_group(logGroupName=f"/aws/lambda/{NAME}")
    _client(aws, key, "lambda", HOME).delete_function(FunctionName=NAME)
    assert (aws.functions.alive(), aws.logs.groups) == ([], {})
    elsewhere = aws.regions[ELSEWHERE]
    assert (
        len(elsewhere.functions.alive()) == len(elsewhere.logs.groups) == len(elsewhere.environments.pids())
    )


def test_each_region_has_a_limit_of_its_own(aws: AwsEmulator, key: Key) -> None:
    limits = {
        region: _client(aws, key, "lambda", region).get_account_settings()["AccountLimit"]
        for region in (HOME, ELSEWHERE)
    }
    assert {region: one["ConcurrentExecutions"] for region, one in limits.items()} == {
        HOME: 1000,
        ELSEWHERE: 10,
    }


def test_identities_and_sessions_are_the_same_in_every_region(aws: AwsEmulator, key: Key) -> None:
    role = aws.account.add_role("shared", EVERYTHING, trusted=key.principal.arn)
    session = _client(aws, key, "sts", HOME).assume_role(RoleArn=role.arn, RoleSessionName="here")[
        "Credentials"
    ]
    access = AwsKeys(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"])
    elsewhere = AwsConnection(access, ELSEWHERE, endpoint_url=aws.endpoint).open()
    assert elsewhere.client("sts").get_caller_identity()["Arn"].endswith(":assumed-role/shared/here")
    assert elsewhere.client("lambda").get_account_settings()


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        ("lambda", "get_account_settings", "InvalidSignatureException"),
        ("s3", "list_buckets", "AuthorizationHeaderMalformed"),
        ("resourcegroupstaggingapi", "get_resources", "InvalidSignatureException"),
    ],
)
def test_a_region_that_the_account_does_not_have_is_refused(
    aws: AwsEmulator, key: Key, service: str, call: str, code: str
) -> None:
    with pytest.raises(ClientError) as error:
        getattr(_client(aws, key, service, "eu-west-3"), call)()
    assert _code(error) == code


def test_a_bucket_lies_in_the_region_that_created_it(aws: AwsEmulator, key: Key) -> None:
    here, there = (_client(aws, key, "s3", region) for region in (HOME, ELSEWHERE))
    with pytest.raises(ClientError) as error:
        there.create_bucket(Bucket=BUCKET)
    assert _code(error) == "IllegalLocationConstraintException"
    with pytest.raises(ClientError) as error:
        here.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": HOME})
    assert _code(error) == "InvalidLocationConstraint"
    place = {"LocationConstraint": ELSEWHERE}
    there.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)
    there.put_object(Bucket=BUCKET, Key="a", Body=b"weights")
    for again in (here, there):
        with pytest.raises(ClientError) as error:
            again.create_bucket(Bucket=BUCKET, CreateBucketConfiguration=place)
        assert _code(error) == "BucketAlreadyOwnedByYou"
    # At an address that is in no region, the SDK follows the redirect to the bucket's, which the answer names.
    access = {"aws_access_key_id": key.access_key_id, "aws_secret_access_key": key.secret}
    foreign = boto3.client("s3", HOME, endpoint_url=aws.endpoint, **access)
    assert foreign.head_bucket(Bucket=BUCKET)["BucketRegion"] == ELSEWHERE
    assert foreign.get_object(Bucket=BUCKET, Key="a")["Body"].read() == b"weights"


def test_another_program_reads_the_meter_of_a_region(aws: AwsEmulator, key: Key) -> None:
    _create_function(aws, key, ELSEWHERE, "x")
    _client(aws, key, "lambda", ELSEWHERE).invoke(FunctionName=NAME, Payload=b"{}")
    counts = {}
    for region in (HOME, ELSEWHERE):
        request = urllib.request.Request(
            f"{aws.endpoint}/_emulator/meter", json.dumps({"region": region}).encode()
        )
        with urllib.request.urlopen(request) as answer:
            counts[region] = len(json.load(answer))
    assert counts == {HOME: 0, ELSEWHERE: 1}
