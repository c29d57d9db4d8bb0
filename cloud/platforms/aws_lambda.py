"""AWS Lambda as a platform: one invocation a call, many at once from one process, billed by the provider's lines."""

from __future__ import annotations

import queue
import random
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import ClassVar, Literal

from cloud.accounts.connections import AwsClients, AwsConnection
from cloud.accounts.register import Holder, holder_in_memory
from cloud.actor.blobs import MissingWeights
from cloud.failures import Failure
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.price_parts import functions, provisioned_capacity
from cloud.money.pricing import Tariff
from cloud.platforms.aws.concurrency_limit import AccountLimits, ConcurrencyLimit
from cloud.platforms.aws.flight import FunctionReply, InvokedCall, outcome_of
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws.invoke import Reply
from cloud.platforms.aws.invoker import Invoker
from cloud.platforms.aws.provisioned import ProvisionedConcurrency
from cloud.platforms.aws.thread_pool import ThreadPool
from cloud.platforms.aws.weights import AwsWeights
from cloud.platforms.model import Access, Cloud, PlatformModel
from cloud.platforms.outcomes import Learner, learner_outcome
from cloud.platforms.own_machines import LearnerPrice, rents
from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.quantity import Quantity, with_values
from cloud.workers.execution import Deliver, Execution
from cloud.workers.learner_thread import LearnerThread
from training.base_model import setting
from training.engine.messages import BlobRef, Call, Outcome
from training.tasks.training import Training

_READ_MARGIN_S = 30.0
_GIVE_UP_MARGIN_S = 20.0
_CANCEL_PATIENCE_S = 10.0
_LOOK_EVERY_S = 0.5
_THROTTLE_PATIENCE_S = 120.0
_BACKOFF_S = (0.1, 5.0)
_THROTTLED_FOR_S = 10.0
_MOST_THREADS = 4000


class LambdaOptions(PlatformModel):
    """AWS Lambda in an account of yours: functions sample, the learner runs here."""

    kind: Literal["aws_lambda"] = "aws_lambda"
    connection: str = setting("", "Connection", "The AWS account to run in.", own=True)
    region: str = setting(
        "us-east-1",
        "Region",
        "That of the connection.",
        pattern=r"^[a-z]{2}(-[a-z]+)+-\d$",
        follows="connection",
    )
    at_once: int | None = setting(
        None,
        "Functions at once",
        "At most so many; empty means as many as the account allows.",
        ge=1,
        le=_MOST_THREADS,
        advanced=True,
    )
    provisioned: int = setting(
        0,
        "Functions kept ready",
        "They start at once, and are paid while they are kept, busy or not.",
        ge=0,
        le=1000,
        advanced=True,
    )
    memory_ladder_mb: tuple[int, ...] = setting(
        (),
        "Sizes of functions",
        "Those that are set up: a policy may choose among them.",
        max_length=40,
        exclude_if=lambda value: not value,
        follows="connection",
    )
    start_cap_s: float = setting(
        30.0,
        "Longest start",
        "A call that has not begun by then is not run. Counts into the worst case.",
        ge=5.0,
        le=120.0,
        unit="s",
        own=True,
        advanced=True,
    )
    function_timeout_s: int = setting(900, "Limit of a function", ge=3, le=900, unit="s", advanced=True)
    learner_usd_per_hour: LearnerPrice = Decimal(0)

    place: ClassVar[str] = "AWS Lambda"
    report_name: ClassVar[str] = "AWS"
    cloud: ClassVar[Cloud | None] = "aws"
    actors_have_torch: ClassVar[bool] = False
    actors_have_packages: ClassVar[bool] = False
    actor_word: ClassVar[str] = "function"

    @property
    def subject(self) -> str:
        return "functions"

    @property
    def has_functions(self) -> bool:
        return True

    @property
    def alike(self) -> SimulatedOptions:
        return SimulatedOptions(provisioned=self.provisioned)

    @property
    def longest_start_s(self) -> float:
        return self.start_cap_s  # the learner is local, and its start is short compared with functions'

    def forecast_profile(self, training: Training) -> Profile:
        """Return Lambda for a job that may use fewer functions at once than the account allows."""

        def value_of(path: tuple[str, ...], quantity: Quantity) -> float:
            fewer = self.at_once is not None and path == ("actors", "concurrent")
            return min(quantity.value, self.at_once or 0) if fewer else quantity.value

        return with_values(profiles.load(self.alike.profile), value_of)

    def memory_sizes_mb(self, requested_mb: int) -> Sequence[int]:
        """The sizes that are set up, if nothing is kept ready: an instance that is kept ready has one size."""
        return (requested_mb,) if self.provisioned else sorted({*self.memory_ladder_mb, requested_mb})

    def open(self, connection: AwsConnection, holder: Holder | None = None) -> LambdaPlatform:
        return LambdaPlatform(self, replace(connection, region=self.region).open(), holder=holder)

    def open_for_job(self, access: Access) -> LambdaPlatform:
        return self.open(access.connection(self.connection, AwsConnection), access.hold(self.connection))

    def tariff(self, book: PriceBook, memory_mb: int) -> Tariff:
        """Return the prices. Raises UnknownSku if the book has none for the region."""
        prices = [*rents(learner=self.learner_usd_per_hour)]
        if self.provisioned:
            prices.append(provisioned_capacity(book, self.region, memory_mb, self.provisioned))
        actor = functions(book, self.region, self.start_cap_s, provisioned=self.provisioned > 0)
        return Tariff(actor=actor, rents=tuple(prices))


class LambdaPlatform:
    """Implements `training.engine.ports.Platform`. Its clock is this machine's; the learner's calls run in a thread
    here.

    A function cannot be stopped from outside. If its call is cancelled or given up, it ends by itself at its deadline.
    The outcome of a cancelled call waits a little for its cost, and is returned without it after that.
    """

    def __init__(
        self,
        options: LambdaOptions,
        clients: AwsClients,
        *,
        holder: Holder | None = None,
        learner: Callable[[Deliver], Learner] = LearnerThread,
    ) -> None:
        self._options = options
        connection = clients.connection
        self._prefix = connection.prefix
        self._run = secrets.token_hex(16)
        self.limits = AccountLimits.of(clients.client("lambda"))
        most = min(self.limits.unreserved, options.at_once or _MOST_THREADS, _MOST_THREADS)
        self._limit = ConcurrencyLimit(most)
        # One try: retries of the SDK could run a call twice unnoticed.
        self._client = clients.client(
            "lambda",
            tries=1,
            connections=self._limit.most,
            read_timeout_s=options.function_timeout_s + _READ_MARGIN_S,
        )
        s3 = clients.client("s3") if connection.bucket else None
        self._weights = AwsWeights(s3, connection.bucket, f"{self._prefix}/weights/{self._run}")
        self._provisioned = ProvisionedConcurrency(
            clients.client("lambda"), options.provisioned, holder or holder_in_memory()
        )
        self._invoker = Invoker(
            self._client, self._weights, self._provisioned, self._prefix, self._run, options.start_cap_s
        )
        self._finished: queue.SimpleQueue[FunctionReply | Execution] = queue.SimpleQueue()
        self._threads: ThreadPool[InvokedCall] = ThreadPool(self._limit.most, self._fly)
        self._make_learner = learner
        self._learner_made: Learner | None = None
        self._flights: dict[str, InvokedCall] = {}
        self._lock = threading.Lock()
        self._next_look_s = 0.0
        self._closing = threading.Event()
        self._throttled = ("", float("-inf"))

    @property
    def _learner(self) -> Learner:
        """Created at its first use: it begins with seconds of imports, and calls must go out before."""
        if self._learner_made is None:
            self._learner_made = self._make_learner(self._finished.put)
        return self._learner_made

    @property
    def at_once(self) -> int:
        """How many functions may run now."""
        return self._limit.allowed

    def throttling_reasons(self) -> str:
        """Implements `cloud.platforms.throttling.ReportsThrottling`: also what else AWS refuses that jobs can do
        without.
        """
        reasons = (
            self._why_calls_wait(),
            self._why_none_are_ready(),
            self._why_so_few_at_once(),
            self._weights.failure,
        )
        return " ".join(filter(None, reasons))

    def _why_so_few_at_once(self) -> str:
        why = self.limits.why_assumed
        return (
            f"The account's limit is not known, so {self.limits.unreserved} are assumed. {why}" if why else ""
        )

    def _why_none_are_ready(self) -> str:
        failure = self._provisioned.failure.rstrip(".")
        return f"{failure[:1].upper()}{failure[1:]}. Calls run on ordinary instances." if failure else ""

    def _why_calls_wait(self) -> str:
        reason, noted_s = self._throttled
        waiting = sum(flight.state == "waiting" for flight in self._flights.values())
        if not waiting or self.now_s() - noted_s > _THROTTLED_FOR_S:
            return ""
        wait = "call waits" if waiting == 1 else "calls wait"
        return (
            f"{reason}. {waiting:,} {wait}; at most {self.at_once:,} are sent at once until AWS accepts more."
        )

    def publish(self, version: int, blob: bytes) -> BlobRef:
        return self._weights.publish(version, blob, (flight.call for flight in self._flights.values()))

    def submit(self, call: Call) -> None:
        flight = self._flights[call.id] = InvokedCall(call, self.now_s())
        if self._closing.is_set():
            self._land(flight, Reply(failure=Failure("closed", "the platform is closed"), ran=False))
        elif call.where == "learner":
            try:
                self._learner.submit(call, self._weights.bytes_of(call), call.deadline_s)
            except MissingWeights as error:
                self._land(flight, Reply(failure=Failure("weights", str(error)), ran=False))
        else:
            self._provisioned.begin(function_name(self._prefix, call.memory_mb))
            self._threads.submit(flight)

    def next(self, timeout_s: float) -> Outcome | None:
        end_s = self.now_s() + timeout_s
        self._provisioned.renew()
        while self._flights:
            self._learner.enforce_limit()
            self._give_up()
            now_s = self.now_s()
            wait_s = min(end_s - now_s, self._learner.seconds_to_limit(), self._next_look_s - now_s)
            try:
                finished = self._finished.get(timeout=min(max(0.0, wait_s), threading.TIMEOUT_MAX))
            except queue.Empty:
                if self.now_s() >= end_s:
                    return None
                continue
            # A call that was given up may still be answered; its outcome has been returned.
            flight = self._flights.pop(finished.call_id, None)
            if flight is not None:
                if isinstance(finished, Execution):
                    return learner_outcome(flight.call, flight.submitted_s, finished)
                return outcome_of(flight, finished)
        return None

    def cancel(self, call_id: str) -> None:
        flight = self._flights.get(call_id)
        if flight is None or self._closing.is_set():
            return
        if flight.call.where == "learner":
            self._learner.cancel(call_id)
            return
        with self._lock:
            flight.cancelled = True
            unsent = flight.state == "waiting"
            if unsent:
                flight.state = "over"
            elif flight.state == "out":
                flight.give_up_s = self.now_s() + _CANCEL_PATIENCE_S
        if unsent:
            self._land(flight, Reply(ran=False))

    def now_s(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """Send nothing more and delete provisioned instances. Running functions end at their own deadlines."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._limit.close()
        self._threads.close()
        if self._learner_made is not None:
            self._learner_made.close()
        self._flights.clear()
        self._provisioned.close()
        self._weights.close()
        self._client.close()

    # These run in the thread pool.

    def _fly(self, flight: InvokedCall) -> None:
        """Invoke the function until it has run or certainly will not."""
        patience_s: float | None = None
        while self._limit.enter():
            if not self._mark_sent(flight):
                self._limit.leave(throttled=False)
                return
            try:
                landed = self._invoker.invoke(flight.call)
            except Exception as error:
                words = f"{type(error).__name__}: {error}"
                landed = FunctionReply(
                    flight.call.id, Reply(), self.now_s(), None, Failure("function_failed", words)
                )
            again = landed.reply.again
            self._limit.leave(throttled=again)
            if again and landed.reply.failure is not None:
                self._throttled = (landed.reply.failure.reason, self.now_s())
            if patience_s is None:
                patience_s = self.now_s() + _THROTTLE_PATIENCE_S
            if not again or self.now_s() > patience_s or not self._mark_waiting(flight):
                self._finished.put(landed)
                return
            least_s, most_s = _BACKOFF_S
            if self._closing.wait(random.uniform(least_s, min(most_s, least_s * 2**flight.attempts))):
                return

    def _mark_sent(self, flight: InvokedCall) -> bool:
        """Return False if its outcome has been returned already."""
        with self._lock:
            if flight.state == "over":
                return False
            now_s = self.now_s()
            flight.state, flight.sent_s = "out", now_s
            flight.attempts += 1
            flight.give_up_s = now_s + self._options.start_cap_s + flight.call.deadline_s + _GIVE_UP_MARGIN_S
            return True

    def _mark_waiting(self, flight: InvokedCall) -> bool:
        """Mark a call that did not run as waiting. Return False if it was cancelled meanwhile."""
        with self._lock:
            flight.state, flight.give_up_s = "waiting", None
            return not flight.cancelled

    # These run in the caller's thread.

    def _land(self, flight: InvokedCall, reply: Reply) -> None:
        why = reply.failure or Failure("cancelled", "cancelled")
        self._finished.put(FunctionReply(flight.call.id, reply, self.now_s(), None, why))

    def _give_up(self) -> None:
        """End calls that have not answered for too long. Their cost is not known."""
        now_s = self.now_s()
        if now_s < self._next_look_s:
            return
        # Not at every outcome: looking at a thousand flights takes as long as everything else.
        self._next_look_s = now_s + _LOOK_EVERY_S
        with self._lock:
            late = [
                one for one in self._flights.values() if one.give_up_s is not None and one.give_up_s <= now_s
            ]
            for flight in late:
                flight.state, flight.give_up_s = "over", None
        for flight in late:
            words = f"no answer came for {now_s - flight.sent_s:.0f} s; its cost is not known yet"
            why = Failure("function_failed", words)
            self._finished.put(FunctionReply(flight.call.id, Reply(failure=why), now_s, None, why))
