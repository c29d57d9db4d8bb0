"""Supervised learning: functions take steps of gradient descent on some rows each, the learner merges what they push,
and held-out rows judge the parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from training.calls.merge import MergeRequest
from training.calls.score import ScoreRequest
from training.calls.sgd import SgdRequest
from training.data import library
from training.data.manifest import Manifest, RowRange
from training.data.shard import encode_shard
from training.data.store import read_rows
from training.engine.checkpoints import CheckpointError, Progress, read_checkpoint
from training.engine.codec import CodecError, Document, decode
from training.engine.memory_needs import MemoryNeeds
from training.engine.reports import EvaluationFigures, Figures
from training.engine.seeds import derive
from training.supervised.descent_state import DescentState
from training.supervised.memory_needs import needs_of_descent
from training.supervised.models import metrics
from training.supervised.models.card import TrainedModel
from training.supervised.models.model import Parameters
from training.supervised.pushes import shapes_of
from training.tasks.supervised_spec import SCORE_CALLS_AT_MOST, Supervised
from training.tasks.task import Judging, Mismatch, Task

_DIVERGED = "The loss is not a finite number any more: choose a smaller learning rate."


class DescentFigures(Figures):
    """An epoch. `loss` is the mean over its rows, each at the moment when it was learned from, with the penalty.

    `pushed_bytes` are those of all pushes without what a filter carries over, `staleness_most` is by how many versions
    the oldest of them was late.
    """

    training: Literal["supervised"] = "supervised"
    loss: float
    pushes: int
    pushed_bytes: int
    staleness_most: int

    @property
    def score(self) -> float:
        return self.loss


class HeldOutFigures(EvaluationFigures):
    """The parameters judged by held-out rows. `majority_loss` is that of always telling the shares of the classes."""

    training: Literal["supervised"] = "supervised"
    loss: float
    accuracy: float
    auc: float | None = None
    majority_loss: float
    rows: int

    @property
    def score(self) -> float:
        return self.loss

    @property
    def text(self) -> str:
        return f"{self.loss:.4f}, accuracy {100 * self.accuracy:.1f} %"


class SupervisedLearning(Task[Supervised]):
    kind = "supervised"
    sampling, learning, judging = "sgd", "merge", "score"
    spec_model = Supervised
    round_figures = DescentFigures
    evaluation_figures = HeldOutFigures

    @property
    def _manifest(self) -> Manifest:
        return self.spec.manifest

    def begin(self) -> Progress:
        spec = self.spec
        parameters = spec.model.initial_parameters(self._manifest.shape, derive(spec.seed, "model"))
        return self._start(DescentState(0, parameters, spec.optimiser.begin(parameters)))

    def fork(self, progress: Progress) -> Progress:
        """Return a start with the parameters of `progress`; epochs and the optimiser start from zero."""
        learned = DescentState.decode(progress.learner).parameters
        shapes = {name: array.shape for name, array in learned.items()}
        if shapes != dict(shapes_of(self.spec.model, self._manifest.shape)):
            raise CheckpointError("the checkpoint's parameters are of another model, or of other data")
        return self._start(DescentState(0, learned, self.spec.optimiser.begin(learned)))

    def _start(self, state: DescentState) -> Progress:
        return Progress(learner=state.encode(), weights=state.weights)

    def incompatible_part(self, other: Supervised) -> tuple[str, object] | None:
        mine = self.spec
        for part, theirs, ours in (
            ("data set", other.data, mine.data),
            ("model", other.model.kind, mine.model.kind),
            ("optimiser", other.optimiser.kind, mine.optimiser.kind),
            ("minibatch", other.minibatch, mine.minibatch),
            ("number of local steps", other.local_steps, mine.local_steps),
        ):
            if theirs != ours:
                return part, theirs
        return None

    def mismatches(self, other: Supervised) -> list[Mismatch]:
        """Parameters fit the model and the data that they were learned with."""
        parts = (("data set", "data", "data"), ("model", "model", "model.kind"))
        return [
            Mismatch(part, path)
            for part, name, path in parts
            if getattr(other, name) != getattr(self.spec, name)
        ]

    def memory_needs(self, spaces: Any, workers: int) -> MemoryNeeds:
        return needs_of_descent(self.spec, workers)

    def stepping(self) -> str:
        manifest = self._manifest
        calls = self.spec.calls_an_epoch
        return (
            f"An epoch is {manifest.rows:,} rows in {calls:,} calls of up to {self.spec.progress_a_call:,} rows;"
            f" {manifest.held_out_rows:,} rows are held out."
        )

    # Calls

    @property
    def calls_an_epoch(self) -> int:
        return self.spec.calls_an_epoch

    def rows_of_slice(self, number: int) -> int:
        begin, end = self._slice(number)
        return end - begin

    def slice(self, number: int, slot: int) -> SgdRequest:
        """Return the request of slice `number`, counted over all epochs. Each epoch has every row once."""
        spec, manifest = self.spec, self._manifest
        return SgdRequest(
            model=spec.model,
            shape=manifest.shape,
            ranges=manifest.ranges(*self._slice(number)),
            minibatch=spec.minibatch,
            learning_rate=spec.optimiser.learning_rate,
            significance=spec.significance,
            slice_no=number,
            slot=slot,
        )

    def _slice(self, number: int) -> tuple[int, int]:
        epoch, place = divmod(number, self.calls_an_epoch)
        position = int(_order(self.spec.seed, epoch, self.calls_an_epoch)[place])
        begin = position * self.spec.progress_a_call
        return begin, min(begin + self.spec.progress_a_call, self._manifest.rows)

    def sample(self, slot: int) -> SgdRequest:
        return self.slice(slot, slot)

    def learn(self, fraction_done: float) -> MergeRequest:
        return MergeRequest(
            model=self.spec.model,
            shape=self._manifest.shape,
            optimiser=self.spec.optimiser,
            together=self.spec.loop.steps_together,
        )

    def judge(self, round_no: int, actors: int) -> Sequence[Judging]:
        manifest = self._manifest
        share = -(-manifest.held_out_rows // self.spec.score_calls(actors))
        return [
            Judging(self._scored(begin, min(begin + share, manifest.held_out_rows)), 1)
            for begin in range(0, manifest.held_out_rows, share)
        ]

    def most_judgings(self) -> tuple[int, int]:
        return self.spec.score_calls(SCORE_CALLS_AT_MOST), 1

    def _scored(self, begin: int, end: int) -> ScoreRequest:
        ranges = self._manifest.ranges(begin, end, held_out=True)
        return ScoreRequest(model=self.spec.model, shape=self._manifest.shape, ranges=ranges)

    def inputs_of(self, request: Any) -> tuple[bytes, ...]:
        ranges: Sequence[RowRange] = request.ranges
        rows = read_rows(library.store(), ranges)
        return (encode_shard(rows, len(self._manifest.classes)),)

    def failure_in(self, payload: bytes) -> str:
        return _DIVERGED if decode(payload)["diverged"] else ""

    # Figures

    def round_figures_of(self, learned: Sequence[Document]) -> DescentFigures:
        rows = [result["env_steps"] for result in learned]
        return DescentFigures(
            loss=float(np.average([result["loss"] for result in learned], weights=rows)),
            pushes=sum(result["pushes"] for result in learned),
            pushed_bytes=sum(result["pushed_bytes"] for result in learned),
            staleness_most=max(result["staleness_most"] for result in learned),
        )

    def evaluation_figures_of(self, judged: Sequence[Document]) -> HeldOutFigures:
        summary = metrics.summary(metrics.joined_judgements([metrics.Judged.of(one) for one in judged]))
        return HeldOutFigures(
            loss=summary.loss.value,
            accuracy=summary.accuracy.value,
            auc=summary.auc.value if summary.auc is not None else None,
            majority_loss=metrics.majority_loss(self._manifest),
            rows=summary.rows,
        )


def trained_model(
    path: Path, *, name: str, cost: str, simulated: bool | None, judged: metrics.Metrics | None
) -> TrainedModel:
    """Return the model in a checkpoint's file. Raises CheckpointError and MissingData."""
    spec, state, progress = _read(path)
    manifest = spec.manifest
    return TrainedModel(
        name=name,
        model=spec.model,
        parameters=state.parameters,
        manifest=manifest,
        version=state.version,
        method=f"{spec.optimiser.kind} at rate {spec.optimiser.learning_rate:g}, minibatches of {spec.minibatch:,},"
        f" {spec.loop.kind.replace('_', ' ')} loop, {spec.scaling.kind} scaling",
        seed=spec.seed,
        samples=progress.total_progress,
        cost=cost,
        simulated=simulated,
        metrics=judged,
        coefficients=metrics.largest_coefficients(state.parameters, manifest),
    )


def judge_model(path: Path) -> metrics.Metrics:
    """Return how good the model in a checkpoint's file is on all held-out rows. It computes for seconds where these are
    many or the model is large. Raises CheckpointError, MissingData and BadShard.
    """
    spec, state, _ = _read(path)
    return metrics.summary(_judged(spec, spec.manifest, state.parameters))


def _read(path: Path) -> tuple[Supervised, DescentState, Progress]:
    data = read_checkpoint(path)
    try:
        spec = Supervised.model_validate_json(decode(data)["spec"])
    except (CodecError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}") from None
    progress = Progress.decode(data, spec)
    return spec, DescentState.decode(progress.learner), progress


def _judged(spec: Supervised, manifest: Manifest, parameters: Parameters) -> metrics.Judged:
    """Return what the model says of all held-out rows. They are read a part at a time."""
    rows = manifest.held_out_rows
    share = -(-rows // spec.score_calls(1))
    return metrics.joined_judgements(
        [
            metrics.judge(spec.model, parameters, read_rows(library.store(), ranges))
            for ranges in (
                manifest.ranges(begin, min(begin + share, rows), held_out=True)
                for begin in range(0, rows, share)
            )
        ]
    )


@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, count: int) -> Any:
    """Return the order of an epoch's slices."""
    return np.random.Generator(np.random.PCG64(derive(seed, "epoch", epoch))).permutation(count)
