"""Running the engine in tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from training.calls.update import UpdateRequest
from training.engine.checkpoints import FileCheckpointStore
from training.engine.messages import Event
from training.engine.ports import CheckpointRef, Control
from training.engine.train import train
from training.spec import TrainingSpec


class Forgetful:
    """A checkpoint store for runs whose checkpoints do not matter; keeps the last in memory."""

    def __init__(self) -> None:
        self.saved: dict[int, bytes] = {}

    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        if not best:
            self.saved = {round_no: data}
        return CheckpointRef(f"{round_no}", round_no, "", len(data))

    def load(self, name: str) -> bytes:
        return self.saved[int(name)]


def events_of(spec: TrainingSpec, platform: Any, **options: Any) -> list[Event]:
    options.setdefault("checkpoints", Forgetful())
    options.setdefault("control", Control)
    return list(train(spec, platform=platform, **options))


def final_learner(spec: TrainingSpec, platform: Any, folder: Path, **options: Any) -> bytes:
    """The bytes of the learner's last state: weights, optimiser, normalisers."""
    from training.engine.checkpoints import Progress

    store = FileCheckpointStore(folder)
    events_of(spec, platform, checkpoints=store, **options)
    return Progress.decode(store.load(store.names()[-1]), spec).learner


def updates_of(spec: TrainingSpec, platform: Any) -> Iterator[tuple[UpdateRequest, tuple[bytes, ...]]]:
    """The requests and inputs of all update calls of a run."""
    events_of(spec, platform)
    for call in platform.submitted:
        if isinstance(call.request, UpdateRequest):
            yield call.request, call.inputs
