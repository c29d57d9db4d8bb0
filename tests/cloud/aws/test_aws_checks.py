"""What the test of a connection to AWS finds, over the real SDK against an emulated account."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cloud.accounts import checks
from cloud.accounts.check_clients import aws_clients
from cloud.accounts.checks import AccountCheck, AccountReport
from cloud.accounts.connections import AwsConnection, AwsKeys, AwsRole
from cloud.accounts.provision.permissions import AWS, BEYOND
from cloud.accounts.provision.policies import AwsScope, aws_policy
from cloud.platforms.aws import error_text as aws_words
from cloud.platforms.aws.checks import NO_MORE_RIGHTS, NOT_ROOT, ROLE_DEMANDS_ID, AwsQuestion, check_aws
from emulator.aws.account import EVERYTHING, EmulatedAccount, Policy
from emulator.aws.server import AwsEmulator

REGION = "eu-central-1"
LIMIT_S = 20.0


def _by_name(report: AccountReport) -> dict[str, AccountCheck]:
    return {check.name: check for check in report.checks}


def _failed(report: AccountReport) -> set[str]:
    return {check.name for check in report.checks if check.ok is False}


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsEmulator]:
    with AwsEmulator(account=EmulatedAccount(concurrency=10), region=REGION) as emulator:
        yield emulator


def _policy(account: EmulatedAccount, without: tuple[str, ...] = (), own: str = "") -> Policy:
    document = aws_policy(
        AwsScope(REGION, account.id, own_arn=own), [one for one in AWS if one.action not in without]
    )
    return Policy.of(document)


def _tested(connection: AwsConnection) -> AccountReport:
    role = connection.access if isinstance(connection.access, AwsRole) else None
    question = AwsQuestion(REGION, role.role_arn if role else "", role.external_id if role else "")
    return checks.within(
        LIMIT_S, REGION, lambda findings: check_aws(aws_clients(connection), question, findings)
    )


def _role(aws: AwsEmulator, name: str, without: tuple[str, ...] = (), **trust: Any) -> AwsConnection:
    """A role made as the page says, and us, in another account, who may take it on."""
    ours = aws.account.add_user(f"us-{name}", EVERYTHING, account_id="999988887777")
    arn = f"arn:aws:iam::{aws.account.id}:role/{name}"
    trust = {"trusted": ours.principal.arn, "external_id": "starling-1", **trust}
    aws.account.add_role(name, _policy(aws.account, without, arn), **trust)
    access = AwsRole(arn, "starling-1", AwsKeys(ours.access_key_id, ours.secret))
    return AwsConnection(access, REGION, endpoint_url=aws.endpoint)


def _keys(aws: AwsEmulator, name: str, policy: Policy | None = None) -> AwsConnection:
    arn = f"arn:aws:iam::{aws.account.id}:user/{name}"
    key = aws.account.add_user(name, policy or _policy(aws.account, own=arn))
    return AwsConnection(AwsKeys(key.access_key_id, key.secret), REGION, endpoint_url=aws.endpoint)


def test_a_role_made_as_we_say_has_everything(aws: AwsEmulator) -> None:
    report = _tested(_role(aws, "good"))
    assert _failed(report) == set()
    assert report.ok
    assert report.account == aws.account.id
    assert ":assumed-role/good/" in report.identity
    rows = _by_name(report)
    assert {permission.action for permission in AWS} <= set(rows)
    assert rows[ROLE_DEMANDS_ID].ok is True
    assert rows[NO_MORE_RIGHTS].ok is True


def test_so_have_the_keys_of_a_user(aws: AwsEmulator) -> None:
    report = _tested(_keys(aws, "good"))
    assert _failed(report) == set()
    assert report.ok
    assert report.identity == f"arn:aws:iam::{aws.account.id}:user/good"


def test_a_low_quota_is_reported_with_what_to_do(aws: AwsEmulator) -> None:
    (quota,) = _tested(_role(aws, "quota")).quotas
    assert (quota.limit, quota.unit, quota.used) == (10, "functions", 0)
    assert "Ask for more" in quota.words


@pytest.mark.parametrize("missing", ["lambda:InvokeFunction", "iam:PassRole", "s3:PutObject"])
def test_a_permission_taken_out_of_the_policy_is_missing(aws: AwsEmulator, missing: str) -> None:
    report = _tested(_role(aws, f"without-{missing.replace(':', '-')}", (missing,)))
    assert _failed(report) == {missing}


@pytest.mark.parametrize("missing", [one.action for one in AWS if one.action != "lambda:GetAccountSettings"])
def test_each_missing_permission_is_on_its_own_row_with_the_fix(missing: str) -> None:
    def decide(action: str) -> dict[str, Any]:
        return {"EvalDecision": "implicitDeny" if action in (missing, *BEYOND) else "allowed"}

    report = _doubles("arn:aws:iam::1:user/a", decide)
    assert _failed(report) == {missing}
    row = _by_name(report)[missing]
    assert report.ok == row.optional
    assert missing in row.fix
    assert "Needed to" in row.words


def test_a_wrong_external_id_is_not_taken_on(aws: AwsEmulator) -> None:
    connection = _role(aws, "wrong-id", external_id="starling-2")
    report = _tested(connection)
    (row,) = report.checks
    assert row.ok is False
    assert "trust policy" in row.fix
    assert not report.ok


def test_a_role_that_anyone_could_use_through_us_is_reported(aws: AwsEmulator) -> None:
    report = _tested(_role(aws, "open", external_id=None))
    assert _failed(report) == {ROLE_DEMANDS_ID}
    assert not report.ok


def test_without_simulation_what_can_be_tried_is_tried(aws: AwsEmulator) -> None:
    report = _tested(_role(aws, "blind", ("iam:SimulatePrincipalPolicy", "lambda:InvokeFunction")))
    rows = _by_name(report)
    assert rows["lambda:GetFunction"].ok is True
    assert rows["tag:GetResources"].ok is True
    assert rows["lambda:InvokeFunction"].ok is False
    assert rows["lambda:CreateFunction"].ok is None
    assert rows["iam:SimulatePrincipalPolicy"].ok is False
    assert rows["iam:SimulatePrincipalPolicy"].optional
    assert NO_MORE_RIGHTS not in rows


def test_too_many_rights_are_reported_and_stop_nothing(aws: AwsEmulator) -> None:
    report = _tested(_keys(aws, "mighty", EVERYTHING))
    assert _failed(report) == {NO_MORE_RIGHTS}
    assert "iam:CreateUser" in _by_name(report)[NO_MORE_RIGHTS].words
    assert report.ok


def test_a_wrong_secret_and_an_unknown_key_are_distinguished(aws: AwsEmulator) -> None:
    good = _keys(aws, "typo")
    assert isinstance(good.access, AwsKeys)
    wrong = replace(good, access=AwsKeys(good.access.access_key_id, "x" * 40))
    unknown = replace(good, access=AwsKeys("AKIA" + "X" * 16, "x" * 40))
    (first,), (second,) = _tested(wrong).checks, _tested(unknown).checks
    assert "secret does not" in first.words
    assert "this access key" in second.words


def test_an_unreachable_cloud_is_reported_within_the_limit() -> None:
    nowhere = AwsConnection(AwsKeys("AKIA" + "X" * 16, "x" * 40), REGION, endpoint_url="http://127.0.0.1:9")
    began = time.monotonic()
    (row,) = _tested(nowhere).checks
    assert "could not reach" in row.words
    assert time.monotonic() - began < LIMIT_S


class _AwsDouble:
    """Clients whose answers are made up: for what the emulator does not do."""

    def __init__(self, **methods: Any) -> None:
        self.__dict__.update(methods)


def _refusing(code: str) -> Callable[..., Any]:
    def call(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": code, "Message": "canary-in-message"}}, "Any")

    return call


def _pages(decide: Callable[[str], dict[str, Any]]) -> Any:
    def paginate(**question: Any) -> Any:
        results = [{"EvalActionName": action, **decide(action)} for action in question["ActionNames"]]
        return [{"EvaluationResults": results}]

    return lambda name: _AwsDouble(paginate=paginate)


def _doubles(arn: str, decide: Callable[[str], dict[str, Any]]) -> AccountReport:
    clients = {
        "sts": _AwsDouble(get_caller_identity=lambda: {"Account": "1", "Arn": arn}),
        "lambda": _AwsDouble(
            get_account_settings=lambda: {
                "AccountLimit": {"ConcurrentExecutions": 1000, "UnreservedConcurrentExecutions": 900}
            }
        ),
        "iam": _AwsDouble(get_paginator=_pages(decide)),
    }

    def make(service: str, credentials: Mapping[str, str] | None = None) -> Any:
        return clients[service]

    return checks.within(5, REGION, lambda findings: check_aws(make, AwsQuestion(REGION), findings))


def test_why_something_is_denied_is_reported() -> None:
    reasons = {
        "lambda:CreateFunction": {
            "EvalDecision": "implicitDeny",
            "OrganizationsDecisionDetail": {"AllowedByOrganizations": False},
        },
        "lambda:InvokeFunction": {
            "EvalDecision": "implicitDeny",
            "PermissionsBoundaryDecisionDetail": {"AllowedByPermissionsBoundary": False},
        },
        "lambda:DeleteFunction": {"EvalDecision": "explicitDeny"},
    }
    report = _doubles(
        "arn:aws:iam::1:user/a", lambda action: reasons.get(action, {"EvalDecision": "allowed"})
    )
    rows = _by_name(report)
    assert "organisation" in rows["lambda:CreateFunction"].words
    assert "boundary" in rows["lambda:InvokeFunction"].words
    assert "explicitly" in rows["lambda:DeleteFunction"].words
    assert report.quotas[0].used == 100
    assert report.quotas[0].words == ""


def test_keys_of_the_root_user_are_refused_in_words() -> None:
    report = _doubles("arn:aws:iam::1:root", lambda action: {"EvalDecision": "allowed"})
    assert _failed(report) == {NOT_ROOT}
    assert not report.ok


@pytest.mark.parametrize(
    "code",
    [
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "ExpiredToken",
        "RegionDisabledException",
        "OptInRequired",
    ],
)
def test_aws_refusals_have_words_and_a_fix(code: str) -> None:
    why = aws_words.refusal(ClientError({"Error": {"Code": code, "Message": "canary-in-message"}}, "Any"))
    assert why.fix
    assert code not in why.words
    assert "canary" not in f"{why.words}{why.fix}"
