"""CloudFormation, as far as Starling's templates need it: roles, users and their policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from emulator.aws.account import EmulatedAccount, Policy
from emulator.aws.errors import AwsError

Properties = Mapping[str, Any]
_ROLE, _USER, _POLICY = "AWS::IAM::Role", "AWS::IAM::User", "AWS::IAM::ManagedPolicy"


def create_stack(
    account: EmulatedAccount, template: Mapping[str, Any], *, access_key: tuple[str, str] | None = None
) -> dict[str, str]:
    """Create what the template names. Return its outputs; for a user, also an access key: `access_key`, or a new one.

    Raises AwsError if a name is taken, and then creates nothing.
    """
    resources: dict[str, Any] = template["Resources"]
    names = {key: _name_of(resource) for key, resource in resources.items()}
    arns = {key: f"arn:aws:iam::{account.id}:{_path_of(one)}/{names[key]}" for key, one in resources.items()}
    for arn in arns.values():
        if arn in account.roles or arn in account.users:
            raise AwsError(409, "EntityAlreadyExists", f"{arn} already exists.")
    filled: dict[str, Any] = _filled(template, {**names, "AWS::AccountId": account.id}, arns)
    outputs = {key: str(output["Value"]) for key, output in filled["Outputs"].items()}
    for key, resource in filled["Resources"].items():
        properties = resource["Properties"]
        if resource["Type"] == _ROLE:
            _add_role(account, names[key], properties)
        elif resource["Type"] == _USER:
            made = account.add_user(names[key], _policy_of_user(filled, names[key]), access_key=access_key)
            outputs |= {"access_key_id": made.access_key_id, "secret_access_key": made.secret}
    return outputs


def _name_of(resource: Properties) -> str:
    properties = resource["Properties"]
    return str(properties.get("RoleName") or properties.get("UserName") or "")


def _path_of(resource: Properties) -> str:
    return {_ROLE: "role", _USER: "user", _POLICY: "policy"}[resource["Type"]]


def _add_role(account: EmulatedAccount, name: str, properties: Properties) -> None:
    (trust,) = properties["AssumeRolePolicyDocument"]["Statement"]
    (policy,) = properties["Policies"]
    condition = trust.get("Condition", {}).get("StringEquals", {})
    account.add_role(
        name,
        Policy.of(policy["PolicyDocument"]),
        trusted=trust["Principal"].get("AWS", "*"),
        external_id=condition.get("sts:ExternalId"),
        service=trust["Principal"].get("Service"),
        of_stack=True,
    )


def _policy_of_user(filled: Mapping[str, Any], name: str) -> Policy:
    (policy,) = [
        resource["Properties"]["PolicyDocument"]
        for resource in filled["Resources"].values()
        if resource["Type"] == _POLICY and name in resource["Properties"]["Users"]
    ]
    return Policy.of(policy)


def _filled(part: Any, references: Mapping[str, str], arns: Mapping[str, str]) -> Any:
    """Return the part with the values of Ref, Fn::GetAtt and Fn::Sub in their places."""
    match part:
        case {"Ref": str(name)}:
            return references[name]
        case {"Fn::GetAtt": [str(name), "Arn"]}:
            return arns[name]
        case {"Fn::Sub": str(text)}:
            for name, value in {"AWS::Partition": "aws", **references}.items():
                text = text.replace(f"${{{name}}}", value)
            return text
        case dict():
            return {key: _filled(value, references, arns) for key, value in part.items()}
        case list():
            return [_filled(value, references, arns) for value in part]
    return part
