"""An account as a newcomer sets it up: the role that trusts us, a user with keys, the actors' role, a bucket.

Each has exactly the rights of the policy that people copy, for the names of any connection: a newcomer's first one is
made after the account. A template deployed with `stacks` has those of one connection.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cloud.accounts.connections import AwsConnection, AwsKeys, AwsRole
from cloud.accounts.provision.permissions import SHARED_PREFIX
from cloud.accounts.provision.policies import AwsScope, actor_policy, aws_policy
from emulator.aws.account import FUNCTIONS, Key, Policy
from emulator.aws.server import AwsEmulator
from emulator.stored_keys import read_keys, write_keys

OUR_ACCOUNT = "999988887777"


@dataclass(frozen=True)
class DemoAccount:
    """A connection to the account by role, and one by keys."""

    by_role: AwsConnection
    by_keys: AwsConnection
    actor_role: str

    def values(self) -> dict[str, Any]:
        """Return what to type into the form."""
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


def furnish(
    aws: AwsEmulator, *, external_id: str | None = None, keys_file: Path | None = None
) -> DemoAccount:
    """Add roles, a user and a bucket to a running emulator's account.

    `keys_file`: keys and external id of the last start, which are used again. Raises UnreadableKeys.
    """
    account, last = aws.account, read_keys(keys_file)
    scope = AwsScope(region=aws.region, account=account.id)
    any_names = replace(scope, prefix=f"{SHARED_PREFIX}*")
    policy = Policy.of(aws_policy(any_names))
    may_assume = Policy.of({"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": "*"}]})
    ours = account.add_user(
        "starling-server", may_assume, account_id=OUR_ACCOUNT, access_key=_last_key(last, "ours")
    )
    secret_id = external_id or last.get("external_id") or secrets.token_hex(16)
    role = account.add_role(scope.own_role_name, policy, trusted=ours.principal.arn, external_id=secret_id)
    of_user = Policy.of(aws_policy(replace(any_names, own_arn=scope.of_signed_in_user)))
    user = account.add_user(scope.own_role_name, of_user, access_key=_last_key(last, "user"))
    account.add_role(any_names.actor_role_name, Policy.of(actor_policy(any_names)), service=FUNCTIONS)
    bucket = f"{scope.prefix}-weights-{account.id}"
    aws.storage.add_bucket(bucket)
    values = {
        f"{whose}_{part}": value
        for whose, key in (("ours", ours), ("user", user))
        for part, value in (("id", key.access_key_id), ("secret", key.secret))
    }
    account.on_external_id = lambda one: write_keys(keys_file, {**values, "external_id": one})
    account.on_external_id(secret_id)
    more: dict[str, Any] = {"region": aws.region, "endpoint_url": aws.endpoint, "bucket": bucket}
    return DemoAccount(
        AwsConnection(AwsRole(role.arn, secret_id, _keys(ours)), **more),
        AwsConnection(_keys(user), **more),
        scope.arn("actor_role"),
    )


def _last_key(last: Mapping[str, str], whose: str) -> tuple[str, str] | None:
    key_id, secret = last.get(f"{whose}_id"), last.get(f"{whose}_secret")
    return (key_id, secret) if key_id and secret else None


def _keys(key: Key) -> AwsKeys:
    return AwsKeys(key.access_key_id, key.secret, key.token)
