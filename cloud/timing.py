"""How long things take on a simulated cloud: plain arithmetic from a profile, work done and a draw.

Times are whole nanoseconds, so that sums are exact and do not depend on their order.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from cloud.profile import Profile
from training.messages import Call, EvaluateRequest, RolloutRequest
from training.reports import Usage

NS = 1_000_000_000
_NS_PER_MS = 1_000_000


_LONGEST_S = 1e9


def to_ns(seconds: float) -> int:
    """Whole nanoseconds; what is longer than thirty years, or infinite, is thirty years."""
    return round(min(seconds, _LONGEST_S) * NS)


def billed_ms(duration_ns: int) -> int:
    """Functions are billed by started milliseconds."""
    return -(-duration_ns // _NS_PER_MS)


@dataclass(frozen=True)
class Draws:
    """All chance in the life of one call. Two are standard normal, the others uniform in [0, 1)."""

    cold_normal: float
    straggler_normal: float
    failure: float
    failure_at: float
    late: float


def draw(seed: int, call_id: str) -> Draws:
    """The same call under the same seed always meets the same fate, whenever and wherever it runs."""
    entropy = int.from_bytes(hashlib.sha256(call_id.encode()).digest()[:16], "little")
    generator = np.random.Generator(np.random.PCG64([seed, entropy]))
    normal = generator.standard_normal(2)
    uniform = generator.random(3)
    return Draws(float(normal[0]), float(normal[1]), float(uniform[0]), float(uniform[1]), float(uniform[2]))


@dataclass(frozen=True)
class Timing:
    """The parts of a call's life after its turn came. `fault` says why it gave no result, if it gave none."""

    start_ns: int
    run_ns: int
    transfer_ns: int
    fault: Literal["", "function_failed", "deadline"] = ""

    @property
    def billed_ns(self) -> int:
        return self.start_ns + self.run_ns

    @property
    def total_ns(self) -> int:
        return self.start_ns + self.run_ns + self.transfer_ns


def start_ns(profile: Profile, cold: bool, draws: Draws) -> int:
    """cold: median · exp(σ·z), at most the cap; warm: a constant."""
    start = profile.start
    if not cold:
        return to_ns(start.warm_s.value)
    drawn_s = start.cold_s.value * math.exp(start.cold_sigma.value * draws.cold_normal)
    return to_ns(min(drawn_s, start.cold_cap_s.value))


def run_ns(profile: Profile, call: Call, usage: Usage, draws: Draws) -> int:
    """(steps · step time + inferences · inference time) / (CPU share · core ratio) · exp(σ·z)."""
    work = profile.work
    name = _environment_of(call)
    step_us = work.environment_step_us.get(name, work.environment_step_fallback_us).value
    inference_us = work.inference_us.get(name, work.inference_fallback_us).value
    share = min(call.memory_mb / work.whole_core_mb.value, 1.0)
    work_us = usage.env_steps * step_us + usage.inferences * inference_us
    straggling = math.exp(work.straggler_sigma.value * draws.straggler_normal)
    return round(work_us * 1000 / (share * work.core_ratio.value) * straggling)


def transfer_ns(profile: Profile, byte_count: int, draws: Draws) -> int:
    """bytes / bandwidth + one round trip, + the delay of an outcome that comes late."""
    network, faults = profile.network, profile.faults
    late_s = faults.late_s.value if draws.late < faults.late_share.value else 0.0
    way_s = byte_count * 8 / (network.function_mbit_per_s.value * 1e6)
    return to_ns(way_s + network.round_trip_s.value + late_s)


def function_timing(
    profile: Profile, call: Call, usage: Usage, byte_count: int, cold: bool, draws: Draws
) -> Timing:
    """A function's call: fails at a drawn share of its run, or is stopped at its deadline, or comes to its end."""
    begin_ns = start_ns(profile, cold, draws)
    full_ns = run_ns(profile, call, usage, draws)
    round_trip_ns = transfer_ns(profile, 0, draws)
    deadline_ns = to_ns(call.deadline_s)
    fails = draws.failure < profile.faults.failure_share.value
    ran_ns = round(full_ns * draws.failure_at) if fails else full_ns
    if ran_ns > deadline_ns:
        return Timing(begin_ns, deadline_ns, round_trip_ns, "deadline")
    if fails:
        return Timing(begin_ns, ran_ns, round_trip_ns, "function_failed")
    return Timing(begin_ns, ran_ns, transfer_ns(profile, byte_count, draws))


def update_timing(profile: Profile, call: Call, usage: Usage, byte_count: int) -> Timing:
    """The learner server's call: minibatches · minibatch time; the way there is its network card's."""
    run = round(usage.minibatches * profile.learner.minibatch_ms.value * _NS_PER_MS)
    deadline_ns = to_ns(call.deadline_s)
    if run > deadline_ns:
        return Timing(0, deadline_ns, 0, "deadline")
    return Timing(0, run, to_ns(byte_count * 8 / (profile.network.learner_mbit_per_s.value * 1e6)))


def _environment_of(call: Call) -> str:
    request = call.request
    return request.environment.id if isinstance(request, RolloutRequest | EvaluateRequest) else ""
