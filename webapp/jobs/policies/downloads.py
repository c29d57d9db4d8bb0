"""Policies as downloads: a job's checkpoints, what is known of each, and the files of a policy."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.http import Http404

from training.data.store import MissingData
from training.engine.checkpoints import CheckpointError
from training.engine.messages import Evaluated
from training.rl.policies.trained import TrainedPolicy
from training.tasks.supervised import SupervisedLearning as Supervised
from training.tasks.supervised import trained_model
from webapp.formatting import display_usd
from webapp.jobs.models import Event, EventKind, Film, Job, Round
from webapp.jobs.running.checkpoint_files import checkpoint_folder

if TYPE_CHECKING:
    from training.rl.policies.model_card import EvaluationScore  # onnx
    from training.spec import TrainingSpec


@dataclass(frozen=True)
class KeptCheckpoint:
    """One checkpoint as the page lists it. `steps` and `evaluated` (a score) are None if unknown."""

    name: str
    sha256: str
    round_no: int
    byte_count: int
    at: datetime
    best: bool
    steps: int | None
    evaluated: float | None
    film: Film | None


def list_checkpoints(job: Job) -> list[KeptCheckpoint]:
    """Return the job's checkpoints: first the one with the best evaluation, if any, then the others, newest first."""
    rows = [(row.name, row.sha256, row.round_no, row.byte_count, row.at) for row in job.checkpoints.all()]
    best = _best(job)
    names = {best[0]} if best is not None else set()
    if best is not None:
        rows.insert(0, best)
    steps, means = _steps(job, (row[2] for row in rows)), _means(job, (row[2] for row in rows))
    films = {film.sha256: film for film in job.films.select_related("requested_by")}
    return [
        KeptCheckpoint(*row, row[0] in names, steps.get(row[2]), means.get(row[2]), films.get(row[1]))
        for row in rows
    ]


def checkpoint(job: Job, name: str) -> KeptCheckpoint | None:
    """Return the checkpoint with that name; without a name the best, else the newest; None if there is none."""
    return next((row for row in list_checkpoints(job) if not name or row.name == name), None)


def checkpoint_in(job: Job, name: str) -> KeptCheckpoint:
    """Return the same; Http404 if there is none."""
    chosen = checkpoint(job, name)
    if chosen is None:
        raise Http404("There is no such checkpoint; older ones are deleted as newer ones come.")
    return chosen


def checkpoint_path(job_id: str, name: str) -> Path:
    """Return the checkpoint's path. The name comes from a database row, never from a user."""
    return checkpoint_folder(job_id) / name


def _best(job: Job) -> tuple[str, str, int, int, datetime] | None:
    """Return the best checkpoint as the run reported it. It cannot be resumed from and has no row of its own."""
    event = job.events.filter(kind=EventKind.CHECKPOINT, payload__best=True).order_by("-seq").first()
    if event is None:
        return None
    facts = event.payload
    return facts["name"], facts["sha256"], facts["round_no"], facts["byte_count"], event.at


def _steps(job: Job, rounds: Iterable[int]) -> dict[int, int]:
    steps = Round.objects.filter(job=job, round_no__in=set(rounds))
    return dict(steps.values_list("payload__report__round_no", "payload__report__total_env_steps"))


def _means(job: Job, rounds: Iterable[int]) -> dict[int, float]:
    event = job.events.filter(kind=EventKind.EVALUATION, payload__round_no__in=list(set(rounds)))
    return dict(event.order_by("seq").values_list("payload__round_no", "payload__return_mean"))


def policy_zip(job: Job, chosen: KeptCheckpoint) -> bytes:
    """Return the policy, its card and its script as a zip. CheckpointError if the file is missing or damaged."""
    files = policy_files(job, checkpoint_path(job.pk, chosen.name), chosen.sha256)
    packed = io.BytesIO()
    # Not compressed: weights do not get smaller, and the request waits for this.
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def policy_files(job: Job, path: Path, sha256: str) -> dict[str, bytes]:
    """Return the files of a policy, or of another kind's model, by name; the card contains the job's facts."""
    if job.training_facts.kind == Supervised.kind:
        return _model_files(job, path, sha256)
    from training.rl.policies.loader import package  # onnx: 15 MB and a tenth of a second
    from training.rl.policies.model_card import model_card  # onnx

    trained = TrainedPolicy.read(path)
    cost = _cost(job, "rounds")
    judged = _score_of(job, trained.spec, trained.progress.round_no)
    return package(
        trained, model_card(trained, name=job.name, judged=judged, cost=cost, simulated=job.simulated)
    )


def _cost(job: Job, rounds: str) -> str:
    account = job.account
    spent = account.spent_picodollars + account.overrun_picodollars
    cost = f"{display_usd(spent)} for the whole run of {job.round_no:,} {rounds}"
    if job.emulated:
        cost += ", **emulated**: metered by a cloud that this machine emulates; nothing was billed"
    return cost


def _model_files(job: Job, path: Path, sha256: str) -> dict[str, bytes]:
    from training.supervised.models.loader import package  # onnx
    from webapp.jobs.policies.judgements import find_judgement  # judges what is listed here

    try:
        judged = find_judgement(job, path, sha256)
        model = trained_model(
            path, name=job.name, cost=_cost(job, "epochs"), simulated=job.simulated, judged=judged
        )
    except MissingData as missing:
        raise CheckpointError(f"{missing} Without it the model's columns are not known.") from None
    return package(model)


def _score_of(job: Job, spec: TrainingSpec, round_no: int) -> EvaluationScore | None:
    """Return the evaluation of that round's policy, else the last one before it."""
    from training.rl.policies.model_card import EvaluationScore  # onnx

    event: Any = (
        Event.objects.filter(job=job, kind=EventKind.EVALUATION, payload__round_no__lte=round_no)
        .order_by("-payload__round_no", "-seq")
        .first()
    )
    return (
        None
        if event is None
        else EvaluationScore.from_evaluation(Evaluated.model_validate(event.payload), spec)
    )
