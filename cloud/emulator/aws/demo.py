"""An account as a newcomer sets it up: the role that trusts us, a user with keys, the actors' role, a bucket.

All have the rights of the policy that people copy, and no others; so what runs here runs with that policy.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from cloud.connections import AwsConnection, AwsKeys, AwsRole
from cloud.emulator.aws.account import Key, Policy
from cloud.emulator.aws.server import AwsEmulator
from cloud.provision.policies import AwsScope, actor_policy, aws_policy

OUR_ACCOUNT = "999988887777"


@dataclass(frozen=True)
class DemoAccount:
    """How to connect to it, either way."""

    by_role: AwsConnection
    by_keys: AwsConnection
    actor_role: str

    def values(self) -> dict[str, Any]:
        """What one types into the form, for the console."""
        role, keys = self.by_role.access, self.by_keys.access
        assert isinstance(role, AwsRole)
        assert isinstance(keys, AwsKeys)
        assert role.ours is not None
        return {
            "endpoint": self.by_role.endpoint_url,
            "region": self.by_role.region,
            "bucket": self.by_role.bucket,
            "role_arn": role.role_arn,
            "external_id": role.external_id,
            "our_access_key_id": role.ours.access_key_id,
            "our_secret_access_key": role.ours.secret_access_key,
            "access_key_id": keys.access_key_id,
            "secret_access_key": keys.secret_access_key,
            "actor_role": self.actor_role,
        }


def furnish(aws: AwsEmulator, *, external_id: str | None = None) -> DemoAccount:
    """Roles, a user and a bucket in a running emulator's account."""
    account = aws.account
    scope = AwsScope(region=aws.region, account=account.id)
    policy = Policy.of(aws_policy(scope))
    may_assume = Policy.of({"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]})
    ours = account.add_user("starling-server", may_assume, account_id=OUR_ACCOUNT)
    secret_id = external_id or secrets.token_hex(16)
    role = account.add_role(scope.own_role_name, policy, trusted=ours.principal.arn, external_id=secret_id)
    user = account.add_user(scope.own_role_name, policy)
    actor = account.add_role(
        scope.actor_role_name, Policy.of(actor_policy(scope)), service="lambda.amazonaws.com"
    )
    bucket = f"{scope.prefix}-weights-{account.id}"
    aws.storage.add_bucket(bucket)
    more: dict[str, Any] = {"region": aws.region, "endpoint_url": aws.endpoint, "bucket": bucket}
    return DemoAccount(
        AwsConnection(AwsRole(role.arn, secret_id, _keys(ours)), **more),
        AwsConnection(_keys(user), **more),
        actor.arn,
    )


def _keys(key: Key) -> AwsKeys:
    return AwsKeys(key.access_key_id, key.secret, key.token)
