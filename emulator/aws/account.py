"""One AWS account: who may do what, which keys prove it, and how much may run at once."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from emulator.aws.errors import AwsError, access_denied

_SESSION_S = 3600
FUNCTIONS = "lambda.amazonaws.com"
"""The service that runs functions, as trust policies name it."""


@dataclass(frozen=True)
class Policy:
    """Statements as in a policy document. Conditions are ignored; whatever is not allowed is denied.

    `user`: the name that AWS fills in for ${aws:username}.
    """

    statements: tuple[Mapping[str, Any], ...]
    user: str = ""

    @staticmethod
    def of(document: Mapping[str, Any]) -> Policy:
        return Policy(tuple(document["Statement"]))

    def allows(self, action: str, resource: str) -> bool:
        matching = [one for one in self.statements if _matches(one, action, resource, self.user)]
        return bool(matching) and all(statement["Effect"] == "Allow" for statement in matching)


def _matches(statement: Mapping[str, Any], action: str, resource: str, user: str) -> bool:
    resources = [
        one.replace("${aws:username}", user) if user else one for one in _list(statement["Resource"])
    ]
    return any(
        fnmatchcase(action.lower(), pattern.lower()) for pattern in _list(statement["Action"])
    ) and any(fnmatchcase(resource, pattern) for pattern in resources)


def _list(value: str | Sequence[str]) -> Sequence[str]:
    return [value] if isinstance(value, str) else value


EVERYTHING = Policy.of({"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]})


@dataclass(frozen=True)
class Principal:
    """The caller of a request: a user, or a session of a role."""

    arn: str
    user_id: str
    policy: Policy


@dataclass
class EmulatedRole:
    """A role that `trusted` (an ARN) may assume, with the external id that its trust policy demands, if any.

    `of_stack`: its template says all of it, so nothing else changes it.
    """

    arn: str
    policy: Policy
    trusted: str = "*"
    external_id: str | None = None
    service: str | None = None
    of_stack: bool = False


@dataclass(frozen=True)
class Key:
    access_key_id: str
    secret: str
    principal: Principal
    token: str | None = None
    expires_unix_s: float | None = None


@dataclass
class EmulatedAccount:
    """Keys, roles and quotas. It also holds keys of other accounts that assume a role of this one.

    `concurrency`: how many functions may run at once in each region that `concurrency_by_region` does not name.
    """

    id: str = "111122223333"
    concurrency: int = 1000
    concurrency_by_region: dict[str, int] = field(default_factory=dict)
    now_unix_s: Callable[[], float] = time.time
    longest_session_s: int = 12 * 3600
    keys: dict[str, Key] = field(default_factory=dict)
    roles: dict[str, EmulatedRole] = field(default_factory=dict)
    users: dict[str, Policy] = field(default_factory=dict)
    on_external_id: Callable[[str], None] = lambda external_id: None
    """Called after the external id that roles demand has changed."""

    def add_user(
        self,
        name: str,
        policy: Policy,
        *,
        account_id: str | None = None,
        access_key: tuple[str, str] | None = None,
    ) -> Key:
        """Add a user. Return its access key: `access_key` (ID and secret), or a new one."""
        arn = f"arn:aws:iam::{account_id or self.id}:user/{name}"
        policy = replace(policy, user=name)
        self.users[arn] = policy
        principal = Principal(arn, "AIDA" + _random_id(), policy)
        key_id, secret = access_key or ("AKIA" + _random_id(), secrets.token_urlsafe(30))
        return self._add(Key(key_id, secret, principal))

    def add_role(self, name: str, policy: Policy, **trust: Any) -> EmulatedRole:
        role = EmulatedRole(f"arn:aws:iam::{self.id}:role/{name}", policy, **trust)
        self.roles[role.arn] = role
        return role

    def role_of_functions(self, arn: str) -> EmulatedRole | None:
        """Return the role under which functions may run. That of the demo account has any connection's name."""
        known = [role for role in self.roles.values() if role.service == FUNCTIONS]
        return next((role for role in known if fnmatchcase(arn, role.arn)), None)

    def assume(self, caller: Principal, arn: str, session: str, external_id: str | None, lasts_s: int) -> Key:
        """Return the key of a new session of a role. Raises AccessDenied without the reason, as AWS does."""
        role = self.roles.get(arn)
        fits = role is not None and role.service is None
        if role is None or not fits or not fnmatchcase(caller.arn, role.trusted):
            raise access_denied("sts", caller.arn, "sts:AssumeRole", arn)
        if role.external_id is not None and external_id != role.external_id:
            raise access_denied("sts", caller.arn, "sts:AssumeRole", arn)
        if not caller.policy.allows("sts:AssumeRole", arn):
            raise access_denied("sts", caller.arn, "sts:AssumeRole", arn)
        name = arn.rpartition("/")[2]
        principal = Principal(
            f"arn:aws:sts::{self.id}:assumed-role/{name}/{session}",
            f"AROA{_random_id()}:{session}",
            role.policy,
        )
        token = secrets.token_urlsafe(60)
        expires = self.now_unix_s() + min(lasts_s or _SESSION_S, self.longest_session_s)
        return self._add(Key("ASIA" + _random_id(), secrets.token_urlsafe(30), principal, token, expires))

    def set_external_id(self, external_id: str) -> None:
        """Have roles demand this id from now on, as if their trust policy was edited."""
        demanding = [
            role for role in self.roles.values() if role.external_id is not None and not role.of_stack
        ]
        if not demanding or not external_id:
            raise ValueError("no role here asks for an external id" if external_id else "the id is empty")
        for role in demanding:
            role.external_id = external_id
        self.on_external_id(external_id)

    def concurrency_in(self, region: str) -> int:
        return self.concurrency_by_region.get(region, self.concurrency)

    def expire_sessions(self) -> None:
        """End every session."""
        for key in list(self.keys.values()):
            if key.expires_unix_s is not None:
                self.keys[key.access_key_id] = replace(key, expires_unix_s=0.0)

    def require(self, principal: Principal, service: str, action: str, resource: str) -> None:
        if not principal.policy.allows(action, resource):
            raise access_denied(service, principal.arn, action, resource)

    def simulated(self, source_arn: str, action: str, resource: str) -> bool:
        """Return whether this user or role may do it, as SimulatePrincipalPolicy does."""
        if source_arn in self.roles:
            policy = self.roles[source_arn].policy
        elif source_arn in self.users:
            policy = self.users[source_arn]
        else:
            raise AwsError(404, "NoSuchEntity", f"{source_arn} does not exist")
        return policy.allows(action, resource)

    def _add(self, key: Key) -> Key:
        self.keys[key.access_key_id] = key
        return key


def _random_id() -> str:
    return "".join(secrets.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") for _ in range(16))
