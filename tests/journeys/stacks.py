"""An emulated account beside a running installation, in which our template is filled in as CloudFormation does."""

from __future__ import annotations

import json
from typing import Any

from cloud.emulator.aws.account import EVERYTHING, Key, Policy, Role
from cloud.emulator.aws.server import AwsEmulator


def identity_of_this_installation(aws: AwsEmulator) -> Key:
    """In an account of its own."""
    return aws.account.add_user("starling", EVERYTHING, account_id="999988887777")


def variables_for(aws: AwsEmulator, ours: Key) -> dict[str, str]:
    """With which the site and the worker reach the emulator, and log as much as they ever would."""
    return {
        "STARLING_AWS_ENDPOINT": aws.endpoint,
        "STARLING_AWS_PRINCIPAL": ours.principal.arn,
        "STARLING_LOG_LEVEL": "DEBUG",
        "AWS_ACCESS_KEY_ID": ours.access_key_id,
        "AWS_SECRET_ACCESS_KEY": ours.secret,
    }


def made_from(aws: AwsEmulator, template: dict[str, Any]) -> str:
    """Both roles of the template; the ARN of the one that is for us."""
    filled = json.loads(
        json.dumps(template).replace("${AWS::AccountId}", aws.account.id).replace("${AWS::Partition}", "aws"),
        object_hook=_filled,
    )
    resources = filled["Resources"]
    _role(aws, resources["ActorRole"]["Properties"], service="lambda.amazonaws.com")
    ours = resources["DashboardRole"]["Properties"]
    (trust,) = ours["AssumeRolePolicyDocument"]["Statement"]
    return _role(
        aws,
        ours,
        trusted=trust["Principal"]["AWS"],
        external_id=trust["Condition"]["StringEquals"]["sts:ExternalId"],
    ).arn


def _role(aws: AwsEmulator, properties: dict[str, Any], **trust: Any) -> Role:
    policy = Policy.of(properties["Policies"][0]["PolicyDocument"])
    return aws.account.add_role(properties["RoleName"], policy, **trust)


def _filled(part: dict[str, Any]) -> Any:
    return part["Fn::Sub"] if set(part) == {"Fn::Sub"} else part
