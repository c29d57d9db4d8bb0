"""How good a job's models are on held-out rows: judged by the job's own process at its end, kept beside checkpoints.

Pages show figures with their intervals, the confusion table and coefficients. A request judges a model itself only
where that takes hardly any time, as for jobs that ended before this was kept.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from training.data.manifest import Manifest
from training.data.shard import BadShard
from training.data.store import MissingData
from training.engine.checkpoints import CheckpointError
from training.statistics.few_seeds import Interval
from training.supervised.models.metrics import Coefficient, Metrics, majority_accuracy, majority_loss
from training.tasks.supervised import SupervisedLearning, judge_model, trained_model
from training.tasks.supervised_spec import Supervised
from webapp.formatting import format_score
from webapp.job_states import TERMINAL
from webapp.jobs.models import Job
from webapp.jobs.policies.downloads import KeptCheckpoint, checkpoint_path, list_checkpoints
from webapp.jobs.running.checkpoint_files import checkpoint_folder

log = logging.getLogger(__name__)

_MODELS = 4
"""Judged at a job's end: the best one and the newest ones."""
_BYTES_IN_A_REQUEST = 2**20
_MACS_IN_A_REQUEST = 10**8
_KEPT = 32
MOST_CLASSES = 20


def judge_kept_models(job: Job) -> None:
    """Judge the best and newest models of a supervised job, but for those that are judged already."""
    for kept in list_checkpoints(job)[:_MODELS]:
        file = _file(job, kept.sha256)
        try:
            if not file.exists():
                judged = judge_model(checkpoint_path(job.pk, kept.name))
                half = file.with_suffix(".half")
                try:
                    half.write_text(judged.model_dump_json())
                    half.replace(file)
                finally:
                    half.unlink(missing_ok=True)
        except (CheckpointError, MissingData, BadShard, OSError) as error:
            log.warning("the model of round %s of %s is not judged: %s", kept.round_no, job.pk, error)


def find_judgement(job: Job, path: Path, sha256: str) -> Metrics | None:
    """Return how good the model in this checkpoint is; None if it was not judged, and judging it would take long.

    Raises CheckpointError, MissingData and BadShard.
    """
    try:
        return Metrics.model_validate_json(_file(job, sha256).read_bytes())
    except (OSError, ValueError):
        pass
    training = job.parsed_spec().training
    if not isinstance(training, Supervised) or not _is_quick(training, training.manifest):
        return None
    return _judged(path, sha256)


@lru_cache(_KEPT)
def _judged(path: Path, sha256: str) -> Metrics:
    return judge_model(path)


def _is_quick(training: Supervised, manifest: Manifest) -> bool:
    byte_count = sum(shard.byte_count for shard in manifest.held_out_shards)
    macs = manifest.held_out_rows * training.model.macs(manifest.shape)
    return byte_count <= _BYTES_IN_A_REQUEST and macs <= _MACS_IN_A_REQUEST


def _file(job: Job, sha256: str) -> Path:
    return checkpoint_folder(job.pk) / f"{sha256}.judged.json"


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


def _figures(metrics: Metrics, manifest: Manifest) -> list[Figure]:
    rows = [
        _figure("Accuracy", metrics.accuracy, f"{majority_accuracy(manifest):.3f}"),
        _figure("Loss", metrics.loss, f"{majority_loss(manifest):.4f}", decimals=4),
    ]
    return rows if metrics.auc is None else [*rows, _figure("Area under the ROC curve", metrics.auc, "0.500")]


def _figure(title: str, metric: Interval, majority: str, decimals: int = 3) -> Figure:
    value, low, high = (format_score(score, decimals) for score in (metric.value, metric.low, metric.high))
    return Figure(title, value, f"{low}–{high}", majority)
