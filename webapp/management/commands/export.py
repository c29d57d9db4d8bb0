"""`manage.py export CHECKPOINT|JOB_ID --to FOLDER`: what was learned as files: a policy with its card, its script and a
film, or a model with its card and its script.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any, NoReturn

from django.db import DatabaseError

from training.calls.evaluate import EvaluateRequest
from training.data.store import MissingData
from training.engine.checkpoints import CheckpointError, Progress, read_checkpoint
from training.engine.codec import decode
from training.engine.messages import Call
from training.functions.body import WarmCache
from training.functions.evaluate import evaluate
from training.rl.policies.loader import package as package_policy
from training.rl.policies.model_card import EvaluationScore, model_card
from training.rl.policies.trained import TrainedPolicy, spec_in
from training.spec import TrainingSpec
from training.supervised.models.loader import package as package_model
from training.tasks.supervised import SupervisedLearning, judge_model, trained_model
from training.tasks.supervised_spec import Supervised
from webapp.formatting import display_usd
from webapp.jobs.models import Job
from webapp.jobs.policies import downloads as policies
from webapp.jobs.policies.film_process import FilmFailed, shoot
from webapp.jobs.policies.judgements import judge_kept_models
from webapp.management.command import FAILED_EXIT, LineCommand

FILM = "film.webp"


class Command(LineCommand):
    help = (
        "Writes policy.onnx, README.md (the model card) and play.py, which plays the policy with onnxruntime, numpy "
        "and gymnasium alone; of a model learned from data model.onnx, README.md and predict.py. A checkpoint's file "
        "needs no database; of a job the best policy or model is taken, or the newest."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("source", metavar="CHECKPOINT|JOB_ID", help="a checkpoint's file, or a job's id")
        parser.add_argument(
            "--to", type=Path, required=True, metavar="FOLDER", help="made if it is not there"
        )
        parser.add_argument("--video", action="store_true", help=f"film an episode as well, as {FILM}")
        parser.add_argument(
            "--episodes",
            type=int,
            default=0,
            metavar="N",
            help="of a checkpoint's file: play N episodes on seeds 0 to N-1 for the card's return",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        folder: Path = options["to"]
        try:
            checkpoint, files = self._found(options["source"], options["episodes"])
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (folder / name).write_bytes(content)
                self.stdout.write(f"{folder / name} ({len(content):,} bytes)")
        except CheckpointError as error:
            self._refuse(str(error))
        except OSError as error:
            self._refuse(f"{error.filename} cannot be written: {error.strerror}")
        if options["video"]:
            self._film(checkpoint, folder / FILM)

    def _found(self, source: str, episodes: int) -> tuple[Path, dict[str, bytes]]:
        """Return the checkpoint's file and the policy's files."""
        if Path(source).is_file():
            return Path(source), self._of_file(Path(source), episodes)
        try:
            job = Job.objects.select_related("account").filter(pk=source).first()
        except DatabaseError:  # no database exists here
            job = None
        if job is None:
            self._refuse(f"{source!r} is neither a checkpoint's file nor the id of a job here")
        chosen = policies.checkpoint(job, "")
        if chosen is None:
            self._refuse(f"job {source} has no checkpoint yet")
        path = policies.checkpoint_path(job.pk, chosen.name)
        if job.training_facts.kind == SupervisedLearning.kind:
            judge_kept_models(job)
        return path, policies.policy_files(job, path, chosen.sha256)

    def _of_file(self, path: Path, episodes: int) -> dict[str, bytes]:
        spec = spec_in(path)
        if isinstance(spec, TrainingSpec):
            return _policy_of_file(path, episodes)
        if episodes:
            self._refuse("only a policy plays episodes; this checkpoint is of a model")
        return _model_of_file(path, spec)

    def _film(self, checkpoint: Path, file: Path) -> None:
        try:
            facts = shoot(checkpoint.resolve(), file.resolve())
        except FilmFailed as error:
            self.refuse(f"No film: {error}", FAILED_EXIT)
        self.stdout.write(
            f"{file} ({facts['byte_count']:,} bytes, {facts['seconds']:.1f} s, return {facts['episode_return']:.1f})"
        )

    def _refuse(self, sentence: str) -> NoReturn:
        self.refuse(sentence if sentence.endswith(".") else f"{sentence}.")


def _model_of_file(path: Path, spec: Supervised) -> dict[str, bytes]:
    """Return the files of a model. Raises CheckpointError, also where its data set is not here."""
    progress = Progress.decode(read_checkpoint(path), spec)
    cost = f"{display_usd(progress.cost_picodollars)} up to this checkpoint"
    name = f"{spec.subject}, epoch {progress.round_no:,}"
    try:
        judged = judge_model(path)
        return package_model(trained_model(path, name=name, cost=cost, simulated=None, judged=judged))
    except MissingData as missing:
        raise CheckpointError(str(missing)) from None


def _policy_of_file(path: Path, episodes: int) -> dict[str, bytes]:
    trained = TrainedPolicy.read(path)
    judged = (
        _played(trained, episodes)
        if episodes > 0
        else EvaluationScore.from_progress(trained.progress, trained.spec)
    )
    cost = f"{display_usd(trained.progress.cost_picodollars)} up to this checkpoint"
    name = f"{trained.spec.environment.id}, round {trained.progress.round_no:,}"
    return package_policy(trained, model_card(trained, name=name, judged=judged, cost=cost, simulated=None))


def _played(trained: TrainedPolicy, episodes: int) -> EvaluationScore:
    """Return episodes played now, as a job's evaluation plays them."""
    spec, seeds = trained.spec, tuple(range(episodes))
    request = EvaluateRequest(environment=spec.environment, episode_seeds=seeds)
    call = Call(
        id="export",
        request=request,
        where="actor",
        round_no=trained.progress.round_no,
        seed=0,
        deadline_s=spec.longest_call_s,
        memory_mb=spec.memory_mb,
    )
    weights = trained.learner.actor_weights(spec.network)
    result = evaluate(call, request, weights, WarmCache())
    return EvaluationScore.from_returns(
        decode(result.payload)["returns"].tolist(), seeds, trained.progress.round_no
    )
