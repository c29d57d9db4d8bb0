"""Measurements: the work of calls, the money of a job, updates and rounds.

All are frozen pydantic models. Units are in the names; money is a whole number of picodollars.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)


class Message(BaseModel):
    """Where a field has an alias, it is stored and sent under that, its first name, and read under both."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, serialize_by_alias=True)


class Usage(Message):
    """The work of a call, from which its time and price can be computed again, and what the provider measured.

    `macs` are the multiplications of one forward pass of one sample: of the policy for rollouts and evaluations, of
    policy and critic for updates. `pictures` says whether such a sample is one. `hessian_products` are of as many
    samples each as a minibatch had. `provisioned`: it ran on warm capacity that is paid for separately. `detours`:
    payloads too large for a request, which went by storage. Of a sampling call's `run_s`, `steps_s` is what stepped and
    `inference_s` the policy; the rest is reading weights and states and packing the samples.

    Of a call that learns from data, `fetch_s`, `compute_s` and `push_s` are what fetching its data, computing and
    handing over its result took. `processor_s` is processor time, `most_memory_mb` the most memory that it used. They
    are left out of what is stored where they were not measured.
    """

    steps: int = Field(0, alias="env_steps")
    inferences: int = 0
    trials: int = Field(0, alias="episodes")
    minibatches: int = 0
    samples: int = 0
    macs: int = 0
    pictures: bool = False
    hessian_products: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    cold_start: bool = False
    provisioned: bool = False
    detours: int = 0
    startup_s: float = 0.0
    run_s: float = 0.0
    steps_s: float = Field(0.0, alias="environment_s")
    inference_s: float = 0.0
    transfer_s: float = 0.0
    billed_s: float | None = None
    memory_mb: int = 0
    fetched_bytes: int = 0
    fetch_s: float = 0.0
    compute_s: float = 0.0
    push_s: float = 0.0
    processor_s: float = 0.0
    most_memory_mb: int = 0

    @model_serializer(mode="wrap")
    def _without_unmeasured_parts(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = handler(self)
        for name in _LATER_MEASURED:
            if not document.get(name, 1):
                del document[name]
        return document


_LATER_MEASURED = ("fetched_bytes", "fetch_s", "compute_s", "push_s", "processor_s", "most_memory_mb")
_LARGEST = ("macs", "memory_mb", "most_memory_mb")
_OF_ONE_CALL = ("cold_start", "provisioned", "detours")
_SUMMED = tuple(name for name in Usage.model_fields if name not in (*_LARGEST, *_OF_ONE_CALL, "pictures"))


def sum_usages(usages: Sequence[Usage]) -> Usage:
    """Return the work of several calls together. Times are summed too, as they are billed."""
    largest = {name: max((getattr(usage, name) for usage in usages), default=0) for name in _LARGEST}
    summed = {name: sum(getattr(usage, name) or 0 for usage in usages) for name in _SUMMED}
    return Usage(**largest, **summed, pictures=any(usage.pictures for usage in usages))


class Spend(Message):
    """The job's money when its ledger was last read. None where the platform is not metered.

    `accrued_picodollars` is rent of the time so far that is reserved but not booked yet: booked if the run ended now.
    """

    spent_picodollars: int
    reserved_picodollars: int
    limit_picodollars: int
    accrued_picodollars: int = Field(0, exclude_if=lambda value: value == 0)

    @property
    def by_now_picodollars(self) -> int:
        """What is spent, with rent that is not booked yet."""
        return self.spent_picodollars + self.accrued_picodollars


class Figures(Message):
    """What one kind of training reports beside what every kind reports.

    A kind's models have a field `training` that names it. Those of reinforcement learning, which was the first kind,
    have none.
    """

    @property
    def score(self) -> float | None:
        """The score that these figures tell, None if they tell none."""
        return None


class EvaluationFigures(Figures):
    """What an evaluation found: always a score."""

    @property
    def score(self) -> float:
        raise NotImplementedError

    @property
    def text(self) -> str:
        """The result as a line of text writes it."""
        return f"{self.score:.1f}"


FiguresOfKind = TypeVar("FiguresOfKind", bound=Figures)


def _figures_of_kind(name: Literal["round_figures", "evaluation_figures"]) -> BeforeValidator:
    """Return a validator that reads figures by the model of their kind of training."""

    def read(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return _figures_model(name, value).model_validate(value)

    return BeforeValidator(read)


def _figures_model(
    name: Literal["round_figures", "evaluation_figures"], document: dict[str, Any]
) -> type[Figures]:
    from training.tasks.kinds import TASKS  # kinds make reports

    kind = str(document.get("training", "reinforcement"))
    if kind not in TASKS:
        raise ValueError(f"no kind of training is named {kind[:40]!r}")
    return getattr(TASKS[kind], name)  # type: ignore[no-any-return]


AnyRoundFigures = Annotated[SerializeAsAny[Figures], _figures_of_kind("round_figures")]
AnyEvaluationFigures = Annotated[SerializeAsAny[EvaluationFigures], _figures_of_kind("evaluation_figures")]


class WithFigures(Message):
    """A measurement with the figures of its kind of training.

    Stored, they lie flat among its own, where `figures` stands. The score of every kind is stored under one name, that
    of the first kind, so that any kind's can be found and sorted by it.
    """

    if TYPE_CHECKING:
        figures: Figures
    _figures_name: ClassVar[Literal["round_figures", "evaluation_figures"]]
    _score_name: ClassVar[str]

    def figures_of(self, kind: type[FiguresOfKind]) -> FiguresOfKind:
        """Return the figures as those of a kind of training. TypeError if they are of another kind."""
        if not isinstance(self.figures, kind):
            raise TypeError(f"these figures are not {kind.__name__}")
        return self.figures

    @model_serializer(mode="wrap")
    def _flatten(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for name, value in handler(self).items():
            if name == "figures":
                document |= (
                    value if self._score_name in value else {**value, self._score_name: self.figures.score}
                )
            else:
                document[name] = value
        return document

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, value: Any) -> Any:
        if not isinstance(value, dict) or "figures" in value:
            return value
        names = _figures_model(cls._figures_name, value).model_fields
        figures = {name: value[name] for name in names if name in value}
        others = {name: figure for name, figure in value.items() if name not in {*names, cls._score_name}}
        return {**others, "figures": figures}


class GradientsReport(Message):
    """A round of learners that compute gradients, of which so many ran at once at most, and why so many.

    `gradients` were applied in `steps` versions: `released` counts them by the reason of their release. `staleness_*`
    tell by how many versions they were behind then (or usual steps, where the loop counts those), `bound` the most that
    the mean could be, None where nothing was held.
    `queue_*` and `held_share` are of gradients that waited, `learners_busy` and `actors_busy` are means over the
    round's time, in `learning_s` of which anything learned; `starved_share` is the part of the learners' time in which
    there was no data for them. `ratio_mean` is the mean truncated importance weight, `effective_share` the effective
    sample size as a share of the samples, `truncated_share` that of samples which were truncated. `dropped` counts
    gradients that no version took, by reason; `wasted_picodollars` is what they cost.
    """

    learners: int
    gradients: int
    steps: int
    released: dict[str, int]
    staleness_least: float
    staleness_mean: float
    staleness_most: float
    bound: float | None
    queue_mean: float
    queue_most: int
    held_share: float
    learners_busy: float
    actors_busy: float
    starved_share: float
    learning_s: float
    step_length: float
    ratio_mean: float | None = None
    effective_share: float | None = None
    truncated_share: float | None = None
    learners_why: str = ""
    dropped: dict[str, int] = {}
    wasted_picodollars: int = 0


class RoundReport(WithFigures):
    """One round: its plan, its progress, its time and its cost, and the figures of its kind of training.

    `progress` counts in the unit of the training (`Training.progress_unit`): the environment's steps, or
    samples, each once, when it is first learned from. It is stored under its first name. `replayed_samples` had been
    learned from before; reports of version 0.1 count them among the steps. `memory_mb` is what the plan gave an actor,
    reported by policies that change it; evaluations may have had another. `drawn` is the pair of functions and MB that
    an agent wished for. The last three are left out of what is stored where there is none.
    """

    _figures_name = "round_figures"
    _score_name = "episode_return_mean"

    round_no: int
    version: int
    actors: int
    plan_reason: str
    drawn: tuple[float, float] | None = Field(None, exclude_if=lambda value: value is None)
    memory_mb: int = Field(0, exclude_if=lambda value: value == 0)
    progress: int = Field(alias="env_steps")
    total_progress: int = Field(alias="total_env_steps")
    replayed_samples: int = Field(0, exclude_if=lambda value: value == 0)
    figures: AnyRoundFigures
    staleness_mean: float = 0.0
    dropped_contributions: int = Field(0, alias="dropped_trajectories")
    started_s: float
    collect_s: float
    update_s: float
    total_s: float
    cold_starts: int
    failed_calls: int
    retried_calls: int
    usage: Usage
    learner_usage: Usage
    cost_picodollars: int
    spend: Spend | None = None
    gradients: GradientsReport | None = Field(None, exclude_if=lambda value: value is None)

    @property
    def learned_samples(self) -> int:
        """How many samples the round's versions learned from: its progress, and what they learned from again."""
        return self.progress + self.replayed_samples

    @property
    def score(self) -> float | None:
        """The score that training itself showed in this round, None if it showed none."""
        return self.figures.score
