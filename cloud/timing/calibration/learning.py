"""The learner's entries from measured calls: separates minibatches, samples and multiplications, then reading."""

from __future__ import annotations

from typing import Any

from cloud.timing.calibration.figures import fit, quantity
from cloud.timing.numbers.stack import Speed, UpdateNumbers

_NETWORKS = {
    "mlp": "64x64 and 256x256 at minibatches of 64, 256 and 1,024",
    "cnn": "the papers' convolutions and Nature's at minibatches of 64 and 256",
}

# The difference of two disturbed times may be zero or negative. A fit by relative errors would follow it.
_LEAST_SHARE = 0.05


def update(base: UpdateNumbers, measured: dict[str, Any], where: str) -> UpdateNumbers:
    """Return the entries for this machine's cores. What was not measured stays as in `base`."""
    cases = list(measured["cases"].values())
    places = {"mlp": where, "cnn": f"more than 64 pictures on all cores; {where}"}
    changes: dict[str, Any] = {kind: _speed(cases, kind, places[kind]) for kind in _kinds(cases)}
    return base.model_copy(update=changes | _reading(cases, where))


def on_gpu(base: UpdateNumbers, measured: dict[str, Any], where: str) -> UpdateNumbers:
    cases = list(measured["cases"].values())
    return base.model_copy(
        update={f"gpu_{kind}": _speed(cases, kind, f"on the GPU; {where}") for kind in _kinds(cases)}
    )


def of_gradients(base: UpdateNumbers, measured: dict[str, Any], where: str) -> UpdateNumbers:
    """Return what a gradient takes beside what `base` says of reading and of samples, and what it takes to make a
    version of gradients.
    """
    speed, left_ms = base.mlp, []
    for case in (part["gradient"] for part in measured.values()):
        sample_us = speed.per_sample_us.value + case["macs"] * 1e-6 * speed.us_per_million_macs.value
        known_us = case["bytes_in"] / 1e6 * base.us_per_megabyte.value
        known_us += case["minibatches"] * speed.fixed_us.value + case["samples"] * sample_us
        left_ms += [max(_LEAST_SHARE * us, us - known_us) / 1000.0 for us in case["us"]]
    source = "calls with slices of 1,024 steps, what is left beside reading, samples and multiplications"
    return base.model_copy(
        update={
            "gradient_ms": quantity(left_ms, f"{source}; {where}"),
            **_joining(measured, speed.fixed_us.value, where),
        }
    )


def _joining(measured: dict[str, Any], step_us: float, where: str) -> dict[str, Any]:
    """Return what a version of gradients takes beside its step, by the megabytes of the state and the gradients."""
    source = f"calls that make a version of 1 gradient and of 8, 64x64 and 256x256, regression; {where}"
    cases = [case for part in measured.values() for name, case in part.items() if name != "gradient"]
    rows = [(1.0, case["bytes_in"] / 1e6) for case in cases]
    fits = [
        fit(rows, [max(_LEAST_SHARE * case["us"][n], case["us"][n] - step_us) for case in cases])
        for n in range(min(len(case["us"]) for case in cases))
    ]
    call_us, per_megabyte_us = zip(*fits, strict=True)
    return {
        "apply_ms": quantity([us / 1000.0 for us in call_us], source),
        "apply_us_per_megabyte": quantity(per_megabyte_us, source),
    }


def _kinds(cases: list[dict[str, Any]]) -> list[str]:
    return sorted({case["kind"] for case in cases})


def _speed(cases: list[dict[str, Any]], kind: str, where: str) -> Speed:
    chosen = [case for case in cases if case["kind"] == kind]
    rows = [(case["minibatches"], case["samples"], case["samples"] * case["macs"] / 1e6) for case in chosen]
    fits = [
        fit(rows, [_pass_us(case, case["times_us"][n]) for case in chosen])
        for n in range(len(chosen[0]["times_us"]))
    ]
    fixed, sample, rate = zip(*fits, strict=True)
    source = f"update calls with one pass and with more, {_NETWORKS[kind]}, regression; {where}"
    return Speed(
        fixed_us=quantity(fixed, source),
        per_sample_us=quantity(sample, source),
        us_per_million_macs=quantity(rate, source),
    )


def _reading(cases: list[dict[str, Any]], where: str) -> dict[str, Any]:
    """Return the time of a call without any pass, by the megabytes that it reads: checks, values of all states,
    estimates.
    """
    source = f"what is left of update calls at no pass over their data, regression; {where}"
    few = min(len(case["times_us"]) for case in cases)
    fits = []
    for n in range(few):
        rows = [(1.0, case["bytes_in"] / 1e6) for case in cases]
        left_us = [_left_us(case, case["times_us"][n]) for case in cases]
        fits.append(fit(rows, left_us))
    call_us, per_megabyte_us = zip(*fits, strict=True)
    return {
        "call_ms": quantity([us / 1000.0 for us in call_us], source),
        "us_per_megabyte": quantity(per_megabyte_us, source),
    }


def _pass_us(case: dict[str, Any], times_us: list[float]) -> float:
    one_pass_us, more_us = times_us
    more: int = case["more"]
    return max(_LEAST_SHARE * more_us, more_us - one_pass_us) / more


def _left_us(case: dict[str, Any], times_us: list[float]) -> float:
    return max(_LEAST_SHARE * times_us[0], times_us[0] - _pass_us(case, times_us))
