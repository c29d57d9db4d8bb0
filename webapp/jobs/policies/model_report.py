"""How good a job's model is on held-out rows: figures with their intervals, the confusion table, coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from training.checkpoints import CheckpointError
from training.data import library
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

MOST_BYTES = 16 * 2**20
"""Of held-out rows that a page judges; a download judges any."""
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
    """Return the report of a job that is over; None if it has no model, or its rows are gone or too many."""
    if job.training_facts.kind != SupervisedLearning.kind or job.observed not in TERMINAL:
        return None
    return _report(job.pk, kept.name, kept.sha256, kept.round_no)


@lru_cache(_KEPT)
def _report(job_id: str, name: str, sha256: str, round_no: int) -> ModelReport | None:
    """Return the report of the checkpoint with that hash."""
    try:
        spec = Job.objects.get(pk=job_id).parsed_spec().training
        manifest = library.manifest_of(getattr(spec, "data", ""))
        if sum(shard.byte_count for shard in manifest.held_out_shards) > MOST_BYTES:
            return None
        model = trained_model(checkpoint_path(job_id, name), name="", cost="", simulated=None)
    except (CheckpointError, MissingData, BadShard, ValueError):
        return None
    if model.metrics is None:
        return None
    few = len(manifest.classes) <= MOST_CLASSES
    lines = zip(manifest.classes, model.metrics.confusion, strict=True)
    return ModelReport(
        round_no=round_no,
        rows=model.metrics.rows,
        figures=tuple(_figures(model.metrics, manifest)),
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
