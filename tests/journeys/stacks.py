"""An emulated account beside a running installation, in which our template is filled in as CloudFormation does."""

from __future__ import annotations

from typing import Any

from emulator.aws.account import EVERYTHING, Key
from emulator.aws.server import AwsEmulator
from emulator.aws.stacks import create_stack


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
    """The stack of this template is complete; the ARN of the role that is for us."""
    return create_stack(aws.account, template)["RoleArn"]
