"""Small clouds for tests: profiles and stacks without chance, whose times are round numbers to be added up by hand."""

from __future__ import annotations

from typing import Any

from cloud.platforms.simulated_options import SimulatedOptions
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.stack import Stack
from cloud.timing.simulation.core import SimulatedSetting
from tests.cloud.instant_executor import InstantExecutor
from tests.cloud.meter import SimulatedOnMeter


def quantity(value: float) -> dict[str, Any]:
    return {"value": value, "low": 0.0, "high": max(value, 1.0) * 1e6, "source": "made up", "kind": "assumed"}


_FUNCTIONS: dict[str, Any] = {
    "cold_s": 2.0,
    "cold_sigma": 0.0,
    "cold_cap_s": 5.0,
    "warm_s": 0.5,
    "keep_warm_s": 100.0,
    "concurrent": 1000.0,
    "starts_at_once": 1000.0,
    "starts_per_s": 1000.0,
    "whole_core_mb": 1000.0,
    "most_cores": 6.0,
}
_POOL: dict[str, Any] = {
    "start_s": 20.0,
    "start_sigma": 0.0,
    "hand_over_s": 0.5,
    "creates_at_once": 1000.0,
    "creates_per_s": 1000.0,
    "idle_s": 100.0,
    "most_actors": 400.0,
}
_PARTS: dict[str, Any] = {
    "network": {
        "round_trip_s": 0.25,
        "actor_mbit_per_s": 8.0,
        "coordinator_mbit_per_s": 8_000_000.0,
        "payload_limit_mb": 1e6,
        "detour_s": 0.0,
    },
    "chance": {"failure_share": 0.0, "late_share": 0.0, "late_s": 10.0, "straggler_sigma": 0.0},
    "learner": {
        "server_start_s": 60.0,
        "function_start_s": 1.5,
        "function_keep_warm_s": 100.0,
        "sharing_mlp": 0.0,
        "sharing_cnn": 1.0,
    },
}
_STACK: dict[str, Any] = {
    "import_s": 0.0,
    "first_environment_s": 0.0,
    "rebuild_s": 0.0,
    "call_ms": 0.0,
    "step_us": 0.0,
    "environment_step_fallback_us": 90_000.0,
    "hessian_product_per_gradient": 2.0,
    "codec_us_per_megabyte": 0.0,
    "coordinator_ms": 0.0,
}


def profile(*, pool: dict[str, Any] | None = None, **changes: float) -> Profile:
    """Cold 2 s, warm 0.5 s, a whole core at 1,000 MB, 1 MB/s for each actor, 250 ms there and back; no chance anywhere.

    `profile(cold_s=3.0)` changes one number by its name. With `pool` actors stand and take 20 s to start.
    """

    def numbers(of: dict[str, Any]) -> dict[str, Any]:
        return {name: quantity(changes.get(name, value)) for name, value in of.items()}

    document: dict[str, Any] = {name: numbers(part) for name, part in _PARTS.items()}
    document |= {
        "title": "Round numbers",
        "words": "made up for tests",
        "region": "us-east-1",
        "provider": "aws",
        "default_learner_sku": "c5.4xlarge",
        "core_ratio": quantity(changes.get("core_ratio", 1.0)),
    }
    skus = {"duration_sku": "lambda.duration.x86", "request_sku": "lambda.request"}
    skus |= {
        "provisioned_sku": "lambda.provisioned.x86",
        "provisioned_duration_sku": "lambda.provisioned.duration.x86",
    }
    if pool is None:
        document["actors"] = {"kind": "functions", **numbers(_FUNCTIONS), **skus}
    else:
        document["actors"] = {"kind": "pool", **numbers(_POOL), **pool}
    return Profile.model_validate(document)


def stack(**changes: float) -> Stack:
    """90 ms an environment step, 10 ms an inference, 100 ms a minibatch of any size; nothing else takes time."""
    document: dict[str, Any] = {
        name: quantity(changes.get(name, value)) for name, value in _STACK.items()
    } | {"title": "Round numbers", "words": "made up for tests", "environment_step_us": {}}
    inference = {
        "fixed_us": quantity(changes.get("inference_us", 10_000.0)),
        "us_per_million_macs": quantity(changes.get("inference_us_per_million_macs", 0.0)),
    }
    document["inference"] = {"mlp": inference, "cnn": inference}
    minibatch = {
        "fixed_us": quantity(changes.get("minibatch_us", 100_000.0)),
        "us_per_million_macs": quantity(changes.get("minibatch_us_per_million_macs", 0.0)),
    }
    kinds = dict.fromkeys(("mlp", "cnn", "gpu_mlp", "gpu_cnn"), minibatch)
    update = {name: quantity(changes.get(f"update_{name}", 0.0)) for name in ("call_ms", "us_per_megabyte")}
    for name in ("gradient_ms", "apply_ms", "apply_us_per_megabyte"):
        if f"update_{name}" in changes:
            update[name] = quantity(changes[f"update_{name}"])
    document["update"] = {**update, **kinds}
    for name in ("further_core_share", "learning_parallel_share"):
        if name in changes:
            document[name] = quantity(changes[name])
    return Stack.model_validate(document)


def platform(
    *,
    executor: Any = None,
    options: SimulatedOptions | None = None,
    pool: dict[str, Any] | None = None,
    patience_s: float = 1.0,
    **changes: float,
) -> SimulatedOnMeter:
    """A simulated platform of round numbers; changes go to whichever of profile and stack knows the name."""
    return SimulatedOnMeter(
        options or SimulatedOptions(),
        profile=profile(pool=pool, **changes),
        stack=stack(**changes),
        executor=executor or InstantExecutor(),
        patience_s=patience_s,
    )


__all__ = ["SimulatedSetting", "platform", "profile", "quantity", "stack"]
