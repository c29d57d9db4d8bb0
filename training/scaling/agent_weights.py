"""The network of a trained scheduler as a spec holds it: base64 text, which anyone may have written."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from training.rl.networks.inference import NumpyPolicy

MOST_LETTERS = 4_000_000
_LIMIT_BYTES = MOST_LETTERS // 4 * 3
"""What so many letters are without compression: compressed weights may not unpack to more."""
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError)


def as_text(weights: bytes) -> str:
    """Return a scheduler's published weights as a spec holds them."""
    return base64.b64encode(weights).decode("ascii")


def read_agent(weights: str) -> NumpyPolicy:
    """Return the network of these weights. Raises ValueError, one sentence, if they are none."""
    with _refusing():
        policy = NumpyPolicy(base64.b64decode(weights, validate=True), limit_bytes=_LIMIT_BYTES)
        # Decisions are timed and paid by this number. Weights of early versions do not have it.
        of_layers = policy.dense_macs
        if of_layers is None or type(policy.macs) is not int or policy.macs not in (0, of_layers):
            raise ValueError
    return policy


def check_inputs(policy: NumpyPolicy, state_size: int) -> None:
    """Raise ValueError, one sentence, unless the network reads so many numbers."""
    with _refusing():
        policy.outputs(np.zeros((1, state_size), dtype=np.float32))


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        with np.errstate(all="ignore"):
            yield
    except _UNREADABLE as error:
        raise ValueError(f"these are not the weights of a scheduler ({type(error).__name__})") from None
