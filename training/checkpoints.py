"""Checkpoints: everything a run needs to go on as if it had never stopped, in a format that cannot execute code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from training.codec import CodecError, decode, encode
from training.learner import LearnerState
from training.ports import CheckpointRef
from training.reports import RoundReport
from training.seeds import derive
from training.spec import TrainingSpec

_MAGIC = b"STARLING-CHECKPOINT-1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".checkpoint"
_LATEST, _BEST = "round-", "best-"


class CheckpointError(ValueError):
    """A checkpoint that is missing, damaged, or of another run. The message is one sentence for people."""


@dataclass(frozen=True)
class Progress:
    """How far a run has come, between two versions: the state that a checkpoint holds.

    `env_states` are by slot; `pending` are trajectories that were sampled and not learned from yet.
    """

    learner: bytes
    weights: bytes
    version: int = 0
    round_no: int = 0
    total_env_steps: int = 0
    elapsed_s: float = 0.0
    cost_picodollars: int = 0
    env_states: dict[int, bytes] = field(default_factory=dict)
    pending: tuple[bytes, ...] = ()
    history: tuple[RoundReport, ...] = ()
    evaluation_means: tuple[float, ...] = ()
    evaluated_round: int = 0
    episode_return_mean: float | None = None

    def encode(self, spec: TrainingSpec) -> bytes:
        return encode(
            {
                "spec": spec.model_dump_json(),
                "learner": self.learner,
                "weights": self.weights,
                "version": self.version,
                "round_no": self.round_no,
                "total_env_steps": self.total_env_steps,
                "elapsed_s": self.elapsed_s,
                "cost_picodollars": self.cost_picodollars,
                "env_slots": list(self.env_states),
                "env_states": list(self.env_states.values()),
                "pending": list(self.pending),
                "history": [report.model_dump_json() for report in self.history],
                # A long run has more of them than a header may hold values.
                "evaluation_means": np.array(self.evaluation_means, np.float64),
                "evaluated_round": self.evaluated_round,
                "episode_return_mean": self.episode_return_mean,
            }
        )

    @staticmethod
    def decode(data: bytes, spec: TrainingSpec) -> Progress:
        """The progress in `data`. CheckpointError unless it is of a run that learns the same thing the same way."""
        try:
            document = decode(data)
            asked = TrainingSpec.model_validate_json(document["spec"])
            progress = Progress(
                learner=document["learner"],
                weights=document["weights"],
                version=document["version"],
                round_no=document["round_no"],
                total_env_steps=document["total_env_steps"],
                elapsed_s=document["elapsed_s"],
                cost_picodollars=document["cost_picodollars"],
                env_states=dict(zip(document["env_slots"], document["env_states"], strict=True)),
                pending=tuple(document["pending"]),
                history=tuple(RoundReport.model_validate_json(report) for report in document["history"]),
                evaluation_means=tuple(map(float, document["evaluation_means"])),
                evaluated_round=document["evaluated_round"],
                episode_return_mean=document["episode_return_mean"],
            )
        except (CodecError, KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"the checkpoint cannot be read: {error}") from None
        for part in ("environment", "network"):
            if getattr(asked, part) != getattr(spec, part):
                raise CheckpointError(
                    f"the checkpoint was made with another {part} ({getattr(asked, part)!r}); it fits only that one"
                )
        return progress

    def forked(self, spec: TrainingSpec) -> Progress:
        """The beginning of another run that starts with what this one has learned: its weights and its normalisers.

        Rounds, steps, episodes and the optimiser begin anew; algorithm and seed may be others. CheckpointError where
        the weights would see observations that they were not learned with.
        """
        learned = LearnerState.decode(self.learner)
        fresh = spec.algorithm.initial_state(spec.network, learned.spaces, derive(spec.seed, "network"))
        if (learned.observation_moments is None) != (fresh.observation_moments is None):
            raise CheckpointError(
                "the checkpoint's weights were learned with observations that were"
                f"{' not' if learned.observation_moments is None else ''} normalised; they fit only those"
            )
        state = replace(
            fresh,
            parameters=learned.parameters,
            target_parameters=learned.parameters if fresh.target_parameters else {},
            observation_moments=learned.observation_moments,
            return_moments=fresh.return_moments and (learned.return_moments or fresh.return_moments),
        )
        return Progress(learner=state.encode(), weights=state.actor_weights(spec.network))


class FileCheckpointStore:
    """Checkpoints as files of one folder: written aside, synced, renamed. The last `keep` stay, and the best one."""

    def __init__(self, folder: Path, keep: int = 3) -> None:
        self._folder = folder
        self._keep = keep

    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        self._folder.mkdir(parents=True, exist_ok=True)
        digest = hashlib.sha256(data)
        name = f"{_BEST if best else _LATEST}{round_no:08d}{_SUFFIX}"
        temporary = self._folder / f".{name}.{os.getpid()}"
        with temporary.open("wb") as file:
            file.write(_MAGIC + digest.digest())
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._folder / name)
        self._sync_folder()
        others = [old for old in self._named(_BEST) if old != name] if best else self.names()[: -self._keep]
        for old in others:
            (self._folder / old).unlink(missing_ok=True)
        return CheckpointRef(name, round_no, digest.hexdigest(), len(data))

    def load(self, name: str) -> bytes:
        """The bytes saved under `name`, whole and unchanged, or CheckpointError."""
        if Path(name).name != name:
            raise CheckpointError(f"{name!r} is not the name of a checkpoint")
        return read_checkpoint(self._folder / name)

    def names(self) -> Sequence[str]:
        """Complete checkpoints to go on from, oldest first."""
        return self._named(_LATEST)

    def best(self) -> str | None:
        """The checkpoint of the policy that scored best in an evaluation, if any was."""
        return next(iter(self._named(_BEST)), None)

    def _named(self, prefix: str) -> list[str]:
        return sorted(path.name for path in self._folder.glob(f"{prefix}*{_SUFFIX}"))

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def read_checkpoint(path: Path) -> bytes:
    """The bytes of the checkpoint file at `path`, or CheckpointError with what is wrong with it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"checkpoint {path.name} cannot be read: {error.strerror}") from None
    begin = len(_MAGIC) + _DIGEST_BYTES
    if not content.startswith(_MAGIC) or len(content) < begin:
        raise CheckpointError(f"{path.name} is not a checkpoint of Starling")
    data = content[begin:]
    found, wanted = hashlib.sha256(data).digest(), content[len(_MAGIC) : begin]
    if found != wanted:
        raise CheckpointError(
            f"checkpoint {path.name} is damaged: its content has hash {found.hex()[:12]}…, "
            f"but {wanted.hex()[:12]}… was written; use an older checkpoint"
        )
    return data
