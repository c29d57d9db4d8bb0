"""A round's trajectories as one set of arrays, checked before anything is learned from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from training.codec import Document, decode

_DTYPES = {
    "observations": "f4",
    "actions": "",
    "log_probs": "f4",
    "rewards": "f4",
    "terminated": "b1",
    "truncated": "b1",
    "discounted_returns": "f8",
    "last_observations": "f4",
    "final_index": "i4",
    "final_observations": "f4",
    "episode_returns": "f8",
    "episode_lengths": "i4",
}


class BadTrajectory(ValueError):
    """A trajectory that is not what was asked for; nothing was learned from it."""


@dataclass(frozen=True)
class Batch:
    """Samples of one version of the policy. The first two axes are time and environment (slots side by side)."""

    observations: npt.NDArray[np.float32]
    actions: npt.NDArray[Any]
    log_probs: npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    discounted_returns: npt.NDArray[np.float64]
    last_observations: npt.NDArray[np.float32]
    final_index: npt.NDArray[np.int32]
    final_observations: npt.NDArray[np.float32]
    episode_returns: npt.NDArray[np.float64]
    episode_lengths: npt.NDArray[np.int32]

    @property
    def size(self) -> int:
        return int(self.rewards.size)

    @staticmethod
    def of(payloads: Sequence[bytes], version: int, observation_size: int) -> Batch:
        """The trajectories in `payloads` side by side, in their order. BadTrajectory names what is wrong."""
        documents = [
            _checked(decode(payload), i, version, observation_size) for i, payload in enumerate(payloads)
        ]
        if not documents:
            raise BadTrajectory("there is no trajectory to learn from")
        if len({document["rewards"].shape[0] for document in documents}) > 1:
            raise BadTrajectory("trajectories of one round have different numbers of steps")

        def beside(name: str) -> Any:
            return np.concatenate([document[name] for document in documents], axis=1)

        def after(name: str) -> Any:
            return np.concatenate([document[name] for document in documents], axis=0)

        return Batch(
            observations=beside("observations"),
            actions=beside("actions"),
            log_probs=beside("log_probs"),
            rewards=beside("rewards"),
            terminated=beside("terminated"),
            truncated=beside("truncated"),
            discounted_returns=beside("discounted_returns"),
            last_observations=after("last_observations"),
            final_index=_shifted(documents),
            final_observations=after("final_observations"),
            episode_returns=after("episode_returns"),
            episode_lengths=after("episode_lengths"),
        )


def _shifted(documents: list[Document]) -> npt.NDArray[np.int32]:
    """Final indices with each trajectory's columns moved to where they stand in the batch."""
    parts, column = [], 0
    for document in documents:
        parts.append(document["final_index"] + np.array([0, column], dtype=np.int32))
        column += document["rewards"].shape[1]
    return np.concatenate(parts, axis=0)


def _checked(document: Document, position: int, version: int, observation_size: int) -> Document:
    for name, dtype in _DTYPES.items():
        array = document.get(name)
        if not isinstance(array, np.ndarray):
            raise BadTrajectory(f"trajectory {position} lacks {name}")
        if dtype and array.dtype.str[1:] != dtype:
            raise BadTrajectory(f"trajectory {position} has {name} as {array.dtype}")
    if document.get("version") != version:
        raise BadTrajectory(
            f"trajectory {position} was sampled with version {document.get('version')}; the round is of {version}"
        )
    _check_shapes(document, position, observation_size)
    return document


def _check_shapes(document: Document, position: int, observation_size: int) -> None:
    steps, copies = document["rewards"].shape if document["rewards"].ndim == 2 else (0, 0)
    finals = len(document["final_index"])
    expected = {
        "observations": (steps, copies, observation_size),
        "log_probs": (steps, copies),
        "terminated": (steps, copies),
        "truncated": (steps, copies),
        "discounted_returns": (steps, copies),
        "last_observations": (copies, observation_size),
        "final_index": (finals, 2),
        "final_observations": (finals, observation_size),
    }
    for name, shape in expected.items():
        if not steps or document[name].shape != shape:
            raise BadTrajectory(
                f"trajectory {position} has {name} of shape {document[name].shape}, not {shape}"
            )
    if document["actions"].shape[:2] != (steps, copies):
        raise BadTrajectory(f"trajectory {position} has actions of shape {document['actions'].shape}")
    for name in ("observations", "rewards", "log_probs"):
        if not np.isfinite(document[name]).all():
            raise BadTrajectory(f"trajectory {position} has {name} that are not finite numbers")
    if finals and ((document["final_index"] < 0).any() or (document["final_index"] >= (steps, copies)).any()):
        raise BadTrajectory(f"trajectory {position} points at steps that it does not have")
