"""All that learning carries from one update to the next, as plain arrays: the learner is a function of it.

An update call takes a state and trajectories and gives the next state, so it can run anywhere, and a checkpoint is
complete when it holds this.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from training.codec import Document, decode, encode
from training.environments.model import Spaces
from training.networks import Parameters, initial_parameters
from training.normalisers import Moments
from training.spec import TrainingSpec


@dataclass(frozen=True)
class LearnerState:
    """Weights, optimiser and normalisers. `version` counts published policies; the first is 0."""

    version: int
    discrete: bool
    parameters: Parameters
    first_moments: Parameters
    second_moments: Parameters
    optimiser_steps: int
    observation_moments: Moments | None
    return_moments: Moments | None

    @staticmethod
    def initial(spec: TrainingSpec, spaces: Spaces, seed: int) -> LearnerState:
        parameters = initial_parameters(spec.network, spaces, seed)
        zeros = {name: np.zeros_like(array) for name, array in parameters.items()}
        algorithm = spec.algorithm
        return LearnerState(
            version=0,
            discrete=spaces.discrete,
            parameters=parameters,
            first_moments=zeros,
            second_moments=zeros,
            optimiser_steps=0,
            observation_moments=(
                Moments.nothing_seen(spaces.observation_size) if algorithm.normalise_observations else None
            ),
            return_moments=Moments.nothing_seen(1) if algorithm.normalise_rewards else None,
        )

    def encode(self) -> bytes:
        document: Document = {
            "version": self.version,
            "discrete": self.discrete,
            "optimiser_steps": self.optimiser_steps,
            "names": list(self.parameters),
        }
        for name in self.parameters:
            document[f"w:{name}"] = self.parameters[name]
            document[f"m:{name}"] = self.first_moments[name]
            document[f"v:{name}"] = self.second_moments[name]
        for key, moments in (("observation", self.observation_moments), ("return", self.return_moments)):
            if moments is not None:
                document[f"{key}_count"] = moments.count
                document[f"{key}_mean"] = moments.mean
                document[f"{key}_variance"] = moments.variance
        return encode(document)

    @staticmethod
    def decode(data: bytes) -> LearnerState:
        document = decode(data)
        names = document["names"]

        def moments(key: str) -> Moments | None:
            if f"{key}_count" not in document:
                return None
            return Moments(document[f"{key}_mean"], document[f"{key}_variance"], document[f"{key}_count"])

        return LearnerState(
            version=document["version"],
            discrete=document["discrete"],
            parameters={name: document[f"w:{name}"] for name in names},
            first_moments={name: document[f"m:{name}"] for name in names},
            second_moments={name: document[f"v:{name}"] for name in names},
            optimiser_steps=document["optimiser_steps"],
            observation_moments=moments("observation"),
            return_moments=moments("return"),
        )

    def having_seen(self, observations: np.ndarray, discounted_returns: np.ndarray) -> LearnerState:
        """This state with a round's observations and returns merged into its normalisers."""
        seen, returns = self.observation_moments, self.return_moments
        return replace(
            self,
            observation_moments=None if seen is None else seen.merged(observations),
            return_moments=None if returns is None else returns.merged(discounted_returns.reshape(-1, 1)),
        )

    def normaliser(self) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
        """Mean and scale of observations in float32, exactly as actors of this version use them."""
        if self.observation_moments is None:
            return None, None
        seen = self.observation_moments
        return seen.mean.astype(np.float32), seen.scale().astype(np.float32)

    def actor_weights(self, activation: str) -> bytes:
        """What an actor needs of this version: the policy and its normaliser, nothing of the learner."""
        policy = {name: array for name, array in self.parameters.items() if name.startswith("policy.")}
        document: Document = {
            "version": self.version,
            "discrete": self.discrete,
            "activation": activation,
            "layers": sum(name.endswith(".weight") for name in policy),
            **policy,
        }
        mean, scale = self.normaliser()
        if mean is not None:
            document["observation_mean"] = mean
            document["observation_scale"] = scale
        return encode(document)
