"""What descent carries from one version to the next: parameters and the optimiser's state, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from training.engine.codec import decode, encode
from training.supervised.models.model import Parameters
from training.supervised.models.optimisers import OptimiserState

_PARAMETER, _OPTIMISER = "p:", "o:"


@dataclass(frozen=True)
class DescentState:
    """`version` counts published parameters; the first is 0."""

    version: int
    parameters: Parameters
    optimiser: OptimiserState

    def encode(self) -> bytes:
        return encode(
            {
                "version": self.version,
                "steps": self.optimiser.steps,
                **{_PARAMETER + name: array for name, array in self.parameters.items()},
                **{_OPTIMISER + name: array for name, array in self.optimiser.arrays.items()},
            }
        )

    @staticmethod
    def decode(data: bytes) -> DescentState:
        document = decode(data)
        arrays = {
            prefix: {
                name.removeprefix(prefix): array
                for name, array in document.items()
                if name.startswith(prefix)
            }
            for prefix in (_PARAMETER, _OPTIMISER)
        }
        state = OptimiserState(document["steps"], arrays[_OPTIMISER])
        return DescentState(document["version"], arrays[_PARAMETER], state)

    @property
    def weights(self) -> bytes:
        """What functions need of this version: the parameters alone."""
        return encode(
            {
                "version": self.version,
                **{_PARAMETER + name: array for name, array in self.parameters.items()},
            }
        )

    @property
    def diverged(self) -> bool:
        """Whether a parameter is not a finite number any more."""
        return not all(np.isfinite(array).all() for array in self.parameters.values())


def parameters_in(weights: bytes) -> tuple[int, Parameters]:
    """Return the version and the parameters that were published."""
    document = decode(weights)
    arrays = {
        name.removeprefix(_PARAMETER): array
        for name, array in document.items()
        if name.startswith(_PARAMETER)
    }
    return document["version"], arrays
