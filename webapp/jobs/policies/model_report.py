"""How good a job's model is on held-out rows: figures with their intervals, the confusion table, coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from training.checkpoints import CheckpointError
from training.data.manifest import Manifest
from training.data.shard import BadShard
from training.data.store import MissingData
from training.models.metrics import Coefficient, Metrics, majority_accuracy, majority_loss
from training.statistics import Interval
from training.tasks.supervised import SupervisedLearning, trained_model
from webapp.formatting import format_score
from webapp.job_states import TERMINAL
from webapp.jobs.models import Job
from webapp.jobs.policies.downloads import KeptCheckpoint, checkpoint_path
from webapp.jobs.policies.judgements import find_judgement

MOST_CLASSES = 20
_KEPT = 32


class Figure(NamedTuple):
    """`majority` is that of always telling the shares of the classes, empty where it says nothing."""

    title: str
    value: str
    interval: str
    majority: str


@dataclass(frozen=True)
class ModelReport:
    """`confusion` has a line for each true class: its name, and how often each class was predicted."""

    round_no: int
    rows: int
    figures: tuple[Figure, ...]
    classes: tuple[str, ...]
    confusion: tuple[tuple[str, tuple[int, ...]], ...]
    coefficients: tuple[Coefficient, ...]


def report_of(job: Job, kept: KeptCheckpoint) -> ModelReport | None:
    """Return the report of a job that is over; None if it has no model that was judged, or its rows are gone."""
    if job.training_facts.kind != SupervisedLearning.kind or job.observed not in TERMINAL:
        return None
    path = checkpoint_path(job.pk, kept.name)
    try:
        judged = find_judgement(job, path, kept.sha256)
        return None if judged is None else _report(path, judged, kept.round_no)
    except (CheckpointError, MissingData, BadShard, ValueError):
        return None


@lru_cache(_KEPT)
def _report(path: Path, judged: Metrics, round_no: int) -> ModelReport:
    model = trained_model(path, name="", cost="", simulated=None, judged=judged)
    manifest = model.manifest
    few = len(manifest.classes) <= MOST_CLASSES
    lines = zip(manifest.classes, judged.confusion, strict=True)
    return ModelReport(
        round_no=round_no,
        rows=judged.rows,
        figures=tuple(_figures(judged, manifest)),
        classes=manifest.classes,
        confusion=tuple(lines) if few else (),
        coefficients=tuple(model.coefficients),
    )


def _figures(found: Metrics, manifest: Manifest) -> list[Figure]:
    rows = [
        _figure("Accuracy", found.accuracy, f"{majority_accuracy(manifest):.3f}"),
        _figure("Loss", found.loss, f"{majority_loss(manifest):.4f}", decimals=4),
    ]
    return rows if found.auc is None else [*rows, _figure("Area under the ROC curve", found.auc, "0.500")]


def _figure(title: str, found: Interval, majority: str, decimals: int = 3) -> Figure:
    value, low, high = (format_score(one, decimals) for one in (found.value, found.low, found.high))
    return Figure(title, value, f"{low}–{high}", majority)
