"""Does in the emulated account what CloudFormation does with our template."""

from __future__ import annotations

import json
from typing import Any

from cloud.emulator.aws.account import Policy, Role
from cloud.emulator.aws.server import AwsEmulator


def made_from(aws: AwsEmulator, template: dict[str, Any]) -> str:
    """Both roles of the template; the ARN of the one that is for us."""
    filled = json.loads(
        json.dumps(template).replace("${AWS::AccountId}", aws.account.id), object_hook=_filled
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
