"""Calls that actors fetch: `PulledCalls` is the platform behind containers and machines that pull.

The platform that composes it decides who the pullers are, where they run and what they cost.
"""

from __future__ import annotations

import queue
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cloud import failures
from cloud.actor import answers, wire
from cloud.actor.blobs import BlobShelf, MissingWeights
from cloud.actor.protocol import WEIGHTS
from cloud.failures import Failure
from cloud.platforms.outcomes import Learner, call_outcome, learner_outcome, read_answer
from cloud.workers.execution import Deliver, Execution
from cloud.workers.learner_thread import LearnerThread
from training.engine.messages import BlobRef, Call, Outcome
from training.engine.ports import Mailbox, Offer, OfferEnd, Puller
from training.functions.body import Result
from training.rl import packages

# For sending an answer, after the call's own deadline.
_SENDING_S = 120.0


@dataclass(frozen=True)
class Patience:
    """Time limits. `stay_s` is how long pullers may live without this process: their dead-man timer.

    A call that no puller has begun `begin_s` after its submission is given up. A call without a heartbeat for
    `lease_s` goes to another puller.
    """

    begin_s: float = 600.0
    lease_s: float = 20.0
    stay_s: float = 120.0
    most_starts: int = 3


@dataclass(frozen=True)
class ReachableMailbox:
    """A mailbox, and how pullers reach it: the gateway's address (https, or http on this machine) and a token.

    `new_token` returns a token that opens only this mailbox and ends with it. It is not stored: call it once a puller.
    A puller runs as `python -m cloud.actor.puller --gateway ADDRESS`, with the token in the variable
    STARLING_RUN_TOKEN or in a file named by --token-file.
    """

    mailbox: Mailbox
    address: str
    new_token: Callable[[], str]


@dataclass(frozen=True)
class _Flight:
    call: Call
    submitted_s: float
    give_up_s: float


class PulledCalls:
    """Implements `training.engine.ports.Platform` over a mailbox; the learner's calls run in a thread here.

    The composing platform calls `next` as the engine does, and may call `pullers` and `dismiss` in between. `starts`
    counts all executions that were begun, also those of lost pullers. Closing it closes the mailbox too.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        patience: Patience | None = None,
        *,
        learner: Callable[[Deliver], Learner] = LearnerThread,
    ) -> None:
        self._mailbox = mailbox
        self._patience = patience or Patience()
        self._run = secrets.token_hex(16)
        self._shelf = BlobShelf()
        self._held: deque[str] = deque()
        self._flights: dict[str, _Flight] = {}
        self._unsent: list[Call] = []
        self._ended: deque[Outcome] = deque()
        self._arrived: deque[OfferEnd] = deque()
        self._learned: queue.SimpleQueue[Execution] = queue.SimpleQueue()
        self._make_learner = learner
        self._learner_made: Learner | None = None
        self._closed = False
        self.starts = 0
        mailbox.stay(self._patience.stay_s)
        self._stayed_s = self.now_s()

    @property
    def waiting(self) -> int:
        """The number of calls for actors that have no outcome yet."""
        return sum(flight.call.where == "actor" for flight in self._flights.values())

    def publish(self, version: int, blob: bytes) -> BlobRef:
        ref = self._shelf.publish(version, blob, (flight.call for flight in self._flights.values()))
        if not self._closed and ref.sha256 not in self._held:
            self._mailbox.publish(ref.sha256, blob)
            self._held.append(ref.sha256)
            self._drop_old()
        return ref

    def submit(self, call: Call) -> None:
        """Accept a call. Calls for actors are offered together at the next `next`."""
        now_s, patience = self.now_s(), self._patience
        longest_s = patience.most_starts * (call.deadline_s + _SENDING_S + patience.lease_s)
        self._flights[call.id] = _Flight(call, now_s, now_s + patience.begin_s + longest_s)
        if self._closed:
            self._end(call.id, Failure("closed", "the platform is closed"))
            return
        try:
            weights = self._shelf.weights_of(call)
        except MissingWeights as error:
            self._end(call.id, Failure("weights", str(error)))
            return
        if call.where == "learner":
            self._learner.submit(call, weights, call.deadline_s)
        else:
            self._unsent.append(call)

    def next(self, timeout_s: float) -> Outcome | None:
        end_s = self.now_s() + timeout_s
        while self._flights:
            self._tend()
            if (outcome := self._landed()) is not None:
                return outcome
            now_s = self.now_s()
            if now_s >= end_s:
                return None
            wait_s = min(end_s - now_s, self._learner.seconds_to_limit(), self._patience.stay_s / 4)
            self._arrived.extend(self._mailbox.take(wait_s))
        return None

    def cancel(self, call_id: str) -> None:
        flight = self._flights.get(call_id)
        if flight is None or self._closed:
            return
        if flight.call.where == "learner":
            self._learner.cancel(call_id)
        else:
            self._unsent = [call for call in self._unsent if call.id != call_id]
            self._mailbox.withdraw([call_id])
            self._end(call_id, failures.CANCELLED)

    def pullers(self) -> list[Puller]:
        return self._mailbox.pullers()

    def dismiss(self, names: Sequence[str]) -> None:
        self._mailbox.dismiss(names)

    def now_s(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._mailbox.close()
        if self._learner_made is not None:
            self._learner_made.close()
        self._flights.clear()
        self._unsent.clear()
        self._ended.clear()

    @property
    def _learner(self) -> Learner:
        """Created at its first use: it begins with seconds of imports, and calls must go out before."""
        if self._learner_made is None:
            self._learner_made = self._make_learner(self._deliver)
        return self._learner_made

    def _deliver(self, execution: Execution) -> None:
        self._learned.put(execution)
        self._mailbox.wake()

    def _tend(self) -> None:
        """Offer new calls, renew the pullers' time, and give up calls that are too late."""
        if self._unsent:
            batch, self._unsent = self._unsent, []
            self._mailbox.offer([self._offer(call) for call in batch])
        now_s = self.now_s()
        if now_s - self._stayed_s >= self._patience.stay_s / 4:
            self._mailbox.stay(self._patience.stay_s)
            self._stayed_s = now_s
        self._learner.enforce_limit()
        actors = [flight for flight in self._flights.values() if flight.call.where == "actor"]
        for late in [actor.call.id for actor in actors if actor.give_up_s <= now_s]:
            self._mailbox.withdraw([late])
            self._end(late, Failure("lost", "no answer came in time; it was given up"))

    def _offer(self, call: Call) -> Offer:
        begin_by_unix_s = time.time() + self._patience.begin_s
        request = wire.ActorRequest(
            run=self._run,
            call=call,
            not_after_unix_s=begin_by_unix_s,
            weights_url=None if call.weights is None else f"{WEIGHTS}{call.weights.sha256}",
            packages=packages.enabled(),
        )
        return Offer(
            call_id=call.id,
            request=wire.pack_request(request),
            begin_by_unix_s=begin_by_unix_s,
            lease_s=self._patience.lease_s,
            most_s=call.deadline_s + _SENDING_S,
            most_bytes=answers.limit_bytes(call),
            most_starts=self._patience.most_starts,
        )

    def _landed(self) -> Outcome | None:
        """Return the next outcome, if any. An answer to a call that has its outcome already is discarded."""
        while self._ended:
            outcome = self._ended.popleft()
            if self._flights.pop(outcome.call_id, None) is not None:
                return outcome
        while not self._learned.empty():
            execution = self._learned.get()
            if flight := self._flights.pop(execution.call_id, None):
                return learner_outcome(flight.call, flight.submitted_s, execution)
        while self._arrived:
            delivery = self._arrived.popleft()
            self.starts += delivery.starts
            if flight := self._flights.pop(delivery.call_id, None):
                return self._outcome(flight, delivery)
        return None

    def _outcome(self, flight: _Flight, delivery: OfferEnd) -> Outcome:
        landed_s = self.now_s()
        total_s = landed_s - flight.submitted_s
        answer, result = self._read(flight.call, delivery)
        # The mailbox may have another clock, so only differences of its times are used.
        waited_s = max(0.0, delivery.leased_unix_s - delivery.offered_unix_s) if delivery.starts else total_s
        startup_s = min(waited_s, total_s)
        run_s = min(answer.run_s if answer is not None else 0.0, total_s - startup_s)
        done = isinstance(result, Result)
        return call_outcome(
            flight.call,
            flight.submitted_s,
            landed_s,
            result,
            cold_start=done and answer is not None and answer.calls_before == 0,
            startup_s=startup_s,
            run_s=run_s,
            transfer_s=total_s - startup_s - run_s,
            billed_s=run_s if answer is not None or not delivery.starts else None,
        )

    def _read(self, call: Call, delivery: OfferEnd) -> tuple[wire.ActorAnswer | None, Result | Failure]:
        if delivery.answer is None:
            return None, self._why_not(delivery)
        return read_answer(call, self._run, delivery.answer)

    def _why_not(self, delivery: OfferEnd) -> Failure:
        if delivery.starts:
            times = "once" if delivery.starts == 1 else f"{delivery.starts} times"
            return Failure("lost", f"it was begun {times}, and no actor sent an answer")
        words = f"no actor fetched it within {self._patience.begin_s:.0f} s; are there any?"
        return Failure("not_begun", words)

    def _end(self, call_id: str, why: Failure) -> None:
        """Add the outcome of a call that was not delivered. A later delivery is discarded."""
        flight, now_s = self._flights[call_id], self.now_s()
        total_s = now_s - flight.submitted_s
        self._ended.append(
            call_outcome(flight.call, flight.submitted_s, now_s, why, startup_s=total_s, billed_s=0.0)
        )

    def _drop_old(self) -> None:
        """Drop what the shelf holds no more."""
        old = [sha256 for sha256 in self._held if sha256 not in self._shelf]
        if old:
            self._mailbox.drop(old)
            self._held = deque(sha256 for sha256 in self._held if sha256 not in old)
