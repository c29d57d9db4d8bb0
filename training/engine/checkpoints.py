"""Checkpoints: everything that a run needs to continue as if it had never stopped, in a format that cannot execute
code.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np

from training.engine.codec import CodecError, Document, decode, encode
from training.engine.ports import CheckpointRef
from training.engine.replay import Contribution, KeptBatch, newest_within
from training.engine.reports import RoundReport
from training.engine.unfinished import Unfinished
from training.tasks.training import Training

_MAGIC = b"STARLING-CHECKPOINT-1\n"
_DIGEST_BYTES = 32
_SUFFIX = ".checkpoint"
_LATEST, _BEST = "round-", "best-"
# A checkpoint is written every few rounds; more waiting data than this would cost more than sampling it again.
DATA_LIMIT_BYTES = 2**28


class CheckpointError(ValueError):
    """A checkpoint is missing, damaged, or of another run. The message is one sentence for people."""


@dataclass(frozen=True)
class Progress:
    """The state of a run between two versions, as a checkpoint stores it.

    By slot: `slot_states`, and `serials`, the number of the last fragment. Sampled but not learned from yet: `pending`
    in the pipelined loop, `waiting` in others. `replay` may be learned from again, `unfinished` is what learners that
    compute gradients have begun. What they hold, and `learner` and `weights`, only the task can read. Over
    epochs, the slices of the data before `first_slice` are done, and `slices_done` of those after.
    `evaluation_means` are the scores of all evaluations, `training_score` is the one that training itself showed last,
    `total_env_steps` counts in the unit of the training.
    """

    learner: bytes
    weights: bytes
    version: int = 0
    round_no: int = 0
    total_progress: int = 0
    elapsed_s: float = 0.0
    cost_picodollars: int = 0
    slot_states: dict[int, bytes] = field(default_factory=dict)
    pending: tuple[bytes, ...] = ()
    history: tuple[RoundReport, ...] = ()
    evaluation_means: tuple[float, ...] = ()
    evaluated_round: int = 0
    training_score: float | None = None
    serials: dict[int, int] = field(default_factory=dict)
    waiting: tuple[Contribution, ...] = ()
    replay: tuple[KeptBatch[Contribution], ...] = ()
    unfinished: Unfinished = field(default_factory=Unfinished)
    first_slice: int = 0
    slices_done: tuple[int, ...] = ()

    @property
    def holds_data(self) -> bool:
        """Whether there is more than whole rounds: data that no version has learned from, or a part of an epoch."""
        begun = self.unfinished.slices or self.unfinished.gradients
        return bool(self.pending or self.waiting or begun or self.first_slice or self.slices_done)

    @property
    def contributions(self) -> int:
        """How many wait to be learned from, or to be learned from again in passes that are left."""
        return len(self.waiting) + sum(len(slice_.contributions) for slice_ in self.unfinished.slices)

    def within_limit(self) -> Progress:
        """Return what a checkpoint holds: all but the oldest waiting data and the last slices beyond a limit."""
        waiting, replay = newest_within(DATA_LIMIT_BYTES, self.waiting, self.replay)
        unfinished = self.unfinished.within(DATA_LIMIT_BYTES)
        return replace(self, waiting=waiting, replay=replay, unfinished=unfinished)

    def encode(self, spec: Training) -> bytes:
        kept = self.within_limit()
        return encode(
            {
                "spec": spec.model_dump_json(),
                "learner": self.learner,
                "weights": self.weights,
                "version": self.version,
                "round_no": self.round_no,
                "total_env_steps": self.total_progress,
                "elapsed_s": self.elapsed_s,
                "cost_picodollars": self.cost_picodollars,
                "env_slots": list(self.slot_states),
                "env_states": list(self.slot_states.values()),
                "pending": list(self.pending),
                "history": [report.model_dump_json() for report in self.history],
                # A long run has more reports than a header may hold values.
                "evaluation_means": np.array(self.evaluation_means, np.float64),
                "evaluated_round": self.evaluated_round,
                "episode_return_mean": self.training_score,
                "serials": [list(item) for item in self.serials.items()],
                **_encode_contributions("waiting", kept.waiting),
                **_encode_contributions("replay", [one for again in kept.replay for one in again.batch]),
                "replay_batches": [[len(again.batch), again.uses] for again in kept.replay],
                "unfinished": kept.unfinished.encode(),
                **self._position(),
            }
        )

    def _position(self) -> Document:
        """Return where it is in its data; nothing for runs without epochs, whose checkpoints stay as they were."""
        if not self.first_slice and not self.slices_done:
            return {}
        return {"first_slice": self.first_slice, "slices_done": list(self.slices_done)}

    @staticmethod
    def decode(data: bytes, spec: Training) -> Progress:
        """Return the progress in `data`. Raises CheckpointError unless its run learns the same task in the same way."""
        progress, _ = _decode(data, spec)
        return progress

    @staticmethod
    def resume(data: bytes, spec: Training) -> Progress:
        """Return the progress in `data`, as decode does, for a run that continues with `spec`. Raises CheckpointError
        too if it cannot finish what learners had begun.
        """
        from training.tasks.kinds import task_of  # kinds make checkpoints

        progress, stored = _decode(data, spec)
        if words := task_of(spec).unfinished_reason(stored, progress.unfinished):
            raise CheckpointError(
                f"when the checkpoint was made, learners were in the middle of data, {words}; resume it so, or begin a"
                " new run with its weights"
            )
        return progress


def _decode(data: bytes, spec: Training) -> tuple[Progress, Training]:
    """Return the progress in `data`, and the spec that it was stored with."""
    from training.tasks.kinds import task_of  # kinds make checkpoints

    try:
        document = decode(data)
        stored = type(spec).model_validate_json(document["spec"])
        progress = Progress(
            learner=document["learner"],
            weights=document["weights"],
            version=document["version"],
            round_no=document["round_no"],
            total_progress=document["total_env_steps"],
            elapsed_s=document["elapsed_s"],
            cost_picodollars=document["cost_picodollars"],
            slot_states=dict(zip(document["env_slots"], document["env_states"], strict=True)),
            pending=tuple(document["pending"]),
            history=tuple(RoundReport.model_validate_json(report) for report in document["history"]),
            evaluation_means=tuple(map(float, document["evaluation_means"])),
            evaluated_round=document["evaluated_round"],
            training_score=document["episode_return_mean"],
            # Checkpoints of earlier releases have none of the following.
            serials=dict(document.get("serials", ())),
            waiting=tuple(_decode_contributions("waiting", document)),
            replay=tuple(_decode_batches(document)),
            unfinished=Unfinished.decode(document.get("unfinished", b"")),
            first_slice=document.get("first_slice", 0),
            slices_done=tuple(document.get("slices_done", ())),
        )
    except (CodecError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}") from None
    if (other := task_of(spec).incompatible_part(stored)) is not None:
        part, value = other
        raise CheckpointError(
            f"the checkpoint was made with another {part} ({value!r}); it fits only that one"
        )
    return progress, stored


def _encode_contributions(name: str, contributions: Sequence[Contribution]) -> Document:
    return {
        name: [contribution.payload for contribution in contributions],
        f"{name}_versions": [contribution.version for contribution in contributions],
    }


def _decode_contributions(name: str, document: Document) -> list[Contribution]:
    both = zip(document.get(name, ()), document.get(f"{name}_versions", ()), strict=True)
    return [Contribution(payload, version) for payload, version in both]


def _decode_batches(document: Document) -> Iterator[KeptBatch[Contribution]]:
    contributions = iter(_decode_contributions("replay", document))
    for size, uses in document.get("replay_batches", ()):
        batch = tuple(islice(contributions, size))
        yield KeptBatch(batch, min(contribution.version for contribution in batch), uses)


class FileCheckpointStore:
    """Checkpoints as files in one folder: written aside, synced, renamed. It keeps the last `keep` and the best one."""

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
        """Return the bytes saved under `name`. Raises CheckpointError if they are missing or changed."""
        if Path(name).name != name:
            raise CheckpointError(f"{name!r} is not the name of a checkpoint")
        return read_checkpoint(self._folder / name)

    def names(self) -> Sequence[str]:
        """Return the names of complete checkpoints that a run can continue from, oldest first."""
        return self._named(_LATEST)

    def best(self) -> str | None:
        """Return the name of the checkpoint with the best evaluation, or None."""
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
    """Return the bytes of the checkpoint file at `path`. Raises CheckpointError, which says what is wrong with it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"checkpoint {path.name} cannot be read: {error.strerror}") from None
    begin = len(_MAGIC) + _DIGEST_BYTES
    if not content.startswith(_MAGIC) or len(content) < begin:
        raise CheckpointError(f"{path.name} is not a checkpoint of Starling")
    data = content[begin:]
    digest, wanted = hashlib.sha256(data).digest(), content[len(_MAGIC) : begin]
    if digest != wanted:
        raise CheckpointError(
            f"checkpoint {path.name} is damaged: its content has hash {digest.hex()[:12]}…, "
            f"but {wanted.hex()[:12]}… was written; use an older checkpoint"
        )
    return data
