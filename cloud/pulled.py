"""Calls that actors come and fetch: `PulledCalls` is the platform behind containers and machines that pull.

Who the pullers are, where they stand and what they cost is the business of the platform that composes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cloud.aws_flight import Learner
from cloud.execution import Deliver
from cloud.learner_thread import LearnerThread
from training.messages import BlobRef, Call, Outcome
from training.ports import Mailbox, Puller


@dataclass(frozen=True)
class Patience:
    """How long things may take. `stay_s` is what pullers may live on without this process: their dead-man time.

    A call that nobody has begun `begin_s` after its submission is given up; one that was begun and of which nothing is
    heard goes to another puller after `lease_s`.
    """

    begin_s: float = 600.0
    lease_s: float = 20.0
    stay_s: float = 120.0
    most_starts: int = 3


@dataclass(frozen=True)
class Reached:
    """A mailbox, and how pullers reach it: the gateway's address (https, or http on this machine) and a token.

    `new_token` gives one that opens this mailbox only and ends with it; it is kept nowhere, so ask for as many as are
    needed. A puller runs as `python -m cloud.actor.puller --gateway ADDRESS`, with the token in the environment as
    STARLING_RUN_TOKEN or in a file named by --token-file.
    """

    mailbox: Mailbox
    address: str
    new_token: Callable[[], str]


class PulledCalls:
    """Implements `training.ports.Platform` over a mailbox; the learner's calls run in a thread here.

    The composer calls `next` as the engine does, and may look at `pullers` and `dismiss` in between. `starts` counts
    the executions that were begun, those of lost pullers included. Closing closes the mailbox too.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        patience: Patience | None = None,
        *,
        learner: Callable[[Deliver], Learner] = LearnerThread,
    ) -> None:
        raise NotImplementedError

    @property
    def waiting(self) -> int:
        """Calls for actors that have no outcome yet: what one would want pullers for."""
        raise NotImplementedError

    def publish(self, version: int, blob: bytes) -> BlobRef:
        raise NotImplementedError

    def submit(self, call: Call) -> None:
        raise NotImplementedError

    def next(self, timeout_s: float) -> Outcome | None:
        raise NotImplementedError

    def cancel(self, call_id: str) -> None:
        raise NotImplementedError

    def pullers(self) -> list[Puller]:
        raise NotImplementedError

    def dismiss(self, names: list[str]) -> None:
        raise NotImplementedError

    def now_s(self) -> float:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
