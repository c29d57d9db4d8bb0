"""Rollout calls of a case without the engine around them, for what is measured of a part alone."""

import hashlib
from typing import Any

from benchmarks.peers.cases import CASES
from benchmarks.peers.ours import job
from training.calls.rollout import RolloutRequest
from training.engine.messages import BlobRef, Call
from training.engine.seeds import derive
from training.rl.environments.making import spaces_of
from webapp.jobs.spec import JobSpec


class Part:
    """The first policy of a case and calls that sample with it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.case = CASES[settings["case"]]
        self.spec: JobSpec = job(self.case, 1, settings)
        training = self.spec.training
        self.state = training.algorithm.initial_state(
            training.network, spaces_of(training.environment), training.seed
        )
        self.weights = self.state.actor_weights(training.network)
        self.reference = BlobRef(
            version=0, sha256=hashlib.sha256(self.weights).hexdigest(), byte_count=len(self.weights)
        )

    def rollout(self, slot: int, serial: int, copies: int, slot_state: bytes | None) -> Call:
        training = self.spec.training
        return Call(
            id=f"{slot}-{serial}",
            request=RolloutRequest(
                environment=training.environment,
                environments=copies,
                steps=self.case.steps,
                slot=slot,
                discount=training.algorithm.discount,
            ),
            where="actor",
            round_no=serial,
            seed=derive(training.seed, "rollout", slot, serial),
            deadline_s=300.0,
            memory_mb=1024,
            weights=self.reference,
            slot_state=slot_state,
        )
