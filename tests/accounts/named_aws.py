"""The AWS accounts that the environment names for these tests."""

from __future__ import annotations

import os

from cloud.accounts.connections import AwsConnection, AwsKeys, AwsRole

_NAMED = "STARLING_TEST_AWS_"


def named_connection(which: str = "") -> AwsConnection | None:
    """Return the connection that the environment names; None without one. `which`: `SECOND_` is that beside it."""
    if f"{_NAMED}ACCESS_KEY_ID" not in os.environ:
        return None
    keys = AwsKeys(
        _said("ACCESS_KEY_ID"), _said("SECRET_ACCESS_KEY"), os.environ.get(f"{_NAMED}SESSION_TOKEN")
    )
    if which and f"{_NAMED}{which}ROLE_ARN" not in os.environ:
        return None
    region = os.environ.get(f"{_NAMED}{which}REGION", "us-east-1")
    prefix = os.environ.get(f"{_NAMED}{which}PREFIX", "starling")
    if f"{_NAMED}{which}ROLE_ARN" not in os.environ:
        return AwsConnection(keys, region, prefix)
    role = AwsRole(_said(f"{which}ROLE_ARN"), _said(f"{which}EXTERNAL_ID"), keys)
    return AwsConnection(role, region, prefix)


def _said(name: str) -> str:
    return os.environ[f"{_NAMED}{name}"]
