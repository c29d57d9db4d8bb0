"""Sets an AWS account up for actors in small steps.

Each step may be repeated: it changes only what is missing or out of date. Names follow from the prefix and the memory
size, so the next set-up and the removal find whatever an interrupted set-up left. The roles belong to the owner: they
come from the connection's template and exist until its stack is deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cloud.accounts.connections import AwsClients
from cloud.accounts.provision import aws_bucket
from cloud.accounts.provision.aws_inventory import (
    Owner,
    account_of,
    belongs_to,
    described,
    missing,
    others_words,
    tags_of,
)
from cloud.accounts.provision.policies import AwsScope
from cloud.accounts.provision.steps import SetUpStep
from cloud.actor.bundle import ZIPPED_LIMIT_BYTES, Bundle, BundleError
from cloud.platforms.aws import functions as aws_functions
from cloud.platforms.aws.error_text import code_of, message_of
from cloud.platforms.aws.functions import LOG_DAYS, function_name

TIMEOUT_S = 900
FUNCTION_ROLE = "Role of the functions"
_ASK_AGAIN_S = 1.0


class _CannotGoOn(Exception):
    """A step failed that all later steps need. It has been yielded already."""


def set_up(
    clients: AwsClients,
    owner: Owner,
    memory_mb: Sequence[int],
    packed: Callable[[], Bundle],
    *,
    bucket: bool = False,
    patience_s: float = 15.0,
) -> Iterator[SetUpStep]:
    """Create a function for each memory size, with tags and log. Yield each step; it ends at a missing one.

    `bucket`: also create one for networks that do not fit into a call. `patience_s`: how long AWS may take to accept
    a role that was just created.
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
        yield aws_bucket.create(clients, owner.connection, owner.tags)


def _role(clients: AwsClients, account: str) -> str:
    """Return the ARN of the functions' role, which our template names so."""
    connection = clients.connection
    return AwsScope(connection.region, account, connection.prefix).arn("actor_role")


def _package(packed: Callable[[], Bundle]) -> tuple[Bundle | None, SetUpStep]:
    name = "Package"
    try:
        bundle = packed()
    except BundleError as error:
        words = f"It could not be packed: {error}."
        return None, SetUpStep(
            name, "missing", words, "Check that this server may reach the package registry."
        )
    size_mb = len(bundle.data) / 2**20
    if len(bundle.data) > ZIPPED_LIMIT_BYTES:
        words = f"It has {size_mb:.0f} MiB, and AWS takes {ZIPPED_LIMIT_BYTES // 2**20} MiB."
        return None, SetUpStep(name, "missing", words, "This is a fault of this version of Starling.")
    words = f"The actor's code for {bundle.runtime}, {size_mb:.1f} MiB packed."
    return bundle, SetUpStep(name, "done", words)


class _SetUp:
    """The steps of every function."""

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
        self._role_shown = False

    def function(self, memory_mb: int) -> Iterator[SetUpStep]:
        name = function_name(self._prefix, memory_mb)
        title = f"Function {name}"
        try:
            before = described(self._functions, name)
            tags = tags_of(self._functions, before)
            ours = before is None or belongs_to(self._owner, self._prefix, tags)
            self._deploy(name, memory_mb, self._owner.tags if ours else {})
        except _RoleRefused:
            yield self._role_missing()
            raise _CannotGoOn from None
        except Exception as error:
            yield missing(title, error)
            raise _CannotGoOn from None
        if not self._role_shown:
            self._role_shown = True
            yield SetUpStep(FUNCTION_ROLE, "done", f"Functions may run under {self._role_arn}.")
        yield self._deployed(title, before, memory_mb)
        yield self._tagged(name, tags, ours)
        yield self._log(name)

    def _deploy(self, name: str, memory_mb: int, tags: Mapping[str, str]) -> None:
        """Create or update the function. AWS takes some seconds to accept a role that was just created."""
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
                    tags=tags,
                )
                return
            except Exception as error:
                if not _is_about_the_role(error):
                    raise
                if time.monotonic() > end_s:
                    raise _RoleRefused from None
            time.sleep(_ASK_AGAIN_S)

    def _role_missing(self) -> SetUpStep:
        words = f"Functions may not run under {self._role_arn}, or there is no such role."
        fix = (
            "Create the stack from the template in step 1. Or create a role of that name, with the trust policy"
            " and the policy of the actor role. Then set up again."
        )
        return SetUpStep(FUNCTION_ROLE, "missing", words, fix)

    def _deployed(self, title: str, before: Mapping[str, Any] | None, memory_mb: int) -> SetUpStep:
        settings = f"{memory_mb:,} MB, at most {TIMEOUT_S // 60} minutes a call"
        if before is None:
            return SetUpStep(title, "made", f"Created, with {settings}. Idle, it costs nothing.")
        changed = []
        if before["CodeSha256"] != aws_functions.code_sha256(self._bundle):
            changed.append("this version's code was uploaded")
        if (before["MemorySize"], before["Timeout"]) != (memory_mb, TIMEOUT_S):
            changed.append(f"memory and time limit were set: {settings}")
        if before.get("Role") != self._role_arn:
            changed.append("the role was set")
        if changed:
            return SetUpStep(title, "made", f"It existed; {', and '.join(changed)}.")
        return SetUpStep(title, "done", f"It exists and is up to date, with {settings}.")

    def _tagged(self, name: str, before: Mapping[str, str], ours: bool) -> SetUpStep:
        title = f"Tags of {name}"
        if not ours:
            return SetUpStep(
                title, "done", f"{others_words(before)}: it is used here, and removed only there."
            )
        fresh = {key: before.get(key) for key in self._owner.tags} != self._owner.tags
        words = f"Tagged as created by {self._owner.deployment} for project {self._owner.project}."
        return SetUpStep(title, "made" if fresh else "done", words)

    def _log(self, name: str) -> SetUpStep:
        title = f"Log of {name}"
        try:
            fresh = aws_functions.keep_logs(self._logs, name)
        except Exception as error:
            return missing(title, error)
        return SetUpStep(title, "made" if fresh else "done", f"AWS deletes its lines after {LOG_DAYS} days.")


class _RoleRefused(Exception):
    """AWS does not accept the functions' role."""


def _is_about_the_role(error: Exception) -> bool:
    return code_of(error) == "InvalidParameterValueException" and "role" in message_of(error).lower()
