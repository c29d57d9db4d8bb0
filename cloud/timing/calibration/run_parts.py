"""Runs all parts in order, and composes a stack and a profile from them.

A stack's times are separated so that calls composed from them take as long as real calls: the policy alone, the codec
alone, then the body of a rollout without these. The remainder of each step with the lightest environment is the
loop's own; what heavier environments take beyond it (they evict the loop's caches) counts as theirs.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from cloud.fingerprint import cpu_model
from cloud.timing.calibration import learning, machine, machine_profile
from cloud.timing.calibration.figures import fit, of, quantity
from cloud.timing.calibration.part import BUSY_LIMIT, PartRun, Parts, run
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.quantity import Quantity
from cloud.timing.numbers.stack import Inference, Speed, Stack
from cloud.workers.executor import cores
from training.rl.environments.atari import atari_game

# The environments of the clouds' profiles and the papers' experiments.
ENVIRONMENTS = (
    "CartPole-v1",
    "Acrobot-v1",
    "Pendulum-v1",
    "Hopper-v5",
    "Walker2d-v5",
    "HalfCheetah-v5",
    "Humanoid-v5",
    "ALE/SpaceInvaders-v5",
    "ALE/Qbert-v5",
    "ALE/Gravitar-v5",
)
# Rounds of so many actors each; the difference cancels a round's time beside its calls.
_FEW_AND_MANY = (8, 72)
_LEARNERS_ON_A_GPU = (1, 2, 4)

Report = Callable[[str], None]


@dataclass(frozen=True)
class MachineEffort:
    """How often things are repeated in each of several visits. `quick` only shows that everything works."""

    visits: int = 3
    repeats: int = 4
    repeats_pictures: int = 2
    lengths: tuple[int, int] = (32, 256)
    lengths_pictures: tuple[int, int] = (16, 128)
    inference_s: float = 0.04
    rounds: int = 8
    fragments: int = 6
    sharing_s: float = 2.5
    patience_s: float = 150.0
    quick: bool = False


QUICK = MachineEffort(1, 2, 0, (8, 32), (2, 6), 0.003, 2, 2, 0.1, patience_s=0.0, quick=True)


@dataclass(frozen=True)
class MachineCalibration:
    """The result. `busy` and `background`: how much of the cores others used during the worst part, at ordinary and
    at lowest priority.
    """

    stack: Stack
    profile: Profile
    busy: float
    background: float

    @property
    def good(self) -> bool:
        return self.busy <= BUSY_LIMIT


def calibration(
    environments: Sequence[str], effort: MachineEffort, base: Stack, today: date, report: Report
) -> MachineCalibration:
    """Measure this machine. Numbers that cannot be measured here stay as in `base`."""
    parts = Parts(report, effort.patience_s)
    measured = parts.visit(_plan(environments, effort), effort.visits)
    where = (
        f"{machine.describe(today)}; others kept {100 * parts.busy:.0f} % of the cores busy, at lowest priority"
        f" {100 * parts.background:.0f} %{'; a quick look, no figures' if effort.quick else ''}"
    )
    inference = _inference(measured["inference"]["repeats"], where)
    codec = _codec(measured["codec"]["repeats"], where)
    actor = _actor({name: measured[name] for name in environments}, inference, codec, where)
    update = learning.update(base.update, measured["update"], where)
    update = learning.of_gradients(update, measured["gradients"], where)
    shared: dict[str, Any] | None = None
    if run("gpu", {}, gpu=True)["device"] == "cuda":
        update = learning.on_gpu(update, parts.run("the GPU", "update", _updates(effort), gpu=True), where)
        together = {
            "kinds": ["mlp", "cnn"],
            "learners": _LEARNERS_ON_A_GPU,
            "seconds": effort.sharing_s,
        }
        shared = parts.run("learners that share the GPU", "sharing", together, gpu=True)
    starts = measured["starts"]
    firsts = [statistics.median(times) for times in starts["first_environment_s"].values()]
    stack = base.model_copy(
        update={
            "title": f"Starling's own engine on {cpu_model()}",
            "words": (
                f"Measured on {where}. What says otherwise was not measured there: speeds of GPUs, Hessian products."
            ),
            "import_s": quantity(starts["ready_s"], f"a fresh worker process until it takes calls; {where}"),
            "first_environment_s": of(
                statistics.median(firsts),
                min(firsts),
                max(firsts),
                f"made and reset in a fresh process, median of {', '.join(environments)}, range from the fastest"
                f" to the slowest; {where}",
                "measured",
            ),
            "rebuild_s": of(
                0.0, 0.0, 0.0, "environments stay warm, or are restored within call_ms", "measured"
            ),
            **actor,
            **_further_cores(measured, where),
            "inference": inference,
            "update": update,
            "codec_us_per_megabyte": codec,
            "coordinator_ms": _coordinator(measured["coordinator"], where),
        }
    )
    return MachineCalibration(
        stack,
        machine_profile.profile(starts, measured["ways"], shared, where, today),
        parts.busy,
        parts.background,
    )


def _plan(environments: Sequence[str], effort: MachineEffort) -> dict[str, PartRun]:
    """Return every part under the name of its figures; environments under their own names."""
    plan = {
        "inference": PartRun(
            "the policy in numpy", "inference", {"seconds": effort.inference_s, "repeats": effort.repeats}
        ),
        "codec": PartRun("encoding", "codec", {"repeats": effort.repeats}),
    }
    for name in environments:
        pictures = atari_game(name) is not None
        arguments = {
            "environment": name,
            "lengths": effort.lengths_pictures if pictures else effort.lengths,
            "repeats": max(2, effort.repeats_pictures) if pictures else 2 * effort.repeats,
        }
        plan[name] = PartRun(f"steps of {name}", "actor", arguments)
    # One that fills caches as most training does, to measure what sharing cores costs.
    crowd = next((name for name in ("Hopper-v5", "Humanoid-v5") if name in environments), environments[-1])
    heavy = [name for name in ("Humanoid-v5", "Ant-v5", "Hopper-v5") if name in environments]
    if heavy and cores() > 1:
        arguments = {"environment": heavy[0], "steps": max(effort.lengths) // 2, "repeats": effort.repeats}
        plan["cores"] = PartRun(f"copies of {heavy[0]} on two cores", "cores", arguments)
    return plan | {
        "update": PartRun("the learner's updates", "update", _updates(effort)),
        "gradients": PartRun("learners that compute gradients", "gradients", {"repeats": effort.repeats}),
        "starts": PartRun(
            "fresh processes",
            "starts",
            {"repeats": min(2, effort.repeats), "environments": list(environments)},
        ),
        "coordinator": PartRun(
            "the coordinator",
            "coordinator",
            {"repeats": min(2, effort.repeats), "actors": list(_FEW_AND_MANY), "rounds": effort.rounds},
        ),
        "ways": PartRun(
            "transfers to worker processes",
            "transport",
            {
                "workers": cores(),
                "repeats": effort.repeats,
                "fragments": effort.fragments,
                "environment": crowd,
            },
        ),
    }


def _updates(effort: MachineEffort) -> dict[str, Any]:
    return {"repeats": effort.repeats, "repeats_cnn": effort.repeats_pictures}


def _inference(repeats: list[list[dict[str, Any]]], where: str) -> Inference:
    source = "a pass of 1, 4 and 8 observations through {}, regression; " + where
    return Inference(
        mlp=_speed(repeats, "mlp", source.format("64x64 and 256x256 of 4, 11 and 348 inputs")),
        cnn=_speed(repeats, "cnn", source.format("the papers' convolutions and Nature's")),
    )


def _speed(repeats: list[list[dict[str, Any]]], kind: str, source: str) -> Speed:
    fits = []
    for cases in repeats:
        chosen = [case for case in cases if case["kind"] == kind]
        rows = [(1.0, case["batch"] * case["macs"] / 1e6) for case in chosen]
        fits.append(fit(rows, [case["us"] for case in chosen]))
    fixed, rate = zip(*fits, strict=True)
    return Speed(fixed_us=quantity(fixed, source), us_per_million_macs=quantity(rate, source))


def _codec(repeats: list[list[dict[str, Any]]], where: str) -> Quantity:
    slopes = [
        fit([(1.0, case["bytes"] / 1e6) for case in cases], [case["us"] for case in cases])[1]
        for cases in repeats
    ]
    return quantity(slopes, f"fragments from 20 kB to 3.6 MB encoded, regression; {where}")


@dataclass(frozen=True)
class _Loop:
    """One environment in an actor's loop: microseconds a call and a step, for each repeat, and of the bare step."""

    name: str
    call_us: list[float]
    step_us: list[float]
    bare_us: float
    beside_us: list[float]
    inference_us: float


def _actor(
    measured: dict[str, dict[str, Any]], inference: Inference, codec: Quantity, where: str
) -> dict[str, Any]:
    """Return `call_ms`, `step_us` and the environments' own entries."""
    loops = [_loop(name, part, inference, codec.value) for name, part in measured.items()]
    lightest = min(loops, key=lambda loop: loop.bare_us)
    step = quantity(
        lightest.beside_us,
        f"a rollout's body less the bare steps and the policy alone, with {lightest.name}, whose steps are"
        f" the lightest; {where}",
    )
    calls_ms = [statistics.median(loop.call_us) / 1000.0 for loop in loops]
    entries = {
        loop.name: quantity(
            [max(loop.bare_us / 2, us - loop.inference_us - step.value) for us in loop.step_us],
            f"as measured in an actor's loop, resets included; the bare step takes {loop.bare_us:.4g} us; {where}",
            low=loop.bare_us,
        )
        for loop in loops
    }
    values = [entry.value for entry in entries.values()]
    return {
        "call_ms": of(
            statistics.median(calls_ms),
            min(calls_ms),
            max(calls_ms),
            "short and long bodies of rollouts, what is left at no step; median of the environments, range over"
            f" them: large weights take longest; {where}",
            "measured",
        ),
        "step_us": step,
        "environment_step_us": entries,
        "environment_step_fallback_us": of(
            statistics.median(values),
            min(values),
            max(values),
            "median of the environments that were measured; measure one and add it",
            "assumed",
        ),
    }


def _loop(name: str, measured: dict[str, Any], inference: Inference, codec_us: float) -> _Loop:
    speed = inference.cnn if measured["pictures"] else inference.mlp
    policy_us = speed.fixed_us.value + measured["macs"] / 1e6 * speed.us_per_million_macs.value
    call_us, step_us, beside_us, bare_us = [], [], [], []
    for turns in measured["turns"]:
        bodies = [turn["body_us"] - turn["bytes_out"] / 1e6 * codec_us for turn in turns]
        call, step = fit([(1.0, turn["steps"]) for turn in turns], bodies)
        longest, body_us = turns[-1], bodies[-1]
        bare = longest["stepping_us"] + longest["resetting_us"]
        call_us.append(call)
        step_us.append(step)
        bare_us.append(bare / longest["steps"])
        beside_us.append(max(0.0, (body_us - call - bare - longest["inference_us"]) / longest["steps"]))
    return _Loop(name, call_us, step_us, statistics.median(bare_us), beside_us, policy_us)


def _further_cores(measured: dict[str, dict[str, Any]], where: str) -> dict[str, Quantity]:
    """Return what a second core adds; nothing if it was not measured."""
    if "cores" not in measured:
        return {}
    gained = [max(0.0, speed_up - 1.0) for speed_up in measured["cores"]["speed_ups"]]
    source = f"4 copies on two cores over the same on one, in wall-clock time, less one; {where}"
    return {"further_core_share": quantity(gained, source)}


def _coordinator(measured: dict[str, Any], where: str) -> Quantity:
    few, many = _FEW_AND_MANY
    simulated = statistics.median(measured["simulated"])
    return quantity(
        measured["local"],
        f"processor time of engine, ledger and platform for a completion, from rounds of {few} and {many} actors whose"
        f" bodies answer at once; {simulated:.3g} ms on the simulated cloud; {where}",
        high=simulated,
    )
