"""On how many cores the copies of an actor are stepped. Actors decide it by these rules, and so do simulated clouds."""

from __future__ import annotations

# Waking a thread takes up to 80 us where machines are virtual: steps of all copies that take less stay on one core.
WORTH_THREADS_S = 300e-6


def cores_with_memory(memory_mb: int, whole_core_mb: float) -> int:
    """Return how many cores a function of this memory uses: half a core counts as one."""
    return max(1, round(memory_mb / whole_core_mb))


def quickest_steps(copies: int, threads: int) -> float:
    """Return how many times as fast `threads` step copies as one does, if nothing held them up."""
    return copies / -(-copies // min(threads, copies))
