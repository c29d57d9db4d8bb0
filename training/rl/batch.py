"""Trajectories as one set of arrays, checked before they are learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from training.engine.codec import Document, decode
from training.rl.spaces import Spaces

_OBSERVATIONS = ("observations", "last_observations", "final_observations")
_DTYPES = {
    "log_probs": "<f4",
    "rewards": "<f4",
    "terminated": "|b1",
    "truncated": "|b1",
    "discounted_returns": "<f8",
    "final_index": "<i4",
    "episode_returns": "<f8",
    "episode_lengths": "<i4",
}
_FINITE = ("rewards", "log_probs", "discounted_returns", "actions", *_OBSERVATIONS)


class BadTrajectory(ValueError):
    """A trajectory does not fit its request; it was not learned from."""


@dataclass(frozen=True)
class Batch:
    """Samples to learn from. The first two axes are time and environment (trajectories side by side).

    `versions` holds the version of the policy that sampled each column.
    """

    versions: npt.NDArray[np.int64]
    observations: npt.NDArray[Any]
    actions: npt.NDArray[Any]
    log_probs: npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    discounted_returns: npt.NDArray[np.float64]
    last_observations: npt.NDArray[Any]
    final_index: npt.NDArray[np.int32]
    final_observations: npt.NDArray[Any]
    episode_returns: npt.NDArray[np.float64]
    episode_lengths: npt.NDArray[np.int32]

    @property
    def size(self) -> int:
        return int(self.rewards.size)

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        return self.terminated | self.truncated

    @staticmethod
    def of(payloads: Sequence[bytes], versions: range, spaces: Spaces) -> Batch:
        """Return the trajectories side by side, in their order. Raises BadTrajectory, which says what is wrong with
        one.

        `versions` are those that may be learned from: one in a synchronous round, a few where learner and actors
        overlap.
        """
        documents = [decode(payload) for payload in payloads]
        for position, document in enumerate(documents):
            _check_form(document, versions, spaces, f"trajectory {position}")
        if not documents:
            raise BadTrajectory("there is no trajectory to learn from")
        if len({document["rewards"].shape[0] for document in documents}) > 1:
            raise BadTrajectory("trajectories of one update have different numbers of steps")

        def beside(name: str) -> Any:
            return np.concatenate([document[name] for document in documents], axis=1)

        def after(name: str) -> Any:
            return np.concatenate([document[name] for document in documents], axis=0)

        columns = [document["rewards"].shape[1] for document in documents]
        made = Batch(
            versions=np.repeat([document["version"] for document in documents], columns).astype(np.int64),
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
        try:
            _check_numbers(vars(made), "the batch", spaces)
        except BadTrajectory:
            # Checking all at once is faster; each trajectory is checked by itself only to name the wrong one.
            for position, document in enumerate(documents):
                _check_numbers(document, f"trajectory {position}", spaces)
            raise
        return made


def _shifted(documents: list[Document]) -> npt.NDArray[np.int32]:
    """Return the final indices, with each trajectory's columns moved to their place in the batch."""
    parts, column = [], 0
    for document in documents:
        parts.append(document["final_index"] + np.array([0, column], dtype=np.int32))
        column += document["rewards"].shape[1]
    return np.concatenate(parts, axis=0)


def check(document: Document, versions: range, spaces: Spaces, what: str = "the trajectory") -> None:
    """Check that a decoded trajectory can be learned from. Raises BadTrajectory, which says what is wrong with
    `what`.
    """
    _check_form(document, versions, spaces, what)
    _check_numbers(document, what, spaces)


def _check_form(document: Document, versions: range, spaces: Spaces, what: str) -> None:
    """Check everything but the numbers themselves."""
    dtypes = _dtypes(spaces.pictures, spaces.discrete)
    for name, dtype in dtypes.items():
        array = document.get(name)
        if not isinstance(array, np.ndarray):
            raise BadTrajectory(f"{what} lacks {name}")
        if array.dtype != dtype:
            raise BadTrajectory(f"{what} has {name} as {array.dtype}")
    if document.get("version") not in versions:
        allowed = (
            f"version {versions[0]}" if len(versions) == 1 else f"versions {versions[0]} to {versions[-1]}"
        )
        raise BadTrajectory(
            f"{what} was sampled with version {document.get('version')}; {allowed} may be learned from"
        )
    _check_shapes(document, what, spaces)


@cache
def _dtypes(pictures: bool, discrete: bool) -> dict[str, np.dtype[Any]]:
    """Return each array's dtype."""
    names = {**_DTYPES, **dict.fromkeys(_OBSERVATIONS, "|u1" if pictures else "<f4")}
    return {name: np.dtype(kind) for name, kind in {**names, "actions": "<i8" if discrete else "<f4"}.items()}


def _check_shapes(document: Document, what: str, spaces: Spaces) -> None:
    steps, copies = document["rewards"].shape if document["rewards"].ndim == 2 else (0, 0)
    finals = len(document["final_index"])
    actions = len(spaces.action_counts) or len(spaces.action_low)
    one_choice = spaces.discrete and actions == 1
    expected = {
        "observations": (steps, copies, *spaces.observation_shape),
        "actions": (steps, copies) if one_choice else (steps, copies, actions),
        "log_probs": (steps, copies),
        "terminated": (steps, copies),
        "truncated": (steps, copies),
        "discounted_returns": (steps, copies),
        "last_observations": (copies, *spaces.observation_shape),
        "final_index": (finals, 2),
        "final_observations": (finals, *spaces.observation_shape),
    }
    for name, shape in expected.items():
        if not steps or document[name].shape != shape:
            raise BadTrajectory(f"{what} has {name} of shape {document[name].shape}, not {shape}")
    shape, index = document["rewards"].shape, document["final_index"]
    if len(index) and ((index < 0).any() or (index >= shape).any()):
        raise BadTrajectory(f"{what} points at steps that it does not have")


def _check_numbers(document: Document, what: str, spaces: Spaces) -> None:
    for name in _FINITE:
        if document[name].dtype.kind == "f" and not _finite(document[name]):
            raise BadTrajectory(f"{what} has {name} that are not finite numbers")
    if spaces.discrete:
        counts = np.array(spaces.action_counts if len(spaces.action_counts) > 1 else spaces.action_counts[0])
        if (document["actions"] < 0).any() or (document["actions"] >= counts).any():
            raise BadTrajectory(f"{what} has actions that the environment does not have")


def _finite(array: npt.NDArray[Any]) -> bool:
    return bool(np.logical_and.reduce(np.isfinite(array), axis=None))
