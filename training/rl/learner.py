"""The learner's state: all that learning carries from one update to the next, as plain arrays.

An update call takes a state and trajectories and returns the next state, so it can run anywhere, and a checkpoint
that holds the state is complete.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from training.engine.codec import Document, decode, encode
from training.rl.networks import LOG_STD, Network, Parameters
from training.rl.networks.layer import published_names
from training.rl.normalisers import Moments
from training.rl.spaces import Spaces

_GROUPS = {"w": "parameters", "m": "first_moments", "v": "second_moments", "t": "target_parameters"}


class RoundSums(NamedTuple):
    """What learners have found in a round of several versions. What is due once a round reads it at the round's end:
    normalisers merge the moments, and PPO's KL weight follows the mean divergence of that many gradients.
    """

    observation_moments: Moments | None = None
    return_moments: Moments | None = None
    divergence: float = 0.0
    divergences: int = 0

    @property
    def mean_divergence(self) -> float | None:
        return self.divergence / self.divergences if self.divergences else None

    def add(
        self, observations: Moments | None, returns: Moments | None, divergence: float | None
    ) -> RoundSums:
        return RoundSums(
            _joined(self.observation_moments, observations),
            _joined(self.return_moments, returns),
            self.divergence + (divergence or 0.0),
            self.divergences + (divergence is not None),
        )


NO_SUMS = RoundSums()


def _joined(one: Moments | None, other: Moments | None) -> Moments | None:
    if one is None or other is None:
        return one or other
    return one.join(other)


@dataclass(frozen=True)
class LearnerState:
    """Weights, optimiser and normalisers. `version` counts published policies; the first is 0.

    `target_parameters` are the slowly following copy that IMPACT learns against, `updates` the number of updates so
    far, `kl_coefficient` the adaptive weight of PPO's optional KL penalty. `round_sums` is empty where a version ends
    its round, `step_divergence` is how far a step usually moves the policy, where that is measured. The state that a
    gradient is computed with has no moments of the optimiser.
    """

    version: int
    spaces: Spaces
    parameters: Parameters
    first_moments: Parameters
    second_moments: Parameters
    optimiser_steps: int
    observation_moments: Moments | None
    return_moments: Moments | None
    target_parameters: Parameters
    kl_coefficient: float = 0.0
    round_sums: RoundSums = NO_SUMS
    step_divergence: float = 0.0

    @staticmethod
    def initial(
        network: Network,
        spaces: Spaces,
        seed: int,
        *,
        normalise_observations: bool = False,
        normalise_rewards: bool = False,
        with_target: bool = False,
        kl_coefficient: float = 0.0,
    ) -> LearnerState:
        parameters = network.initial_parameters(spaces, seed)
        zeros = {name: np.zeros_like(array) for name, array in parameters.items()}
        # Pictures are scaled by 255 inside the network, so there is nothing to normalise.
        normalise = normalise_observations and not spaces.pictures
        return LearnerState(
            version=0,
            spaces=spaces,
            parameters=parameters,
            first_moments=zeros,
            second_moments=zeros,
            optimiser_steps=0,
            observation_moments=Moments.empty(spaces.observation_size) if normalise else None,
            return_moments=Moments.empty(1) if normalise_rewards else None,
            target_parameters=parameters if with_target else {},
            kl_coefficient=kl_coefficient,
        )

    def encode(self) -> bytes:
        document: Document = {
            "version": self.version,
            "spaces": [
                list(self.spaces.observation_shape),
                list(self.spaces.action_counts),
                list(self.spaces.action_low),
                list(self.spaces.action_high),
            ],
            "optimiser_steps": self.optimiser_steps,
            "kl_coefficient": self.kl_coefficient,
            "names": list(self.parameters),
            "target": bool(self.target_parameters),
        }
        for letter, group in _GROUPS.items():
            for name, array in getattr(self, group).items():
                document[f"{letter}:{name}"] = array
        # None of these is written where every version ends a round.
        if not self.first_moments:
            document["optimiser"] = False
        if self.round_sums.divergences:
            document["round_divergence"] = list(self.round_sums[2:])
        if self.step_divergence:
            document["step_divergence"] = self.step_divergence
        for key, moments in (
            ("observation", self.observation_moments),
            ("return", self.return_moments),
            ("round_observation", self.round_sums.observation_moments),
            ("round_return", self.round_sums.return_moments),
        ):
            if moments is not None:
                document[f"{key}_count"] = moments.count
                document[f"{key}_mean"] = moments.mean
                document[f"{key}_variance"] = moments.variance
        return encode(document)

    @staticmethod
    def decode(data: bytes) -> LearnerState:
        document = decode(data)
        names = document["names"]

        def group(letter: str) -> Parameters:
            return {name: document[f"{letter}:{name}"] for name in names}

        def moments(key: str) -> Moments | None:
            if f"{key}_count" not in document:
                return None
            return Moments(document[f"{key}_mean"], document[f"{key}_variance"], document[f"{key}_count"])

        optimiser = document.get("optimiser", True)
        return LearnerState(
            version=document["version"],
            spaces=Spaces(*(tuple(part) for part in document["spaces"])),
            parameters=group("w"),
            first_moments=group("m") if optimiser else {},
            second_moments=group("v") if optimiser else {},
            optimiser_steps=document["optimiser_steps"],
            observation_moments=moments("observation"),
            return_moments=moments("return"),
            target_parameters=group("t") if document["target"] else {},
            kl_coefficient=document["kl_coefficient"],
            round_sums=RoundSums(
                moments("round_observation"),
                moments("round_return"),
                *document.get("round_divergence", (0.0, 0)),
            ),
            step_divergence=document.get("step_divergence", 0.0),
        )

    def for_gradients(self) -> LearnerState:
        """Return what a gradient is computed with: all but the optimiser and what earlier gradients have brought."""
        return replace(
            self,
            first_moments={},
            second_moments={},
            optimiser_steps=0,
            round_sums=NO_SUMS,
            step_divergence=0.0,
        )

    def with_moments_of(
        self, observations: npt.NDArray[Any], discounted_returns: npt.NDArray[Any]
    ) -> LearnerState:
        """Return this state with a round's observations and returns merged into its normalisers."""
        seen, returns = self.observation_moments, self.return_moments
        return replace(
            self,
            observation_moments=(
                None if seen is None else seen.merge(observations.reshape(-1, self.spaces.observation_size))
            ),
            return_moments=None if returns is None else returns.merge(discounted_returns.reshape(-1, 1)),
        )

    def normaliser(self) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]] | tuple[None, None]:
        """Return the mean and scale of observations in float32, exactly as this version's actors use them."""
        if self.observation_moments is None:
            return None, None
        seen = self.observation_moments
        return seen.mean.astype(np.float32), seen.scale().astype(np.float32)

    def actor_weights(self, network: Network) -> bytes:
        """Return what an actor needs of this version: the policy and its normaliser, nothing of the learner."""
        layers = network.layout(self.spaces).actor
        document: Document = {
            "version": self.version,
            "action_counts": list(self.spaces.action_counts),
            "pictures": self.spaces.pictures,
            "activation": network.activation,
            "layers": [[named.name, *named.layer.published] for named in layers],
            "macs": network.policy_macs(self.spaces),
        }
        for named in layers:
            for name in named.parameters:
                document[name] = self.parameters[name]
        if LOG_STD in self.parameters:
            document[LOG_STD] = self.parameters[LOG_STD]
        mean, scale = self.normaliser()
        if mean is not None:
            document["observation_mean"] = mean
            document["observation_scale"] = scale
        return encode(document)


class PublishedPolicy(NamedTuple):
    """A version of the policy as actors have it: its parameters, and how it normalises observations."""

    version: int
    parameters: Parameters
    observation_mean: npt.NDArray[np.float32] | None
    observation_scale: npt.NDArray[np.float32] | None

    @staticmethod
    def decode(weights: bytes) -> PublishedPolicy:
        """Return the policy in the bytes that actors get."""
        document = decode(weights)
        return PublishedPolicy(
            document["version"],
            {name: document[name] for name in published_names(document)},
            document.get("observation_mean"),
            document.get("observation_scale"),
        )
