"""An AWS account made ready for actors, one small step after the other.

Each step may be repeated: what is right stays, what is missing or old is made anew. Names follow from the prefix and
the memory size, so what a broken-off set-up left is found by the next one, and by the removal. The roles are the
owner's: they come from the template that is shown for the connection, and stay until its stack is deleted.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cloud.actor.bundle import ZIPPED_LIMIT_BYTES, Bundle, BundleError
from cloud.aws import functions as aws_functions
from cloud.aws.error_text import code_of
from cloud.aws.functions import LOG_DAYS, function_name
from cloud.connections import AwsClients
from cloud.provision import aws_bucket
from cloud.provision.aws_inventory import (
    Owner,
    account_of,
    described,
    is_anothers,
    message_of,
    missing,
    tags_of,
)
from cloud.provision.policies import AwsScope
from cloud.provision.steps import Step

TIMEOUT_S = 900
_ASK_AGAIN_S = 1.0


class _CannotGoOn(Exception):
    """A step without which the next ones make no sense; it is told already."""


def set_up(
    clients: AwsClients,
    owner: Owner,
    memory_mb: Sequence[int],
    packed: Callable[[], Bundle],
    *,
    bucket: bool = False,
    patience_s: float = 15.0,
) -> Iterator[Step]:
    """One function for each memory size, with its tags and its log. Told step by step; the last may be a missing one.

    `bucket`: also one for networks that do not fit into a call. `patience_s`: how long AWS may need until it lets a
    function run under a role that was just made.
    """
    account, step = account_of(clients)
    yield step
    bundle, step = _package(packed)
    yield step
    if not account or bundle is None:
        return
    work = _SetUp(clients, owner, _role(clients, account), bundle, patience_s)
    try:
        for size in sorted(memory_mb):
            yield from work.function(size)
    except _CannotGoOn:
        return
    if bucket:
        yield aws_bucket.made(clients, owner.connection, owner.tags)


def _role(clients: AwsClients, account: str) -> str:
    """The ARN of the role that functions run under; our template gives it this name."""
    connection = clients.connection
    return AwsScope(connection.region, account, connection.prefix).arn("actor_role")


def _package(packed: Callable[[], Bundle]) -> tuple[Bundle | None, Step]:
    name = "Package"
    try:
        bundle = packed()
    except BundleError as error:
        words = f"It could not be packed: {error}."
        return None, Step(name, "missing", words, "See that this server may reach the package registry.")
    size_mb = len(bundle.data) / 2**20
    if len(bundle.data) > ZIPPED_LIMIT_BYTES:
        words = f"It has {size_mb:.0f} MiB, and AWS takes {ZIPPED_LIMIT_BYTES // 2**20} MiB."
        return None, Step(name, "missing", words, "This is a fault of this version of Starling.")
    words = f"The actor's code for {bundle.runtime}, {size_mb:.1f} MiB packed."
    return bundle, Step(name, "done", words)


class _SetUp:
    """One run through the steps of every function."""

    def __init__(
        self, clients: AwsClients, owner: Owner, role_arn: str, bundle: Bundle, patience_s: float
    ) -> None:
        self._functions = clients.client("lambda")
        self._logs = clients.client("logs")
        self._prefix = clients.connection.prefix
        self._owner = owner
        self._role_arn = role_arn
        self._bundle = bundle
        self._patience_s = patience_s
        self._role_told = False

    def function(self, memory_mb: int) -> Iterator[Step]:
        name = function_name(self._prefix, memory_mb)
        title = f"Function {name}"
        try:
            before = described(self._functions, name)
            worn = tags_of(self._functions, before)
            self._deploy(name, memory_mb, worn)
        except _RoleRefused:
            yield self._role_missing()
            raise _CannotGoOn from None
        except Exception as error:
            yield missing(title, error, "lambda")
            raise _CannotGoOn from None
        if not self._role_told:
            self._role_told = True
            yield Step("Role of the functions", "done", f"AWS lets functions run under {self._role_arn}.")
        yield self._made_or_there(title, before, memory_mb)
        yield self._marked(title, before, worn)
        yield self._kept_logs(name)

    def _deploy(self, name: str, memory_mb: int, worn: Mapping[str, str]) -> None:
        """Bring it up to date. A role that was just made is not known everywhere at once."""
        end_s = time.monotonic() + self._patience_s
        while True:
            try:
                aws_functions.deploy(
                    self._functions,
                    name,
                    self._bundle,
                    self._role_arn,
                    memory_mb,
                    timeout_s=TIMEOUT_S,
                    tags=self._tags_for(worn),
                )
                return
            except Exception as error:
                if not _is_about_the_role(error):
                    raise
                if time.monotonic() > end_s:
                    raise _RoleRefused from None
            time.sleep(_ASK_AGAIN_S)

    def _tags_for(self, worn: Mapping[str, str]) -> dict[str, str]:
        """Ours, unless another connection made it: then it stays that one's to take away."""
        tags = self._owner.tags
        return (
            {key: worn.get(key, value) for key, value in tags.items()}
            if is_anothers(worn, self._owner)
            else tags
        )

    def _role_missing(self) -> Step:
        words = f"AWS does not let functions run under {self._role_arn}, or there is no such role."
        fix = (
            "Create the stack from the template in step 1, or by hand a role of that name with the trust policy"
            " and the policy of the actor role. Then set up again."
        )
        return Step("Role of the functions", "missing", words, fix)

    def _made_or_there(self, title: str, before: Mapping[str, Any] | None, memory_mb: int) -> Step:
        settings = f"{memory_mb:,} MB, at most {TIMEOUT_S // 60} minutes a call"
        if before is None:
            return Step(title, "made", f"Made, with {settings}. Idle, it costs nothing.")
        changed = []
        if before["CodeSha256"] != _sha256(self._bundle):
            changed.append("this version's code was put in")
        if (before["MemorySize"], before["Timeout"]) != (memory_mb, TIMEOUT_S):
            changed.append(f"memory and time limit were set: {settings}")
        if before.get("Role") != self._role_arn:
            changed.append("the role was set")
        if changed:
            return Step(title, "made", f"It was there; {', and '.join(changed)}.")
        return Step(title, "done", f"It is there and up to date, with {settings}.")

    def _marked(self, title: str, before: Mapping[str, Any] | None, worn: Mapping[str, str]) -> Step:
        name = title.replace("Function", "Tags of", 1)
        if is_anothers(worn, self._owner):
            words = f"It was made for another connection ({worn['connection']}), and is that one's to remove."
            return Step(name, "done", words)
        fresh = before is None or {key: worn.get(key) for key in self._owner.tags} != self._owner.tags
        words = f"Marked as made by {self._owner.deployment} for project {self._owner.project}."
        return Step(name, "made" if fresh else "done", words)

    def _kept_logs(self, name: str) -> Step:
        title = f"Log of {name}"
        try:
            fresh = aws_functions.keep_logs(self._logs, name)
        except Exception as error:
            return missing(title, error, "logs")
        return Step(title, "made" if fresh else "done", f"AWS deletes its lines after {LOG_DAYS} days.")


class _RoleRefused(Exception):
    """The functions' role is not one that AWS takes."""


def _is_about_the_role(error: Exception) -> bool:
    return code_of(error) == "InvalidParameterValueException" and "role" in message_of(error).lower()


def _sha256(bundle: Bundle) -> str:
    return base64.b64encode(hashlib.sha256(bundle.data).digest()).decode()
