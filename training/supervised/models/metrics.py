"""How good a model is on rows that it has not learned from, with 95 % intervals over these rows.

Accuracy has Wilson's interval, the mean loss Student's, the AUC that of DeLong (1988), on the scale of log odds. They
say how far another held-out sample could differ; they say nothing of other seeds of training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from training.base_model import FrozenModel
from training.data.hashing import place_of
from training.data.manifest import Manifest
from training.data.rows import Rows
from training.engine.codec import Document
from training.statistics.few_seeds import Interval, student_t
from training.supervised.models.model import Floats, Model, Parameters

LEVEL = 0.95
_LEAST_PROBABILITY = 1e-30


@dataclass(frozen=True, eq=False)
class Judged:
    """What a model says of some held-out rows: each row's loss, its classes' probabilities, and its class."""

    losses: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float32]
    targets: npt.NDArray[np.int32]

    def document(self) -> Document:
        return {"losses": self.losses, "probabilities": self.probabilities, "targets": self.targets}

    @staticmethod
    def of(document: Document) -> Judged:
        """Return what `document` wrote. Raises ValueError if its arrays do not belong together."""
        losses, probabilities, targets = (document.get(key) for key in ("losses", "probabilities", "targets"))
        for array, dimensions, dtype in ((losses, 1, "f4"), (probabilities, 2, "f4"), (targets, 1, "i4")):
            if (
                not isinstance(array, np.ndarray)
                or array.ndim != dimensions
                or array.dtype != np.dtype(dtype)
            ):
                raise ValueError("a judgement has losses and probabilities as float32, and classes as int32")
        assert losses is not None
        assert probabilities is not None
        assert targets is not None
        if not len(losses) == len(probabilities) == len(targets) > 0:
            raise ValueError("a judgement has a loss, probabilities and a class for each of its rows")
        if targets.min() < 0 or targets.max() >= probabilities.shape[1]:
            raise ValueError("a class of the judgement has no probability")
        if not (np.isfinite(losses).all() and np.isfinite(probabilities).all()):
            raise ValueError("a loss or a probability is not a finite number")
        return Judged(losses, probabilities, targets)


class Metrics(FrozenModel):
    """`confusion` counts rows: a line for each true class, a column for each predicted one. `auc` is the mean over
    classes, each against all others; None where only one class is there.
    """

    rows: int
    loss: Interval
    accuracy: Interval
    auc: Interval | None
    confusion: tuple[tuple[int, ...], ...]


class Coefficient(FrozenModel):
    """A weight of a linear model. `text` is the text that it is of, empty for a number; `of_class` the class whose
    log odds it raises.
    """

    column: str
    text: str = ""
    of_class: str
    weight: float


def judge(model: Model, parameters: Parameters, rows: Rows) -> Judged:
    """Return what the model says of the rows. The losses are cross-entropies without the penalty."""
    probabilities = model.predict(parameters, rows.features).astype(np.float32)
    return Judged(losses_of(probabilities, rows.targets), probabilities, rows.targets)


def losses_of(
    probabilities: npt.NDArray[np.float32], targets: npt.NDArray[np.int32]
) -> npt.NDArray[np.float32]:
    """Return each row's cross-entropy."""
    own = probabilities[np.arange(len(targets)), targets]
    return -np.log(np.maximum(own, _LEAST_PROBABILITY)).astype(np.float32)


def joined_judgements(parts: Sequence[Judged]) -> Judged:
    """Return the judgements of at least one part as one."""
    return Judged(
        np.concatenate([part.losses for part in parts]),
        np.concatenate([part.probabilities for part in parts]),
        np.concatenate([part.targets for part in parts]),
    )


def summary(judged: Judged) -> Metrics:
    rows, classes = judged.probabilities.shape
    predicted = judged.probabilities.argmax(axis=1)
    pairs = judged.targets.astype(np.int64) * classes + predicted
    confusion = np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)
    return Metrics(
        rows=rows,
        loss=mean_interval(judged.losses),
        accuracy=share_interval(int(np.trace(confusion)), rows),
        auc=area_interval(judged.probabilities, judged.targets),
        confusion=tuple(tuple(map(int, line)) for line in confusion),
    )


def share_interval(hits: int, rows: int) -> Interval:
    """Return a share with Wilson's interval."""
    z = student_t(LEVEL, None)
    share = hits / rows
    middle = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    return Interval(share, middle - half if hits else 0.0, middle + half if hits < rows else 1.0)


def mean_interval(values: npt.NDArray[Any]) -> Interval:
    """Return a mean with Student's interval; of one value, just that value."""
    exact = values.astype(np.float64)
    mean, count = float(exact.mean()), len(exact)
    if count == 1:
        return Interval(mean, mean, mean)
    half = student_t(LEVEL, count - 1) * float(exact.std(ddof=1)) / math.sqrt(count)
    return Interval(mean, mean - half, mean + half)


def area_interval(probabilities: Floats, targets: npt.NDArray[np.int32]) -> Interval | None:
    """Return the area under the ROC curve with DeLong's interval; None where only one class is there.

    With more than two classes it is the mean over those that are there, each against all others. A row's pull on that
    mean is the mean of its pulls on each area, so the areas' dependence is counted.
    """
    classes = probabilities.shape[1]
    present = [c for c in range(classes) if 0 < np.count_nonzero(targets == c) < len(targets)]
    if not present:
        return None
    if classes == 2:
        present = [1]
    areas, pulls = [], np.zeros(len(targets))
    for c in present:
        area, pull = _area(probabilities[:, c], targets == c)
        areas.append(area)
        pulls += pull / len(present)
    area = float(np.mean(areas))
    z = student_t(LEVEL, None)
    if not 0.0 < area < 1.0:
        # No spread is left to measure: the interval of a share with as many trials as the rarest class has rows.
        trials = int(min(np.count_nonzero(targets == c) for c in present))
        trials = min(trials, len(targets) - trials)
        bounds = share_interval(round(area) * trials, trials)
        return Interval(area, bounds.low, bounds.high)
    half = z * math.sqrt(float((pulls * pulls).sum())) / (area * (1.0 - area))
    middle = math.log(area / (1.0 - area))
    return Interval(area, _logistic(middle - half), _logistic(middle + half))


def _area(scores: Floats, positive: npt.NDArray[np.bool_]) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the area, and how far each row pulls it from its mean (DeLong's components, by mid-ranks)."""
    ranks, own = _mid_ranks(scores), np.empty(len(scores))
    own[positive], own[~positive] = _mid_ranks(scores[positive]), _mid_ranks(scores[~positive])
    positives, negatives = int(positive.sum()), int((~positive).sum())
    below = (ranks - own) / np.where(positive, negatives, positives)
    area = float(below[positive].mean())
    better = np.where(positive, below, 1.0 - below)
    count = np.where(positive, positives, negatives)
    # Unbiased: a sample's variance over its size, in each of the two groups.
    return area, (better - area) / np.sqrt(count * np.maximum(count - 1, 1))


def _mid_ranks(values: Floats) -> npt.NDArray[np.float64]:
    """1 for the least; equals share the mean of their ranks."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: npt.NDArray[np.float64] = (last - (counts - 1) / 2.0)[place]
    return ranks


def _logistic(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x)) if x >= 0 else math.exp(x) / (1.0 + math.exp(x))


def majority_loss(manifest: Manifest) -> float:
    """Return the held-out loss of a model that knows only how frequent each class is: the line to be below."""
    shares = (np.array(manifest.class_counts) + 0.5) / (manifest.rows + 0.5 * len(manifest.classes))
    held_out = np.array(manifest.held_out_class_counts) / manifest.held_out_rows
    return float(-(held_out * np.log(shares)).sum())


def majority_accuracy(manifest: Manifest) -> float:
    """Return the held-out accuracy of a model that always says the most frequent class."""
    return manifest.held_out_class_counts[int(np.argmax(manifest.class_counts))] / manifest.held_out_rows


def largest_coefficients(
    parameters: Parameters, manifest: Manifest, count: int = 20
) -> tuple[Coefficient, ...]:
    """Return the largest weights of a linear model by their size; none for other models and for pictures.

    Weights are per standard deviation of a number. Of texts only those in `Column.frequent` are known by name; of two
    that share a place, the first is named.
    """
    weight = parameters.get("weight")
    if weight is None or not manifest.columns:
        return ()
    if manifest.kind == "dense":
        named = {place: (column.name, column.category) for place, column in enumerate(manifest.columns)}
    else:
        bits = manifest.width.bit_length() - 1
        named = {}
        for column in manifest.columns:
            for text in ("",) if column.type == "number" else column.frequent:
                named.setdefault(place_of(column.name, text, bits), (column.name, text))
    places = np.array(sorted(named), dtype=np.intp)
    known = weight[places]
    order = np.argsort(-np.abs(known), axis=None, kind="stable")[:count]
    outputs = known.shape[1]
    return tuple(
        Coefficient(
            column=named[int(places[row])][0],
            text=named[int(places[row])][1],
            of_class=manifest.classes[1 if outputs == 1 else column],
            weight=float(known[row, column]),
        )
        for row, column in (divmod(int(place), outputs) for place in order)
        if known[row, column]
    )
