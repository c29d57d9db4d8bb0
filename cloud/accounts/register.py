"""The register of billable resources in an account: recorded before they are requested, and found again by name.

A platform that creates such a resource records it first. The reconciler compares the register with what a finder
lists (cloud.accounts.reconciling), so that no resource outlives the process that created it.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

Kind = Literal["provisioned", "container_group"]
State = Literal["intended", "standing", "ending", "gone", "lost"]

TAG_APP = "app"
TAG_DEPLOYMENT = "starling:deployment"
TAG_RUN = "starling:run"
TAG_OWNER = "starling:owner"
TAG_EXPIRES = "starling:expires"
_APP = "starling"
_TAG_LETTERS = 256
_NAME_LETTERS = 63
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
_NAME = re.compile(r"^(?P<stem>[a-z][a-z0-9-]*)-e(?P<epoch>[0-9]+)-(?P<number>[0-9]+)$")


class RegisterClosed(Exception):
    """The caller's process no longer owns this run, so it must not create resources for it."""


class NameTaken(Exception):
    """A resource of that name belongs to another run; the text says which."""


class Register(Protocol):
    """The resources of one run in one account. Each method is durable when it returns; repeating one changes nothing.

    All but `gone` and `ending` raise RegisterClosed once another process has the run: ending one's own resources is
    always allowed.
    """

    def intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
        """Record that a create request is about to be sent. Must return before it is sent. Raises Taken.

        `facts` describe it, as far as its rent and messages need it: `resource` names the StandingResource of the job's
        tariff that pays for it, or `actors` how many actors of the tariff's pool it holds.
        """

    def made(self, name: str, provider_id: str) -> None:
        """Record that the cloud has created it."""

    def renew(self, name: str, expires_unix_s: float) -> None:
        """Record that it is in use, and paid for, until then."""

    def ending(self, name: str) -> None:
        """Record that a removal request is about to be sent. Must return before it is sent."""

    def gone(self, name: str) -> None:
        """Record that it was looked for and does not exist any more, or was never created."""


class CreateCounter(Protocol):
    """Counts the create requests of all processes in an account: clouds accept only so many in some time."""

    def take(self, windows: Sequence[tuple[int, float]]) -> float:
        """Count one request and return 0.0; or return in how many seconds there is room for one.

        `windows`: at most so many in so many seconds, each.
        """


def wait_s(made_s: Sequence[float], windows: Sequence[tuple[int, float]], now_s: float) -> float:
    """Return in how many seconds one more may follow those made so far, which are in order."""
    full = [made_s[-most] + window_s - now_s for most, window_s in windows if len(made_s) >= most]
    return max(0.0, *full) if full else 0.0


@dataclass(frozen=True)
class FoundResource:
    """A resource in the account that looks like Starling's, as the cloud lists it now.

    `deployment` and `run` are its tags: the installation and the run that it belongs to; empty if there are none.
    """

    name: str
    kind: Kind
    provider_id: str = ""
    deployment: str = ""
    run: str = ""
    expires_unix_s: float | None = None
    created_unix_s: float | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


class Finder(Protocol):
    """Lists one account from outside any run. Both methods may raise any error of the cloud's SDK."""

    def found(self) -> Sequence[FoundResource]:
        """Return everything billable that looks like Starling's, of any installation, except what has ended by
        itself.
        """

    def end(self, resource: FoundResource) -> None:
        """Request its removal. One that is already gone is no error; a later listing confirms the removal."""


def run_tag(job: str, epoch: int) -> str:
    """Return the tag for the process of a job that a resource was created for."""
    return f"{job}/e{epoch}"


def run_of(tag: str) -> tuple[str, int] | None:
    """Return the job and the epoch that `run_tag` wrote."""
    job, _, epoch = tag.rpartition("/e")
    return (job, int(epoch)) if job and epoch.isascii() and epoch.isdigit() else None


def tags(*, deployment: str, run: str, owner: str, expires_unix_s: float) -> dict[str, str]:
    """Return the tags of every billable resource: its owner, its purpose, and until when it may exist."""
    resource_tags = {
        TAG_APP: _APP,
        TAG_DEPLOYMENT: deployment,
        TAG_RUN: run,
        TAG_OWNER: owner,
        TAG_EXPIRES: str(int(expires_unix_s)),
    }
    return {key: value[:_TAG_LETTERS] for key, value in resource_tags.items()}


def is_ours(resource_tags: Mapping[str, str]) -> bool:
    """Whether the tags are Starling's, of this installation or another one."""
    return resource_tags.get(TAG_APP) == _APP


def expiry_in(resource_tags: Mapping[str, str]) -> float | None:
    """Return until when it may exist by its tags; None if they do not say."""
    text = resource_tags.get(TAG_EXPIRES, "")
    return float(text) if text.isascii() and text.isdigit() else None


def group_name(prefix: str, job: str, epoch: int, number: int) -> str:
    """Return the name of a run's n-th resource, always the same, within the clouds' rules for characters and length."""
    tail = f"-e{epoch}-{number}"
    stem = _NOT_IN_NAMES.sub("-", f"{prefix}-{job}".lower()).strip("-")
    if not stem or not stem[0].isalpha():
        stem = f"s-{stem}"
    return stem[: _NAME_LETTERS - len(tail)].rstrip("-") + tail


def is_group_name(prefix: str, name: str) -> bool:
    """Whether `group_name` could have made it under this prefix."""
    matched = _NAME.match(name)
    wanted = _NOT_IN_NAMES.sub("-", prefix.lower()).strip("-")
    return matched is not None and matched["stem"].startswith(f"{wanted}-")


@dataclass(frozen=True)
class Holder:
    """The run that a platform creates resources for: where they are registered, and their tags.

    `job` and `epoch` name the process that creates them, `deployment` the connection of the installation it runs for.
    `creates` limits the rate of create requests.
    """

    register: Register
    deployment: str = ""
    job: str = ""
    epoch: int = 0
    owner: str = ""
    creates: CreateCounter = field(default_factory=lambda: MemoryCreateCounter())

    @property
    def run(self) -> str:
        return run_tag(self.job, self.epoch) if self.job else ""

    def tags(self, expires_unix_s: float) -> dict[str, str]:
        return tags(deployment=self.deployment, run=self.run, owner=self.owner, expires_unix_s=expires_unix_s)


def holder_in_memory() -> Holder:
    """Return a holder for a run without a database."""
    return Holder(MemoryRegister())


class MemoryCreateCounter:
    """Counts this process's own requests."""

    def __init__(self) -> None:
        self._made_s: deque[float] = deque(maxlen=1000)

    def take(self, windows: Sequence[tuple[int, float]]) -> float:
        now_s = time.monotonic()
        left_s = wait_s(self._made_s, windows, now_s)
        if not left_s:
            self._made_s.append(now_s)
        return left_s


@dataclass(frozen=True)
class RegisterEntry:
    """One row of a register in memory."""

    name: str
    kind: Kind
    state: State
    expires_unix_s: float
    facts: Mapping[str, object]
    provider_id: str = ""


class MemoryRegister:
    """A register for runs without a database. Its content is lost when the process ends."""

    def __init__(self) -> None:
        self.entries: dict[str, RegisterEntry] = {}

    def intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
        entry = self.entries.get(name)
        if entry is None or entry.state in ("gone", "lost"):
            self.entries[name] = RegisterEntry(name, kind, "intended", expires_unix_s, dict(facts))

    def made(self, name: str, provider_id: str) -> None:
        entry = self.entries[name]
        if entry.state == "intended":
            self.entries[name] = replace(entry, state="standing", provider_id=provider_id)

    def renew(self, name: str, expires_unix_s: float) -> None:
        entry = self.entries[name]
        if entry.state in ("intended", "standing"):
            self.entries[name] = replace(entry, expires_unix_s=expires_unix_s)

    def ending(self, name: str) -> None:
        entry = self.entries[name]
        if entry.state in ("intended", "standing"):
            self.entries[name] = replace(entry, state="ending")

    def gone(self, name: str) -> None:
        self.entries[name] = replace(self.entries[name], state="gone")

    def alive(self) -> list[RegisterEntry]:
        """Return what may exist now."""
        return [entry for entry in self.entries.values() if entry.state not in ("gone", "lost")]
