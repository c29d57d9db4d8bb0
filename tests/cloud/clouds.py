"""Small clouds for tests: profiles without chance, whose times are round numbers to be added up by hand."""

from __future__ import annotations

from typing import Any

from cloud.profile import Profile


def quantity(value: float) -> dict[str, Any]:
    return {"value": value, "low": 0.0, "high": max(value, 1.0) * 10, "source": "made up", "kind": "assumed"}


_ROUND_NUMBERS: dict[str, Any] = {
    "start": {"cold_s": 2.0, "cold_sigma": 0.0, "cold_cap_s": 5.0, "warm_s": 0.5, "keep_warm_s": 100.0},
    "work": {
        "environment_step_fallback_us": 90_000.0,
        "inference_fallback_us": 10_000.0,
        "core_ratio": 1.0,
        "whole_core_mb": 1000.0,
        "straggler_sigma": 0.0,
    },
    "network": {"round_trip_s": 0.25, "function_mbit_per_s": 8.0, "learner_mbit_per_s": 8.0},
    "faults": {"failure_share": 0.0, "late_share": 0.0, "late_s": 10.0},
    "learner": {"server_start_s": 60.0, "minibatch_ms": 100.0},
    "account": {"concurrent_functions": 1000.0},
}


def profile(**changes: float) -> Profile:
    """Cold 2 s, warm 0.5 s, 100 ms a step on 1,000 MB, 1 MB/s, 250 ms there and back; no chance anywhere.

    `profile(cold_s=3.0)` changes one number by its name.
    """
    document: dict[str, Any] = {"title": "Round numbers"}
    for section, numbers in _ROUND_NUMBERS.items():
        document[section] = {name: quantity(changes.get(name, value)) for name, value in numbers.items()}
    document["work"] |= {"environment_step_us": {}, "inference_us": {}}
    return Profile.model_validate(document)
