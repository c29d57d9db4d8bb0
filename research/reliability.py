"""Does R repeat? At every round of one training, R is measured from two batches that know nothing of each other.

Two fleets of actors sample the same policies, each with chance and environments of its own; only the first is learned
from. R is then measured after each update as Nitro does, at the same parameters, once from each fleet's samples and for
each number of samples and of Hessian products. What both agree on is the policy's; the rest is sampling noise.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from training.base_model import FrozenModel
from training.calls.rollout import RolloutRequest
from training.engine.messages import Call
from training.engine.seeds import derive
from training.functions.body import WarmCache
from training.functions.rollout import rollout
from training.rl.batch import Batch
from training.rl.environments.making import spaces_of
from training.rl.learner import LearnerState
from training.rl.measures.curvature import CurvatureSpec, measure_curvature
from training.rl.networks import Network, Parameters
from training.rl.surfaces.update_samples import UpdateSamples
from training.spec import TrainingSpec

_FLEETS = ("first", "second")


class Reliability(FrozenModel):
    """`actors` sample in every round; R is measured from each number of `samples` with each number of `products`."""

    kind: Literal["reliability"] = "reliability"
    actors: int = Field(16, ge=1)
    samples: tuple[int, ...] = Field((256, 512, 1024, 2048, 4096), min_length=1)
    products: tuple[int, ...] = Field((10, 20), min_length=1)

    def quick(self) -> Reliability:
        return self.model_copy(update={"samples": self.samples[:2], "products": self.products[:1]})


class _Fleet:
    """Actors that sample each round's policy, and go on from where their environments were."""

    def __init__(self, training: TrainingSpec, name: str, actors: int) -> None:
        self._training = training
        self._name = name
        self._states: list[bytes | None] = [None] * actors
        self._cache = WarmCache()

    def sample(self, state: LearnerState, round_no: int) -> tuple[Batch, float]:
        """A round's batch, and the seconds that its slowest actor took."""
        training, weights = self._training, state.actor_weights(self._training.network)
        payloads, slowest_s = [], 0.0
        for slot, slot_state in enumerate(self._states):
            request = RolloutRequest(
                environment=training.environment,
                environments=training.rollout.environments_per_actor,
                steps=training.rollout.steps_per_call,
                slot=slot,
                discount=training.algorithm.discount,
            )
            call = Call(
                id=f"{self._name}-{round_no}-{slot}",
                request=request,
                where="actor",
                round_no=round_no,
                seed=derive(training.seed, "reliability", self._name, round_no, slot),
                deadline_s=training.rollout.deadline_s,
                memory_mb=training.rollout.memory_mb,
                slot_state=slot_state,
            )
            began_s = time.process_time()
            rolled = rollout(call, request, weights, self._cache)
            slowest_s = max(slowest_s, time.process_time() - began_s)
            self._states[slot] = rolled.slot_state
            payloads.append(rolled.payload)
        versions = range(state.version, state.version + 1)
        return Batch.of(payloads, versions, state.spaces), slowest_s


def measurements(training: TrainingSpec, study: Reliability, done: set[int]) -> Iterator[dict[str, Any]]:
    """A row for each round that is not yet `done`; the training is made again, as it was."""
    algorithm, network = training.algorithm, training.network
    state = algorithm.initial_state(
        network, spaces_of(training.environment), derive(training.seed, "network")
    )
    fleets = [_Fleet(training, name, study.actors) for name in _FLEETS]
    rounds = training.stop.rounds or 0
    # What a second update of the same batch would learn from is known after one pass.
    once = algorithm.model_copy(update={"epochs": 1}) if hasattr(algorithm, "epochs") else algorithm
    for round_no in range(1, rounds + 1):
        (batch, rollout_s), (other, _) = (fleet.sample(state, round_no) for fleet in fleets)
        seed, progress = derive(training.seed, "update", round_no), (round_no - 1) / rounds
        began_s = time.process_time()
        learned = algorithm.learn(state, batch, network, progress, seed)
        update_s = time.process_time() - began_s
        if round_no not in done:
            seen = learned.update_samples, once.learn(state, other, network, progress, seed).update_samples
            parameters = learned.state.parameters
            yield {
                "kind": "reliability",
                "round": round_no,
                "env_steps": round_no * batch.size,
                "rollout_s": rollout_s,
                "update_s": update_s,
                "approximate_kl": learned.report.approximate_kl,
                "measured": [
                    row
                    for samples in study.samples
                    if samples <= batch.size
                    for products in study.products
                    for row in (
                        _measured(training, network, state, parameters, seen, samples, products, round_no),
                    )
                ],
            }
        state = learned.state


def _measured(
    training: TrainingSpec,
    network: Network,
    state: LearnerState,
    parameters: Parameters,
    seen: tuple[UpdateSamples, UpdateSamples],
    samples: int,
    products: int,
    round_no: int,
) -> dict[str, Any]:
    """R from each fleet's samples, and the mean seconds that one measurement took."""
    spec = CurvatureSpec(samples=samples, products=products)
    began_s = time.process_time()
    measured = [
        measure_curvature(
            spec,
            network,
            state.spaces,
            parameters,
            update_samples,
            clip=training.algorithm.surrogate_clip,
            weights=training.algorithm.loss_weights,
            seed=derive(training.seed, "curvature", fleet, round_no),
        )
        for fleet, update_samples in zip(_FLEETS, seen, strict=True)
    ]
    return {
        "samples": samples,
        "products": products,
        "ratios": [pair.ratio for pair in measured],
        "measure_s": (time.process_time() - began_s) / len(measured),
    }
