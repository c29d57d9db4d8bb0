"""What is sent or stored: calls, outcomes, usage, reports and events.

All are frozen pydantic models. Units are in the names; money is a whole number of picodollars.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny, ValidationError

from training.engine.reports import AnyEvaluationFigures, Message, RoundReport, Usage, WithFigures

FaultCode = Literal[
    # of the call itself
    "error",
    "numbers",
    "memory",
    "deadline",
    "request_too_large",
    "result_too_large",
    "weights",
    # of its place: the function, its account, the worker or machine
    "function_failed",
    "function_missing",
    "bundle",
    "credentials",
    "cloud_refused",
    "no_actors",
    "worker_start",
    "worker_died",
    "expired",
    "not_begun",
    "lost",
    # no one wants it any more, or it is not paid
    "cancelled",
    "closed",
    "budget",
]
"""Why a call gave no result, as our own code names it. Actors of other versions may send other codes. "numbers": a
gradient or a loss was not finite. "memory": its process may not have as much as it needs.
"""
FAULTS_OF_THE_PLATFORM: frozenset[FaultCode] = frozenset(
    {
        "function_failed",
        "deadline",
        "expired",
        "weights",
        "credentials",
        "function_missing",
        "bundle",
        "no_actors",
        "request_too_large",
        "result_too_large",
        "cloud_refused",
    }
)
"""They need not happen elsewhere. Any other is the body's own and happens anywhere."""
FAULTS_THAT_END_A_RUN: frozenset[FaultCode] = frozenset({"credentials", "function_missing", "bundle"})
"""No later call can succeed until a person acts, so the run is "failing", with the platform's message."""
FAULTS_NOT_RETRIED: frozenset[FaultCode] = frozenset(
    {"numbers", "memory", "request_too_large", "result_too_large", "cloud_refused"}
)
"""The same call would fail in the same way again, and might be paid for again."""
Status = Literal["done", "failed", "refused", "cancelled"]


class BlobRef(Message):
    """A reference to bytes that a platform stores: one published version of the policy."""

    version: int
    sha256: str
    byte_count: int


class CallRequest(Message):
    """What a call asks for. Each kind has its own model, which fixes `kind`, and by which it is read."""

    models: ClassVar[dict[str, type[CallRequest]]] = {}
    kind: str

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.models[cls.model_fields["kind"].default] = cls


def _of_its_kind(value: Any) -> Any:
    """Return a request as the model of its kind. Raises ValueError if it is none of ours."""
    if not isinstance(value, dict):
        return value
    model = CallRequest.models.get(str(value.get("kind")))
    if model is None:
        raise ValueError(f"no kind of call is named {str(value.get('kind'))[:40]!r}")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


class Call(Message):
    """One function invocation. A retry is a new call with the next attempt and the same seed and state.

    Excluded fields are for the records and are not sent to the function. `after` names the tasks (a call with its
    retries) whose outcomes this call depends on; it was submitted at the moment when the last of them landed.
    `decision_macs` and `decision_s` describe the decision how many actors the round gets, and come with its update:
    the multiplications of the network that decided, and the decision's time by the platform's clock.
    """

    id: str
    request: Annotated[SerializeAsAny[CallRequest], BeforeValidator(_of_its_kind)]
    where: Literal["actor", "learner"]
    round_no: int
    attempt: int = 1
    seed: int
    deadline_s: float
    memory_mb: int
    weights: BlobRef | None = None
    slot_state: bytes | None = None
    inputs: tuple[bytes, ...] = ()
    after: tuple[str, ...] = Field((), exclude=True)
    decision_macs: int = Field(0, exclude=True)
    decision_s: float = Field(0.0, exclude=True)

    @property
    def kind(self) -> str:
        return self.request.kind

    @property
    def slot(self) -> int | None:
        """The slot whose state the call continues. It runs fastest where the slot's last call ran."""
        return getattr(self.request, "slot", None)

    @property
    def name(self) -> str:
        """The name of the task: the part of the id that all attempts share."""
        return self.id.rsplit("-a", 1)[0]


class Outcome(Message):
    """The result of a call. Each submitted call gets exactly one, and never an exception."""

    call_id: str
    status: Status
    started_s: float
    finished_s: float
    usage: Usage = Usage()
    cost_picodollars: int | None = None
    payload: bytes = b""
    slot_state: bytes | None = None
    reason: str = ""
    reason_code: str = ""


# The engine's events, in order. Consumers may ignore ticks; all others should be stored.


class Started(Message):
    """`stepping` says who computes what is sampled; `notes` say what a user should know before the first round."""

    kind: Literal["started"] = "started"
    resumed_from_round: int | None = None
    stepping: str = ""
    notes: tuple[str, ...] = ()


class Tick(Message):
    """Nothing happened for a moment; the engine is alive and waits for `waiting_for`."""

    kind: Literal["tick"] = "tick"
    at_s: float
    calls_in_flight: int
    waiting_for: str


class CallFailed(Message):
    kind: Literal["call_failed"] = "call_failed"
    call_id: str
    call_kind: str
    round_no: int
    slot: int | None
    attempt: int
    reason: str
    reason_code: str
    will_retry: bool


class RoundFinished(Message):
    kind: Literal["round"] = "round"
    report: RoundReport


class Evaluated(WithFigures):
    """A version was judged. Its score is the first thing that the figures of its kind of training tell."""

    _figures_name = "evaluation_figures"
    _score_name = "return_mean"

    kind: Literal["evaluation"] = "evaluation"
    round_no: int
    total_progress: int = Field(alias="total_env_steps")
    at_s: float
    figures: AnyEvaluationFigures
    cost_picodollars: int

    @property
    def score(self) -> float:
        return self.figures.score


class CheckpointSaved(Message):
    kind: Literal["checkpoint"] = "checkpoint"
    round_no: int
    name: str
    sha256: str
    byte_count: int
    best: bool = False
    left_out: int = 0
    """Contributions that wait and are not in it, as they have too many bytes together."""


StopCode = Literal[
    "target", "rounds", "steps", "minutes", "no_progress", "budget", "cancelled", "paused", "failing"
]
"""Why a run ended. webapp/jobs/reasons.py has the state of a job for each."""
OWN_ENDS: frozenset[StopCode] = frozenset({"target", "rounds", "steps", "minutes", "no_progress"})
"""Ends by the run's own stop rule."""
FAILED_ENDS: frozenset[StopCode] = frozenset({"failing"})
"""Ends because the run cannot go on."""


class Stopped(Message):
    """The last event of every run, with the figures that a user wants to know first.

    Both scores are of the run's own kind: the newest evaluation's, and what training itself showed last.
    """

    kind: Literal["stopped"] = "stopped"
    reason_code: StopCode
    reason: str
    rounds: int
    progress: int = Field(alias="env_steps")
    platform_s: float
    evaluated_score: float | None = Field(alias="evaluation_return_mean")
    training_score: float | None = Field(alias="episode_return_mean")
    cost_picodollars: int


Event = Annotated[
    Started | Tick | CallFailed | RoundFinished | Evaluated | CheckpointSaved | Stopped,
    Field(discriminator="kind"),
]
