"""Identities on the emulated account: signatures, roles, sessions and rights, used by the real SDK."""

from __future__ import annotations

import json
import stat
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from cloud.accounts import checks
from cloud.accounts.check_clients import aws_clients
from cloud.accounts.connections import AwsConnection, AwsKeys, AwsRole
from cloud.accounts.provision.permissions import AWS
from cloud.accounts.provision.policies import AwsScope, aws_policy
from cloud.platforms.aws.checks import AwsQuestion, check_aws
from emulator.aws.account import Policy
from emulator.aws.demo import DemoAccount, furnish
from emulator.aws.server import AwsEmulator
from emulator.stored_keys import UnreadableKeys
from tests.cloud.aws import presigned


def _code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def _role(connection: AwsConnection) -> AwsRole:
    assert isinstance(connection.access, AwsRole)
    return connection.access


def test_both_ways_in_say_who_they_are(demo: DemoAccount) -> None:
    by_role = demo.by_role.open().client("sts").get_caller_identity()
    by_keys = demo.by_keys.open().client("sts").get_caller_identity()
    assert by_role["Arn"].startswith("arn:aws:sts::111122223333:assumed-role/starling-dashboard/")
    assert by_keys["Arn"] == "arn:aws:iam::111122223333:user/starling-dashboard"
    assert by_role["Account"] == by_keys["Account"]


def test_a_role_is_not_taken_on_with_a_wrong_external_id(demo: DemoAccount) -> None:
    """One tenant who writes another's role into his form gets nowhere."""
    for wrong in ("", "guessed"):
        access = replace(_role(demo.by_role), external_id=wrong)
        with pytest.raises(Exception, match=r"AccessDenied|Invalid length"):
            replace(demo.by_role, access=access).open().client("lambda").get_account_settings()


def test_a_role_trusts_only_whom_it_names(aws: AwsEmulator, demo: DemoAccount) -> None:
    user = demo.by_keys.access
    assert isinstance(user, AwsKeys)
    access = replace(_role(demo.by_role), ours=user)
    with pytest.raises(ClientError) as error:
        replace(demo.by_role, access=access).open().client("lambda").get_account_settings()
    assert _code(error) == "AccessDenied"


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        ("lambda", "get_account_settings", "InvalidSignatureException"),
        ("sts", "get_caller_identity", "SignatureDoesNotMatch"),
    ],
)
def test_a_wrong_secret_is_a_wrong_signature(demo: DemoAccount, service: str, call: str, code: str) -> None:
    keys = demo.by_keys.access
    assert isinstance(keys, AwsKeys)
    forged = replace(demo.by_keys, access=replace(keys, secret_access_key="guessed"))
    with pytest.raises(ClientError) as error:
        getattr(forged.open().client(service), call)()
    assert _code(error) == code
    unknown = replace(demo.by_keys, access=replace(keys, access_key_id="AKIAUNKNOWN"))
    with pytest.raises(ClientError) as error:
        getattr(unknown.open().client(service), call)()
    assert _code(error) in {"UnrecognizedClientException", "InvalidClientTokenId"}


def test_sessions_end_and_are_renewed(aws: AwsEmulator, demo: DemoAccount) -> None:
    clients = demo.by_role.open()
    lambdas = clients.client("lambda")
    assert lambdas.get_account_settings()["AccountLimit"]["ConcurrentExecutions"] == 1000
    aws.account.expire_sessions()
    with pytest.raises(ClientError) as error:
        lambdas.get_account_settings()
    assert _code(error) == "ExpiredTokenException"
    assert demo.by_role.open().client("lambda").get_account_settings()


def test_only_what_the_policy_allows(demo: DemoAccount) -> None:
    client = demo.by_role.open().client("lambda")
    with pytest.raises(ClientError) as error:
        client.delete_function(FunctionName="somebody-elses")
    assert _code(error) == "AccessDeniedException"
    assert "lambda:DeleteFunction" in str(error.value)


def test_simulated_permissions(demo: DemoAccount) -> None:
    iam = demo.by_role.open().client("iam")
    arn = _role(demo.by_role).role_arn
    answer = iam.simulate_principal_policy(
        PolicySourceArn=arn,
        ActionNames=["lambda:InvokeFunction", "ec2:RunInstances"],
        ResourceArns=["arn:aws:lambda:us-east-1:111122223333:function:starling-check"],
    )
    decisions = {one["EvalActionName"]: one["EvalDecision"] for one in answer["EvaluationResults"]}
    assert decisions == {"lambda:InvokeFunction": "allowed", "ec2:RunInstances": "implicitDeny"}


def test_presigned_addresses_allow_one_reading_for_a_while(aws: AwsEmulator, demo: DemoAccount) -> None:
    s3 = demo.by_role.open().client("s3")
    bucket = demo.by_role.bucket
    s3.put_object(Bucket=bucket, Key="starling/w 1.bin", Body=b"weights" * 1000)
    assert s3.get_object(Bucket=bucket, Key="starling/w 1.bin")["Body"].read() == b"weights" * 1000
    given = {"Bucket": bucket, "Key": "starling/w 1.bin"}
    url = s3.generate_presigned_url("get_object", Params=given, ExpiresIn=60)
    assert presigned.get(aws, url)[2] == b"weights" * 1000
    for broken in (
        url.replace("w%201", "w%202"),
        url.replace("Expires=60", "Expires=6000"),
        url.split("?")[0],
    ):
        assert presigned.get(aws, broken)[0] == 403
    aws.account.now_unix_s = lambda: time.time() + 61
    assert presigned.get(aws, url)[0] == 403


def test_secrets_do_not_show(demo: DemoAccount) -> None:
    keys = demo.by_keys.access
    assert isinstance(keys, AwsKeys)
    assert keys.secret_access_key not in repr(demo.by_keys) + repr(demo.by_role)


def test_the_keys_user_has_the_policy_that_people_copy(demo: DemoAccount) -> None:
    """Each right has an answer of its own: none "shows only when it is used"."""
    question = AwsQuestion(demo.by_keys.region)
    report = checks.within(
        20.0, question.region, lambda findings: check_aws(aws_clients(demo.by_keys), question, findings)
    )
    assert {check.name for check in report.checks if check.ok is not True} == set()
    assert {permission.action for permission in AWS} <= {check.name for check in report.checks}


def test_a_policy_for_whichever_user_reaches_that_user_alone(aws: AwsEmulator) -> None:
    scope = AwsScope(aws.region, aws.account.id)
    policy = Policy.of(aws_policy(replace(scope, own_arn=scope.of_signed_in_user)))
    ada, bob = (aws.account.add_user(name, policy).principal for name in ("ada", "bob"))
    assert ada.policy.allows("iam:SimulatePrincipalPolicy", ada.arn)
    assert not ada.policy.allows("iam:SimulatePrincipalPolicy", bob.arn)


@pytest.mark.parametrize(
    ("service", "call", "code"),
    [
        ("lambda", "get_account_settings", "InvalidSignatureException"),
        ("s3", "list_buckets", "AuthorizationHeaderMalformed"),
        ("logs", "describe_log_groups", "InvalidSignatureException"),
        ("sts", "get_caller_identity", "SignatureDoesNotMatch"),
    ],
)
def test_a_request_signed_for_another_region_is_refused(
    demo: DemoAccount, service: str, call: str, code: str
) -> None:
    elsewhere = replace(demo.by_keys, region="eu-west-3")
    with pytest.raises(ClientError) as error:
        getattr(elsewhere.open().client(service, tries=1), call)()
    assert _code(error) == code
    assert "region" in str(error.value)


def test_an_address_that_was_signed_for_another_region_opens_nothing(
    aws: AwsEmulator, demo: DemoAccount
) -> None:
    demo.by_role.open().client("s3").put_object(Bucket=demo.by_role.bucket, Key="w.bin", Body=b"weights")
    elsewhere = replace(demo.by_role, region="eu-west-3", access=_keys_of(demo))
    given = {"Bucket": demo.by_role.bucket, "Key": "w.bin"}
    url = elsewhere.open().client("s3").generate_presigned_url("get_object", Params=given)
    assert presigned.get(aws, url)[0] == 400


def test_the_external_id_can_be_set_while_it_runs(aws: AwsEmulator, demo: DemoAccount) -> None:
    """A page shows its id once the emulator has long been running."""
    _desk(aws, "external-id", external_id="shown-by-the-page")
    access = replace(_role(demo.by_role), external_id="shown-by-the-page")
    assert replace(demo.by_role, access=access).open().client("lambda").get_account_settings()
    with pytest.raises(ClientError) as error:
        demo.by_role.open().client("lambda").get_account_settings()
    assert _code(error) == "AccessDenied"


def test_keys_are_those_of_the_last_start(tmp_path: Path) -> None:
    """A server that was started with them goes on when the emulator is started again."""
    kept = tmp_path / "aws.json"
    with AwsEmulator() as first:
        before = furnish(first, keys_file=kept)
        _desk(first, "external-id", external_id="shown-by-the-page")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with AwsEmulator() as second:
        again = furnish(second, keys_file=kept)
        assert again.by_keys.access == before.by_keys.access
        assert _role(again.by_role).ours == _role(before.by_role).ours
        assert _role(again.by_role).external_id == "shown-by-the-page"
        assert again.by_role.open().client("lambda").get_account_settings()


def test_kept_keys_that_cannot_be_read_are_explained(tmp_path: Path) -> None:
    kept = tmp_path / "aws.json"
    kept.write_text("{")
    with AwsEmulator() as aws, pytest.raises(UnreadableKeys, match=r"aws\.json.*[Dd]elete"):
        furnish(aws, keys_file=kept)


def _keys_of(demo: DemoAccount) -> AwsKeys:
    assert isinstance(demo.by_keys.access, AwsKeys)
    return demo.by_keys.access


def _desk(aws: AwsEmulator, name: str, **given: str) -> None:
    request = urllib.request.Request(f"{aws.endpoint}/_emulator/{name}", json.dumps(given).encode())
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200
