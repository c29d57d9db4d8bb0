"""What stands in somebody's account and would bill: written down before it is asked for, and found again by its name.

A platform that makes such a thing tells the register first. Whoever reconciles compares what the register believes
with what a finder sees (cloud.reconciling), so that nothing outlives the process that wanted it.
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
    """Whoever asks is no longer the one who may hold things for this run."""


class Taken(Exception):
    """A thing of that name is held by another run; the text says which."""


class Register(Protocol):
    """The things of one run in one account. Each method is durable when it returns; repeating one changes nothing.

    All but `gone` and `ending` raise RegisterClosed once somebody else has the run: ending what is one's own is always
    allowed.
    """

    def intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
        """About to ask the cloud for it. Must return before the request goes out. Raises Taken.

        `facts` say what it is, as far as its rent and words for people need it: `resource` names the Standing of the
        job's tariff that pays for it, or `actors` how many actors of the tariff's pool it holds.
        """

    def made(self, name: str, provider_id: str) -> None:
        """The cloud has said that it has it."""

    def renew(self, name: str, expires_unix_s: float) -> None:
        """It is wanted, and paid for, until then."""

    def ending(self, name: str) -> None:
        """About to ask the cloud to take it away. Must return before the request goes out."""

    def gone(self, name: str) -> None:
        """It was looked for and is not there any more, or it never came to be."""


class Creates(Protocol):
    """Counts what is asked of an account by all who ask there: clouds take only so many creates in some time."""

    def take(self, windows: Sequence[tuple[int, float]]) -> float:
        """0.0, and one is counted; or in how many seconds there is room.

        `windows`: at most so many in so many seconds, each.
        """


def wait_s(made_s: Sequence[float], windows: Sequence[tuple[int, float]], now_s: float) -> float:
    """In how many seconds one more may follow those made so far, which are in order."""
    full = [made_s[-most] + window_s - now_s for most, window_s in windows if len(made_s) >= most]
    return max(0.0, *full) if full else 0.0


@dataclass(frozen=True)
class Found:
    """A thing in the account that looks like ours, as the cloud tells it now.

    `deployment` is what its tags say of whose it is, `run` of what for; empty where they say nothing.
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
    """One account, looked at from outside any run. Both may raise whatever the cloud's SDK raises."""

    def found(self) -> Sequence[Found]:
        """All that bills there and looks like Starling's, whoever's it is. What has ended by itself is left out."""

    def end(self, found: Found) -> None:
        """Ask for it to be taken away. What is gone already is no error; that it is gone, a later look tells."""


def run_tag(job: str, epoch: int) -> str:
    """Which process of which job a thing was made for, as tags say it."""
    return f"{job}/e{epoch}"


def run_of(tag: str) -> tuple[str, int] | None:
    """The job and the epoch that `run_tag` wrote."""
    job, _, epoch = tag.rpartition("/e")
    return (job, int(epoch)) if job and epoch.isascii() and epoch.isdigit() else None


def tags(*, deployment: str, run: str, owner: str, expires_unix_s: float) -> dict[str, str]:
    """What everything that bills wears: whose it is, what for, and until when it may stand."""
    worn = {
        TAG_APP: _APP,
        TAG_DEPLOYMENT: deployment,
        TAG_RUN: run,
        TAG_OWNER: owner,
        TAG_EXPIRES: str(int(expires_unix_s)),
    }
    return {key: value[:_TAG_LETTERS] for key, value in worn.items()}


def is_ours(worn: Mapping[str, str]) -> bool:
    """Whether tags say that Starling made it, this installation or another one."""
    return worn.get(TAG_APP) == _APP


def expiry_in(worn: Mapping[str, str]) -> float | None:
    """Until when it may stand by its tags; None where they do not tell."""
    text = worn.get(TAG_EXPIRES, "")
    return float(text) if text.isascii() and text.isdigit() else None


def group_name(prefix: str, job: str, epoch: int, number: int) -> str:
    """The name of a run's n-th thing, the same whenever it is asked for: what clouds take, and no longer than that."""
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
    """On whose behalf a platform holds things: where they are registered, and what their tags say.

    `job` and `epoch` name the process that wants them, `deployment` the connection of the installation it runs for.
    `creates` is asked before each request for one.
    """

    register: Register
    deployment: str = ""
    job: str = ""
    epoch: int = 0
    owner: str = ""
    creates: Creates = field(default_factory=lambda: MemoryCreates())

    @property
    def run(self) -> str:
        return run_tag(self.job, self.epoch) if self.job else ""

    def tags(self, expires_unix_s: float) -> dict[str, str]:
        return tags(deployment=self.deployment, run=self.run, owner=self.owner, expires_unix_s=expires_unix_s)


def nobody() -> Holder:
    """For a run without a database: it holds things for itself."""
    return Holder(MemoryRegister())


class MemoryCreates:
    """Counts this process's own."""

    def __init__(self) -> None:
        self._made_s: deque[float] = deque(maxlen=1000)

    def take(self, windows: Sequence[tuple[int, float]]) -> float:
        now_s = time.monotonic()
        left_s = wait_s(self._made_s, windows, now_s)
        if not left_s:
            self._made_s.append(now_s)
        return left_s


@dataclass(frozen=True)
class Entry:
    """One row of a register in memory."""

    name: str
    kind: Kind
    state: State
    expires_unix_s: float
    facts: Mapping[str, object]
    provider_id: str = ""


class MemoryRegister:
    """A register for runs without a database. What it knows dies with the process."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}

    def intend(self, name: str, kind: Kind, expires_unix_s: float, facts: Mapping[str, object]) -> None:
        there = self.entries.get(name)
        if there is None or there.state in ("gone", "lost"):
            self.entries[name] = Entry(name, kind, "intended", expires_unix_s, dict(facts))

    def made(self, name: str, provider_id: str) -> None:
        there = self.entries[name]
        if there.state == "intended":
            self.entries[name] = replace(there, state="standing", provider_id=provider_id)

    def renew(self, name: str, expires_unix_s: float) -> None:
        there = self.entries[name]
        if there.state in ("intended", "standing"):
            self.entries[name] = replace(there, expires_unix_s=expires_unix_s)

    def ending(self, name: str) -> None:
        there = self.entries[name]
        if there.state in ("intended", "standing"):
            self.entries[name] = replace(there, state="ending")

    def gone(self, name: str) -> None:
        self.entries[name] = replace(self.entries[name], state="gone")

    def alive(self) -> list[Entry]:
        """What may stand now."""
        return [one for one in self.entries.values() if one.state not in ("gone", "lost")]
