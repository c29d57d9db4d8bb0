"""How good a job's models are on held-out rows: judged by the job's own process at its end, kept beside checkpoints.

A request judges a model itself only where that takes hardly any time, as for jobs that ended before this was kept.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from training.checkpoints import CheckpointError
from training.data.manifest import Manifest
from training.data.shard import BadShard
from training.data.store import MissingData
from training.models.metrics import Metrics
from training.tasks.supervised import judge_model
from training.tasks.supervised_spec import Supervised
from webapp.jobs.models import Job
from webapp.jobs.policies.downloads import checkpoint_path, list_checkpoints
from webapp.jobs.running.checkpoint_files import checkpoint_folder

log = logging.getLogger(__name__)

_MODELS = 4
"""Judged at a job's end: the best one and the newest ones."""
_BYTES_IN_A_REQUEST = 2**20
_MACS_IN_A_REQUEST = 10**8
_KEPT = 32


def judge_kept_models(job: Job) -> None:
    """Judge the best and newest models of a supervised job, but for those that are judged already."""
    for kept in list_checkpoints(job)[:_MODELS]:
        file = _file(job, kept.sha256)
        try:
            if not file.exists():
                judged = judge_model(checkpoint_path(job.pk, kept.name))
                half = file.with_suffix(".half")
                half.write_text(judged.model_dump_json())
                half.replace(file)
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
