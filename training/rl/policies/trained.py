"""A trained policy with its spec, read from a checkpoint, to be exported or analysed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from training.engine.checkpoints import CheckpointError, Progress, read_checkpoint
from training.engine.codec import CodecError, decode
from training.rl.learner import LearnerState
from training.rl.networks.inference import NumpyPolicy
from training.spec import TrainingSpec
from training.tasks.kinds import AnyTraining, read_training


@dataclass(frozen=True)
class TrainedPolicy:
    """One version of a policy. `spec` is the spec that the checkpoint was written with."""

    spec: TrainingSpec
    progress: Progress
    learner: LearnerState

    @staticmethod
    def of(data: bytes) -> TrainedPolicy:
        """Return the policy in a checkpoint's bytes. Raises CheckpointError if they are not a checkpoint."""
        try:
            spec = TrainingSpec.model_validate_json(decode(data)["spec"])
            progress = Progress.decode(data, spec)
            return TrainedPolicy(spec, progress, LearnerState.decode(progress.learner))
        except (CodecError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, CheckpointError):
                raise
            raise CheckpointError(f"the checkpoint cannot be read: {error}") from None

    @staticmethod
    def read(path: Path) -> TrainedPolicy:
        """Return the policy in a checkpoint's file. Raises CheckpointError, which says what is wrong with it."""
        return TrainedPolicy.of(read_checkpoint(path))

    def policy(self) -> NumpyPolicy:
        """Return the policy, ready to act."""
        return NumpyPolicy(self.learner.actor_weights(self.spec.network))


def spec_in(path: Path) -> AnyTraining:
    """Return the spec, of any kind, that a checkpoint's file was written with. Raises CheckpointError."""
    data = read_checkpoint(path)
    try:
        return read_training(json.loads(decode(data)["spec"]))
    except (CodecError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the checkpoint cannot be read: {error}") from None
