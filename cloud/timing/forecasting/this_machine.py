"""The user's own machines as a cloud in numbers: the one that a local job runs on, and those that are like it."""

from __future__ import annotations

from typing import Any

from cloud.timing.numbers.profile import Profile

_NEVER = 1e9


def machines_like_this_one(
    actors: int, cores_per_actor: float, network: dict[str, Any] | None = None
) -> Profile:
    """Return machines whose cores are a pool that runs from the start. `network` replaces that of one machine."""
    return Profile.model_validate(
        {
            "title": "This machine",
            "words": "Worker processes and a learner on the cores of one machine.",
            "region": "here",
            "provider": "azure",
            "default_learner_sku": "none",
            "core_ratio": assumed(1.0, 0.7, 1.2, "a core here beside the one that the stack was measured on"),
            "actors": _workers(actors, cores_per_actor),
            "network": {
                "round_trip_s": assumed(0.001, 0.0005, 0.003, "a pipe between two processes"),
                "actor_mbit_per_s": _fixed(8000.0),
                "coordinator_mbit_per_s": _fixed(8000.0),
                "payload_limit_mb": _fixed(_NEVER),
                "detour_s": _fixed(0.0),
                **(network or {}),
            },
            "chance": {
                "failure_share": _fixed(0.0),
                "late_share": _fixed(0.0),
                "late_s": _fixed(0.0),
                "straggler_sigma": assumed(0.05, 0.02, 0.15, "processes that share a machine"),
            },
            "learner": {
                "server_start_s": assumed(2.5, 1.0, 6.0, "the learner's libraries are loaded"),
                "function_start_s": _fixed(0.0),
                "function_keep_warm_s": _fixed(_NEVER),
                "sharing_mlp": _fixed(1.0),
                "sharing_cnn": _fixed(1.0),
            },
        }
    )


def _workers(workers: int, cores_per_actor: float) -> dict[str, Any]:
    return {
        "kind": "pool",
        "start_s": assumed(0.2, 0.1, 0.5, "a process is started"),
        "start_sigma": _fixed(0.1),
        "hand_over_s": assumed(0.001, 0.0003, 0.003, "a frame is written and read"),
        "creates_at_once": _fixed(1000.0),
        "creates_per_s": _fixed(1000.0),
        "idle_s": _fixed(_NEVER),
        "most_actors": _fixed(float(workers)),
        "units": workers,
        "cores_per_actor": cores_per_actor,
    }


def assumed(value: float, low: float, high: float, source: str) -> dict[str, Any]:
    return {"value": value, "low": low, "high": high, "source": source, "kind": "assumed"}


def _fixed(value: float) -> dict[str, Any]:
    return assumed(value, value, value, "how this machine is put together")
