"""Learners that compute gradients learn the same wherever they run, need no torch on functions, and cost what the
provider says.
"""

from __future__ import annotations

import dataclasses
import io
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloud.actor import wire
from cloud.actor.body import ActorMemory
from cloud.money.billing.full_bill import BillContext, full_bill
from cloud.money.billing.price_book import PriceBook
from cloud.money.billing.work_file import RunSegment
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws.functions import deploy, function_name
from cloud.platforms.aws_lambda import LambdaOptions
from cloud.platforms.local import LocalOptions
from cloud.platforms.simulated_options import SimulatedOptions
from tests.cloud.aws import lambdas
from tests.cloud.emulated_bills import executions, picodollars_of_call
from tests.training.gradient_calls import gradient_call, sampled
from tests.training.runs import final_learner
from tests.training.specs import tiny
from training.engine.ports import Settlement
from training.rl.learner import LearnerState
from training.spec import TrainingSpec

BOOK = PriceBook.load()
NO_TORCH = 'raise ImportError("a function of an MLP has no torch")\n'


def spec_of(environment: str = "CartPole-v1", **changes: Any) -> TrainingSpec:
    loop = {
        "kind": "staleness_aware",
        "learners": 4,
        "trajectories_per_gradient": 1,
        "order": "launch",
        **changes.pop("loop", {}),
    }
    rollout = {"attempts": 5, "memory_mb": lambdas.MEMORY_MB}
    return tiny(
        environment,
        **{"loop": loop, "scaling": {"actors": 4}, "stop": {"rounds": 2}, "rollout": rollout, **changes},
    )


def learner_on(platform: Any, folder: Path, spec: TrainingSpec) -> bytes:
    try:
        return final_learner(spec, platform, folder)
    finally:
        platform.close()


def test_in_the_order_of_launch_every_place_gives_the_same_weights(tmp_path: Path) -> None:
    """One worker or three, learners among the actors or on the learner's machine, and a cloud on which calls fail."""
    options: dict[str, Any] = {f"local {workers}": LocalOptions(workers=workers) for workers in (1, 3)}
    options["simulated"] = SimulatedOptions(workers=2, seed=3)
    learners = {name: learner_on(one.open(), tmp_path / name, spec_of()) for name, one in options.items()}
    on_the_machine = spec_of(loop={"where": "learner"})
    for name, one in (("its machine", LocalOptions(workers=1)), ("its GPU", SimulatedOptions(workers=1))):
        learners[name] = learner_on(one.open(), tmp_path / name, on_the_machine)
    assert len(set(learners.values())) == 1


def test_in_the_order_of_arrival_it_repeats_on_the_simulated_cloud(tmp_path: Path) -> None:
    """There time is virtual: what is stale by how much follows from the seed, not from how fast workers really are."""
    spec = spec_of(loop={"order": "arrival", "actors_wait": False})
    learners = {
        learner_on(SimulatedOptions(workers=workers, seed=3).open(), tmp_path / str(workers), spec)
        for workers in (1, 2, 4)
    }
    assert len(learners) == 1
    other = SimulatedOptions(workers=2, seed=4).open()
    assert learners != {learner_on(other, tmp_path / "other", spec)}


def test_a_gradient_that_is_not_finite_is_named_so_wherever_it_is_computed() -> None:
    """So that no equal call is sent again."""
    spec, rounds = sampled()
    state = LearnerState.decode(rounds[0][0])
    far = {name: array * np.float32(1e30) for name, array in state.parameters.items()}
    call, blob = gradient_call(spec, dataclasses.replace(state, parameters=far), rounds[0][1:])
    platform = LocalOptions(workers=1).open()
    try:
        for where in ("actor", "learner"):
            weights = platform.publish(state.version, blob)
            platform.submit(call.model_copy(update={"where": where, "weights": weights, "id": where}))
            while (outcome := platform.next(60.0)) is None:
                pass
            assert (outcome.status, outcome.reason_code) == ("failed", "numbers"), outcome.reason
    finally:
        platform.close()
    request = wire.ActorRequest(run="r", call=call, weights=blob, not_after_unix_s=time.time() + 60)
    answer = wire.read_answer(ActorMemory().answer(wire.pack_request(request)))
    assert (answer.status, answer.reason_code) == ("failed", "numbers")


@pytest.mark.slow
def test_a_whole_job_on_lambda_needs_no_torch_and_costs_what_the_provider_says(tmp_path: Path) -> None:
    """On functions whose bundle fails where torch is imported, with faults. The weights are those of a run here."""
    spec = spec_of("Hopper-v5", stop={"rounds": 3})
    here = learner_on(LocalOptions(workers=2).open(), tmp_path / "here", spec)
    settled: list[Settlement] = []
    with lambdas.account() as (aws, demo):
        clients = demo.by_role.open()
        name = function_name(demo.by_role.prefix, lambdas.MEMORY_MB)
        deploy(
            clients.client("lambda"),
            name,
            without_torch(),
            demo.actor_role,
            lambdas.MEMORY_MB,
            timeout_s=120,
            log_client=clients.client("logs"),
        )
        options = LambdaOptions(function_timeout_s=120)
        ledger = MemoryLedger(10**12, on_settled=settled.append)
        inner = options.open(demo.by_role)
        platform = MeteredPlatform(inner, ledger, options.tariff(BOOK, lambdas.MEMORY_MB))
        for kind in ("throttle", "error_after"):
            aws.faults.order(kind)
        there = learner_on(platform, tmp_path / "lambda", spec)
        assert set(executions(aws.meter).values()) == {1}
        paid = [one for one in settled if one.usage["work"]["where"] == "actor"]  # type: ignore[index]
        for one in paid:
            metered = picodollars_of_call(aws.meter, one.id, BOOK, "us-east-1")
            assert one.picodollars == metered or (one.basis == "assumed" and one.picodollars > metered)
        assert sum(one.basis == "assumed" for one in paid) == 1, "only the lost answer's cost is unknown"
    assert there == here
    bill = full_bill([RunSegment.of({"training": spec.model_dump(mode="json")}, settled)], BillContext())
    assert bill.parts["gradients"] > 0
    assert bill.parts["dropped"] == 0
    kinds = [one.usage["work"]["kind"] for one in settled]  # type: ignore[index]
    assert kinds.count("gradient") >= 3 * 4 * 2
    assert kinds.count("update") == 0


def without_torch() -> Any:
    """Return the actors' code with a torch that cannot be imported."""
    bundle = lambdas.thin()
    buffer = io.BytesIO(bundle.data)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("torch.py", NO_TORCH)
    return dataclasses.replace(bundle, data=buffer.getvalue())
