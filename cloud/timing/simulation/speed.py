"""How long a call's start, run and transfer take on a cloud with a stack: arithmetic from numbers, work and draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from cloud.money.billing.work import CallRecord
from cloud.timing.numbers.profile import Functions, Profile
from cloud.timing.numbers.stack import Speed, Stack
from cloud.timing.simulation.draws import Draws
from cloud.timing.virtual_time import NS, to_ns
from training.calls import KINDS
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.native.cores import WORTH_THREADS_S, quickest_steps

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Works:
    """Several calls of actors that differ only in these amounts, each a column."""

    kind: str
    stepped: str
    copies: int
    memory_mb: int
    macs: int
    pictures: bool
    hessian_products: int
    minibatches: int
    steps: Ints
    inferences: Ints
    samples: Ints
    bytes_in: Ints
    bytes_out: Ints


_IN_COMMON = (
    "kind",
    "stepped",
    "copies",
    "memory_mb",
    "macs",
    "pictures",
    "hessian_products",
    "minibatches",
)
_AMOUNTS = ("steps", "inferences", "samples", "bytes_in", "bytes_out")


def columns_of(works: Sequence[CallRecord]) -> list[tuple[Ints, Works]]:
    """Return the works by what they have in common, each group with its places among them."""
    alike: dict[tuple[Any, ...], list[int]] = {}
    for place, work in enumerate(works):
        alike.setdefault(tuple(getattr(work, name) for name in _IN_COMMON), []).append(place)
    columns = []
    for same, places in alike.items():
        amounts = (np.array([getattr(works[place], name) for place in places]) for name in _AMOUNTS)
        columns.append((np.array(places), Works(*same, *amounts)))
    return columns


class Speeds:
    """A profile and a stack as plain numbers. `gpu`: the learner's machine has one."""

    def __init__(self, profile: Profile, stack: Stack, *, gpu: bool = False) -> None:
        actors, chance = profile.actors, profile.chance
        core = profile.core_ratio.value
        self._start(profile, stack, core)
        self._actor_rates(stack, rebuilds=isinstance(actors, Functions))
        update = stack.update
        self._update_call_us = update.call_ms.value * 1000.0
        own = {"gradient": update.gradient_ms, "apply": update.apply_ms}
        self._learning_call_us = {kind: one.value * 1000.0 for kind, one in own.items() if one is not None}
        self._update_us_per_byte = update.us_per_megabyte.value / 1e6
        joining = update.apply_us_per_megabyte or update.us_per_megabyte
        self._apply_us_per_byte = joining.value / 1e6
        self._on_core = {False: _plain(update.mlp), True: _plain(update.cnn)}
        self._update = {False: _plain(update.gpu_mlp), True: _plain(update.gpu_cnn)} if gpu else self._on_core
        self._where_quicker = gpu and update.mlp_where_quicker
        self._hessian = stack.hessian_product_per_gradient.value
        self.straggler_sigma = chance.straggler_sigma.value
        self.failure_share = chance.failure_share.value
        self.late_share, self.late_ns = chance.late_share.value, to_ns(chance.late_s.value)
        self._ns_per_us = 1000.0 / core
        self._whole_core_mb = actors.whole_core_mb.value if isinstance(actors, Functions) else 0.0
        self._most_cores = actors.most_cores.value if isinstance(actors, Functions) else 1.0
        self._pool_cores = 1.0 if isinstance(actors, Functions) else actors.cores_per_actor
        share = stack.further_core_share
        self._further_core_share = 0.0 if share is None else share.value
        parallel = stack.learning_parallel_share
        self._parallel_share = 0.0 if parallel is None else parallel.value
        self._speed_ups: dict[tuple[str, int, int], float] = {}
        self.coordinator_ns = to_ns(stack.coordinator_ms.value / 1000.0)

    def _start(self, profile: Profile, stack: Stack, core: float) -> None:
        actors = profile.actors
        fresh_s = (stack.import_s.value + stack.first_environment_s.value) / core
        self._fresh_s = fresh_s
        if isinstance(actors, Functions):
            self._cold_s, self._cold_sigma = actors.cold_s.value, actors.cold_sigma.value
            self._cap_s = actors.cold_cap_s.value
            self.warm_ns = to_ns(actors.warm_s.value)
        else:
            self._cold_s, self._cold_sigma = actors.start_s.value, actors.start_sigma.value
            self._cap_s = math.inf
            self.warm_ns = to_ns(actors.hand_over_s.value)

    def _actor_rates(self, stack: Stack, *, rebuilds: bool) -> None:
        """Kept actors keep their environments; functions of some stacks build them in each call."""
        self._call_us = stack.call_ms.value * 1000.0 + (stack.rebuild_s.value * 1e6 if rebuilds else 0.0)
        self._stepped_us = {name: quantity.value for name, quantity in stack.environment_step_us.items()}
        self._stepped_fallback_us = stack.environment_step_fallback_us.value
        self._step_us = stack.step_us.value
        self._inference = {False: _plain(stack.inference.mlp), True: _plain(stack.inference.cnn)}
        self._codec_us_per_byte = stack.codec_us_per_megabyte.value / 1e6

    def cold_ns(self, draws: Draws) -> int:
        """Return median · exp(σ·z) for the platform, plus a fresh process's imports and environments; at most the
        cap.
        """
        drawn_s = self._cold_s * math.exp(self._cold_sigma * draws.start_normal)
        return to_ns(min(drawn_s + self._fresh_s, self._cap_s))

    def run_ns(self, work: CallRecord, draws: Draws) -> int:
        """Return an actor's run time: work in microseconds of the reference core / (CPU share · core ratio) ·
        exp(σ·z). What is learned there is learned on cores, whatever the learner's machine has, by Amdahl's law if
        there are several.
        """
        return round(self.usual_run_ns(work) * math.exp(self.straggler_sigma * draws.straggler_normal))

    @overload
    def usual_run_ns(self, work: CallRecord) -> float: ...
    @overload
    def usual_run_ns(self, work: Works) -> Doubles: ...
    def usual_run_ns(self, work: CallRecord | Works) -> float | Doubles:
        """Return an actor's run time without chance."""
        work_us = (
            self._learning_us(work, self._on_core) if _learns(work) else self._sampling_us(work)
        ) + work.bytes_out * self._codec_us_per_byte
        cores = self._cores(work.memory_mb)
        share = min(cores, 1.0)
        if cores > 1.0 and _learns(work):
            share = 1.0 / (1.0 - self._parallel_share + self._parallel_share / cores)
        usual_ns: float | Doubles = work_us * self._ns_per_us / share
        return usual_ns

    def shares_of_run(self, work: CallRecord) -> tuple[float, float]:
        """Return how much of an actor's run is its environments' steps and the policy, between 0 and 1 each."""
        if _learns(work):
            return 0.0, 0.0
        stepping_us = self._stepping_us(work)
        inferring_us = work.inferences * self._inference_us(work.macs, pictures=work.pictures)
        whole_us = self._call_us + stepping_us + inferring_us + work.bytes_out * self._codec_us_per_byte
        return (stepping_us / whole_us, inferring_us / whole_us) if whole_us else (0.0, 0.0)

    def decision_ns(self, work: CallRecord) -> int:
        """Return the time of a decision network on a core of the learner's machine."""
        if not work.decision_macs:
            return 0
        return round(self._inference_us(work.decision_macs, pictures=False) * self._ns_per_us)

    def _sampling_us(self, work: CallRecord | Works) -> Any:
        """Return the work of a call that samples, without its answer's encoding."""
        inferring_us = work.inferences * self._inference_us(work.macs, pictures=work.pictures)
        return self._call_us + self._stepping_us(work) + inferring_us

    def _stepping_us(self, work: CallRecord | Works) -> Any:
        step_us = self._stepped_us.get(work.stepped, self._stepped_fallback_us)
        if work.copies > 1:
            key = work.stepped, work.memory_mb, work.copies
            if key not in self._speed_ups:
                cores, step_s = self._cores(work.memory_mb), step_us * self._ns_per_us / NS
                share = self._further_core_share
                self._speed_ups[key] = speed_up(work.stepped, work.copies, cores, step_s, share)
            step_us /= self._speed_ups[key]
        return work.steps * (step_us + self._step_us)

    def _cores(self, memory_mb: int) -> float:
        """Return how many cores an actor has."""
        if not self._whole_core_mb:
            return self._pool_cores
        return min(memory_mb / self._whole_core_mb, self._most_cores)

    def lacks_memory(self, work: CallRecord) -> bool:
        """Return whether a function's memory is too small for what the body used."""
        return bool(self._whole_core_mb) and 0 < work.memory_mb < work.most_memory_mb

    def _inference_us(self, macs: int, *, pictures: bool) -> float:
        fixed_us, sample_us, per_million_us = self._inference[pictures]
        return fixed_us + sample_us + macs * 1e-6 * per_million_us

    def update_ns(self, work: CallRecord) -> int:
        """Return the run time of a call alone on the learner's machine."""
        if _learns(work):
            learning_us: float = self._learning_us(work, self._update)
            return round(learning_us * self._ns_per_us)
        work_us: float = self._sampling_us(work) + work.bytes_out * self._codec_us_per_byte
        return round(work_us * self._ns_per_us)

    def _learning_us(self, work: CallRecord | Works, rates: dict[bool, tuple[float, float, float]]) -> Any:
        """Return the work of a call that learns: reading, minibatches, and Hessian products if there are any."""
        learning_us = gradients_us = self._minibatches_us(work, rates)
        if self._where_quicker and not work.pictures and rates is not self._on_core:
            gradients_us = self._minibatches_us(work, self._on_core)
            learning_us = min(learning_us, gradients_us)
        if work.hessian_products:
            one_us = gradients_us / max(work.minibatches, 1)
            learning_us += work.hessian_products * self._hessian * one_us
        call_us = self._learning_call_us.get(work.kind, self._update_call_us)
        us_per_byte = self._apply_us_per_byte if work.kind == "apply" else self._update_us_per_byte
        return call_us + work.bytes_in * us_per_byte + learning_us

    def _minibatches_us(self, work: CallRecord | Works, rates: dict[bool, tuple[float, float, float]]) -> Any:
        fixed_us, sample_us, per_million_us = rates[work.pictures]
        sample_us += work.macs * 1e-6 * per_million_us
        return work.minibatches * fixed_us + work.samples * sample_us


def _learns(work: CallRecord | Works) -> bool:
    return KINDS[work.kind].timed_as == "learning"


def speed_up(stepped: str, copies: int, cores: float, step_s: float, further_core_share: float) -> float:
    """Return how many times as fast an actor's copies step on all of its cores as on one."""
    entry = ENTRIES.get(stepped)
    if entry is None or entry.family != "MuJoCo" or copies * step_s < WORTH_THREADS_S:
        return 1.0
    quickest = min(quickest_steps(copies, max(1, round(cores))), max(1.0, cores))
    return 1.0 + (quickest - 1.0) * further_core_share


def _plain(speed: Speed) -> tuple[float, float, float]:
    return speed.fixed_us.value, speed.per_sample_us.value, speed.us_per_million_macs.value
