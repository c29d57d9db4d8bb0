"""A job's actors in a Ray cluster: requested for calls, used once their process has answered, shared with other jobs.

Ray gives an actor its cores when a machine has them free, which may be never. Until then it is only a request: calls go
to actors that have answered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloud.failures import Failure
from cloud.formatting import plural
from cloud.platforms.ray.actor_table import ActorTable, read_actor_table
from cloud.platforms.ray.core_sharing import JobCores, may_wait, must_hand_back
from cloud.platforms.ray.driver import RayActor

_LOOK_EVERY_S = 1.0
_HAND_BACK_EVERY_S = 5.0
"""An actor that is returned shows in the other job's cores only after some seconds."""
_IDLE_S = 30.0
_FAILED_STARTS = 3


@dataclass
class _Member:
    """`began_s`: when it was first seen with a core."""

    handle: Any
    began_s: float | None = None
    answered: bool = False


class ActorPool:
    """At most `most` actors, or as many as the cluster has cores for. Used by the platform's thread only.

    `started` is called in any thread with an actor's id and a future, when its process has answered or cannot.
    """

    def __init__(
        self,
        ray: Any,
        *,
        cores_each: float,
        most: int | None,
        start_cap_s: float,
        started: Callable[[str, Any], None],
        now_s: Callable[[], float],
    ) -> None:
        self._ray = ray
        self._each = cores_each
        self._most = most
        self._start_cap_s = start_cap_s
        self._started = started
        self._now_s = now_s
        self._class = ray.remote(num_cpus=cores_each, max_restarts=0, max_task_retries=0)(RayActor)
        self._job: str = ray.get_runtime_context().get_job_id()
        self._members: dict[str, _Member] = {}
        # Since when each is idle; the last one is the one that worked last.
        self._idle: dict[str, float] = {}
        self._others: list[JobCores] = []
        self._calls = 0
        # The most of the time since the last look, and of the time between the last two.
        self._most_calls = self._most_calls_before = 0
        self._failed_starts = 0
        self._must_hand_back = False
        self._handed_back_s = float("-inf")
        self._table = ActorTable((), ())
        self._next_look_s = 0.0
        self.look()

    @property
    def most(self) -> int:
        return self._most or max(1, sum(int(cores / self._each) for cores in self._table.machines))

    @property
    def with_core(self) -> int:
        """How many actors have a core."""
        return sum(member.began_s is not None for member in self._members.values())

    def request(self, calls: int) -> None:
        """Have an actor for each of these calls, as far as the cluster and its other jobs allow."""
        self._calls = min(calls, self.most)
        self._most_calls = max(self._most_calls, self._calls)
        while len(self._members) < self._calls and may_wait(self._mine, self._others):
            handle = self._class.remote(max(1, int(self._each)))
            actor = handle._actor_id.hex()
            self._members[actor] = _Member(handle)
            handle.ready.remote().future().add_done_callback(
                lambda future, actor=actor: self._started(actor, future)
            )

    def take(self) -> str | None:
        """Return an idle actor, the one that worked last; None if there is none. It is busy from now on."""
        return self._idle.popitem()[0] if self._idle else None

    def handle(self, actor: str) -> Any:
        return self._members[actor].handle

    def put_back(self, actor: str) -> None:
        """Take a busy actor back after its call: it is idle, or its cores go to another job."""
        if self._must_hand_back:
            self._hand_back(actor)
        else:
            self._idle[actor] = self._now_s()

    def end(self, actor: str) -> None:
        """End the actor's process, whatever it does, and give its cores back."""
        self._idle.pop(actor, None)
        self._ray.kill(self._members.pop(actor).handle)

    def note_start(self, actor: str, future: Any) -> Failure | None:
        """Take an actor whose process has answered. Return why calls must fail if it could not and none will."""
        member = self._members.get(actor)
        if member is None:
            return None
        error = future.exception()
        if error is not None:
            return self._failed_start(actor, why_ended(error))
        self._failed_starts = 0
        member.began_s = self._now_s() if member.began_s is None else member.began_s
        member.answered = True
        self._idle[actor] = self._now_s()
        return None

    def look(self) -> Failure | None:
        """Follow what the cluster says of all actors, once a second. Return why calls must fail, if they must."""
        now_s = self._now_s()
        if now_s < self._next_look_s:
            return None
        self._next_look_s = now_s + _LOOK_EVERY_S
        self._most_calls_before, self._most_calls = self._most_calls, self._calls
        self._table = read_actor_table(self._ray, RayActor.__name__)
        self._others = [job_actors for job, job_actors in self._table.by_job().items() if job != self._job]
        with_core = self._table.with_core()
        failure = None
        for actor, member in list(self._members.items()):
            if actor in self._idle and actor not in with_core:
                # Its machine is gone. A busy one's call says so itself.
                self.end(actor)
            elif member.began_s is None and with_core.get(actor):
                member.began_s = now_s
            elif not member.answered and now_s - (member.began_s or now_s) > self._start_cap_s:
                words = (
                    f"an actor's process did not answer within {self._start_cap_s:g} s of getting its core"
                )
                failure = self._failed_start(actor, Failure("function_failed", words)) or failure
        self._share(now_s)
        return failure

    def throttling_reasons(self) -> str:
        """Return why not all wanted actors have a core, in whole sentences; empty if all have."""
        have, wanted = self.with_core, max(self._most_calls, self._most_calls_before)
        if have >= wanted:
            return ""
        cores = _cores(sum(self._table.machines))
        if not self._table.fits(self._each):
            why = (
                f"No machine of the cluster has the {_cores(self._each)} that one actor needs. Ask for fewer"
                " cores of an actor, or add such a machine."
            )
        elif any(other.held for other in self._others):
            why = f"Other jobs share the cluster's {cores}."
        else:
            why = f"The cluster's {cores} are in use."
        if have:
            return f"{have:,} of {wanted:,} actors have a core, so their calls take turns. {why}"
        none = f"None of {plural(wanted, 'actor')} has a core."
        return f"{none} {why} The job waits for one, and pays nothing until then."

    def close(self) -> None:
        for actor in list(self._members):
            self.end(actor)

    def _failed_start(self, actor: str, why: Failure) -> Failure | None:
        """Return the failure if it is not worth another try."""
        self.end(actor)
        self._failed_starts += 1
        return why if why.code == "bundle" or self._failed_starts >= _FAILED_STARTS else None

    @property
    def _mine(self) -> JobCores:
        waits = any(member.began_s is None for member in self._members.values())
        return JobCores(self._job, self._each, self.with_core * self._each, waits)

    def _share(self, now_s: float) -> None:
        """Return what other jobs that wait should have."""
        if not may_wait(self._mine, self._others):
            for actor in [started for started, member in self._members.items() if member.began_s is None]:
                self.end(actor)
        if any(other.waits for other in self._others):
            long_idle = [actor for actor, since_s in self._idle.items() if now_s - since_s > _IDLE_S]
            for actor in long_idle[: self.with_core - 1]:
                self.end(actor)
        due = now_s - self._handed_back_s >= _HAND_BACK_EVERY_S
        self._must_hand_back = due and must_hand_back(self._mine, self._others)
        if self._must_hand_back and self._idle:
            self._hand_back(next(iter(self._idle)))

    def _hand_back(self, actor: str) -> None:
        self.end(actor)
        self._must_hand_back, self._handed_back_s = False, self._now_s()


def why_ended(error: BaseException) -> Failure:
    """Return why an actor's process ended before it answered, from what Ray says."""
    text = str(error).strip()
    if "ModuleNotFoundError" in text or "ImportError" in text:
        words = "the cluster's machines cannot import Starling; put this version of it on their PYTHONPATH"
        return Failure("bundle", f"{words}: {text.splitlines()[-1][:300]}")
    first = text.splitlines()[0][:300] if text else type(error).__name__
    return Failure("function_failed", f"the actor's process ended before it answered: {first}")


def _cores(count: float) -> str:
    return f"{count:g} {'core' if count == 1 else 'cores'}"
