"""What a trained agent takes to decide: Siren's, on functions and memory, before any epoch and after many."""

from __future__ import annotations

import time
from collections.abc import Iterator
from statistics import median

from rig.figures import Figure
from training.scaling.agent_weights import as_text
from training.scaling.plan import Bounds
from training.scheduling.siren.arithmetic_cloud import ArithmeticCloud, rounds_of
from training.scheduling.siren.model import SirenSpec
from training.scheduling.trainer import initial_state
from training.spec import RETURN

_MOST_US = 1000.0
_EPOCHS = 64
_SIZES_MB = range(128, 10_241)
_CLOUD = ArithmeticCloud(
    losses=(0.8, 0.5, 0.3), compute_s=40.0, fetch_s=8.0, usd_per_mb_s=1e-8, sizes_mb=tuple(_SIZES_MB)
)


def measure(quick: bool = False) -> Iterator[Figure]:
    """The first decision also reads the agent's weights, which the others keep."""
    spec = SirenSpec(
        actors_max=3000, memory_min_mb=128, memory_max_mb=10_240, target_loss=0.2, rounds=_EPOCHS
    )
    policy = spec.policy(as_text(initial_state(spec).actor_weights(spec.network)), explore=True)
    history = rounds_of(_CLOUD, [(8, 1024)] * _EPOCHS, budget_picodollars=10**12)
    bounds = Bounds(actors_max=3000, memory_sizes_mb=_SIZES_MB)

    def decided_us(seen: int, seed: int) -> float:
        began_ns = time.perf_counter_ns()
        policy.decide(history[:seen], bounds, seed, RETURN)
        return (time.perf_counter_ns() - began_ns) / 1000

    yield Figure("Siren: the first decision of a process", decided_us(0, 0), "µs")
    for seen in (0, _EPOCHS):
        times = [decided_us(seen, seed) for seed in range(100 if quick else 1000)]
        yield Figure(f"Siren: a decision after {seen} epochs, median", median(times), "µs", at_most=_MOST_US)
