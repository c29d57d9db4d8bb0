"""The spec of supervised learning: which rows to learn from, by which model, and when to stop."""

from __future__ import annotations

from math import ceil, prod
from typing import ClassVar, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from training.base_model import FrozenModel, setting
from training.data import library
from training.data.manifest import Manifest
from training.data.store import MissingData
from training.loops.epochs import Hybrid
from training.loops.model import AnyEpochLoop
from training.scaling import AnyEpochScaling
from training.scaling.fixed import Fixed
from training.spec import CheckpointSpec
from training.supervised.models import AnyModel
from training.supervised.models.logistic import LogisticRegression
from training.supervised.models.optimisers import SGD, AnyOptimiser
from training.supervised.pushes import Shapes, most_bytes, shapes_of
from training.tasks.score import Score
from training.tasks.training import Training

SCORE_CALLS_AT_MOST = 16
_SCORED_BYTES = 2 * 2**20
_PARAMETER_COPIES = 5


class FunctionSpec(FrozenModel):
    memory_mb: int = setting(
        1024,
        "Memory of a function",
        "Decides price and CPU share where functions are billed by memory.",
        ge=128,
        le=10_240,
        unit="MB",
        advanced=True,
    )
    deadline_s: float = setting(
        60.0,
        "Longest call",
        "A call that takes longer is stopped. Tightened from what calls really take.",
        ge=1.0,
        le=900.0,
        unit="s",
        advanced=True,
    )
    attempts: int = setting(
        3,
        "Attempts",
        "How often a failed call is tried before its epoch goes on without its rows.",
        ge=1,
        le=10,
        advanced=True,
    )


class JudgingSpec(FrozenModel):
    every_rounds: int = setting(
        1, "Judge every", "By all rows that were held out.", ge=1, le=100_000, unit="epochs"
    )


class DescentStopRule(FrozenModel):
    """When a run is over: whatever comes first. The budget is a separate stop, enforced by the ledger."""

    rounds: int | None = setting(20, "Epochs", "Times over all rows.", ge=1, le=10_000_000, unit="epochs")
    samples: int | None = setting(
        None,
        "Samples",
        "Rows in all, each counted each time it is learned from.",
        ge=1,
        le=10**13,
        unit="samples",
        advanced=True,
    )
    target_loss: float | None = setting(
        None, "Target loss", "Stop when three held-out losses in a row reach this.", gt=0
    )
    minutes: float | None = setting(
        None,
        "Time",
        "On the platform's own clock, which is virtual on a simulated cloud.",
        gt=0,
        le=100_000,
        unit="min",
    )
    no_progress_evaluations: int | None = setting(
        None,
        "Patience",
        "Stop when this many held-out losses in a row brought no new best.",
        ge=1,
        le=100_000,
        unit="evaluations",
        advanced=True,
    )

    @property
    def progress_limit(self) -> int | None:
        return self.samples

    @property
    def target_score(self) -> float | None:
        return self.target_loss


class Supervised(Training):
    """A model from data: minibatch gradient descent on rows of a data set."""

    progress_unit: ClassVar[str] = "samples"
    score: ClassVar[Score] = Score("loss", higher_is_better=False, decimals=4)
    learned: ClassVar[str] = "model"
    actor_name: ClassVar[str] = "function"
    round_name: ClassVar[str] = "epoch"
    reviewed: ClassVar[tuple[tuple[str, str], ...]] = (
        ("Data", "data"),
        ("Model", "model.kind"),
        ("Epochs", "stop.rounds"),
    )
    limit_field: ClassVar[str] = "stop.samples"
    memory_field: ClassVar[str] = "calls.memory_mb"

    kind: Literal["supervised"] = "supervised"
    schema_version: Literal[1] = 1
    data: str = setting(
        "digits",
        "Data set",
        "One of the project, by its hash, or one that comes with Starling, by its name.",
        pattern=r"^([0-9a-f]{64}|[a-z][a-z0-9_]{0,40})$",
    )
    model: AnyModel = Field(default_factory=LogisticRegression, title="Model", validate_default=True)
    optimiser: AnyOptimiser = Field(default_factory=SGD, title="Optimiser")
    minibatch: int = setting(32, "Minibatch", "Rows of one step.", ge=1, le=65_536, unit="rows")
    local_steps: int = setting(
        1, "Local steps", "Steps of a call before it pushes the sum of its gradients.", ge=1, le=10_000
    )
    significance: float = setting(
        0.0,
        "Significance filter",
        "Only numbers travel whose step is more than this share of the parameter; the rest is carried over,"
        " with the function's state, to its next call. 0: all travel.",
        ge=0.0,
        le=1.0,
        advanced=True,
    )
    scaling: AnyEpochScaling = Field(default_factory=Fixed)
    loop: AnyEpochLoop = Field(default_factory=Hybrid)
    calls: FunctionSpec = FunctionSpec()
    evaluation: JudgingSpec = JudgingSpec()
    checkpoints: CheckpointSpec = CheckpointSpec(every_rounds=1)
    stop: DescentStopRule = DescentStopRule()
    seed: int = setting(
        0, "Seed", "Decides the first parameters and the order of the rows in each epoch.", ge=0, le=2**31 - 1
    )

    @field_validator("model")
    @classmethod
    def _fits_the_data(cls, value: AnyModel, info: ValidationInfo) -> AnyModel:
        """Raise ValueError if the model cannot learn a data set that is known here."""
        try:
            reason = value.misfit(library.shape_of(info.data["data"]))
        except (KeyError, MissingData):
            return value
        if reason:
            raise ValueError(reason)
        return value

    @model_validator(mode="after")
    def _steps_are_of_one_size(self) -> Supervised:
        if self.local_steps > 1 and self.optimiser.kind == "adam":
            raise ValueError(
                "local steps are plain gradient steps: choose SGD or momentum, or one local step"
            )
        return self

    @property
    def manifest(self) -> Manifest:
        """What the data set is. Raises MissingData if it is not here."""
        return library.manifest_of(self.data)

    @property
    def parameter_shapes(self) -> Shapes:
        return shapes_of(self.model, library.shape_of(self.data))

    @property
    def calls_an_epoch(self) -> int:
        return ceil(self.manifest.rows / self.progress_a_call)

    def score_calls(self, functions: int) -> int:
        """Return how many calls judge the held-out rows together, if so many functions may run. No call has more bytes
        of rows than a function's request holds, nor of scores than its answer.
        """
        manifest = self.manifest
        sent = sum(shard.byte_count for shard in manifest.held_out_shards)
        returned = 4 * manifest.held_out_rows * (len(manifest.classes) + 2)
        wanted = max(min(functions, SCORE_CALLS_AT_MOST), ceil(max(sent, returned) / _SCORED_BYTES))
        return min(wanted, manifest.held_out_rows)

    @property
    def call_bytes(self) -> int:
        """About the bytes that a call brings with it: the parameters, and its rows."""
        manifest = self.manifest
        rows = min(self.progress_a_call, manifest.rows)
        return most_bytes(self.parameter_shapes) + ceil(rows * manifest.byte_count / manifest.rows)

    @property
    def needed_memory_mb(self) -> int:
        """About the memory that a call needs beside its process, by the body's own sum: its rows, read and decoded, and
        copies of the parameters.
        """
        manifest = self.manifest
        row_bytes = min(self.progress_a_call, manifest.rows) * manifest.byte_count / manifest.rows
        numbers = sum(prod(shape) for shape in self.parameter_shapes.values())
        return ceil((2 * row_bytes + _PARAMETER_COPIES * 4 * numbers) / 2**20)

    @property
    def subject(self) -> str:
        try:
            return library.name_of(self.data)
        except MissingData:
            return f"Data {self.data[:12]}"

    @property
    def method(self) -> str:
        return self.model.kind

    @property
    def memory_mb(self) -> int:
        return self.calls.memory_mb

    @property
    def progress_a_call(self) -> int:
        return self.minibatch * self.local_steps

    @property
    def longest_call_s(self) -> float:
        return self.calls.deadline_s

    @property
    def attempts(self) -> int:
        return self.calls.attempts
