"""How much memory a job that learns from data takes at most, in its own process and in one function, by its spec."""

from __future__ import annotations

from math import ceil

from training.engine.memory_needs import (
    ACTOR_PROCESS,
    BLOBS_OF_WORKER,
    JOB_PROCESS,
    WEIGHTS_KEPT,
    MemoryNeeds,
    Need,
)
from training.supervised.pushes import most_bytes
from training.tasks.supervised_spec import Supervised


def needs_of_descent(training: Supervised, workers: int) -> MemoryNeeds:
    """Return what a job needs. `workers` are the processes that the job's process sends its calls to directly."""
    manifest, parameters = training.manifest, most_bytes(training.parameter_shapes)
    functions = training.scaling.largest
    row = manifest.byte_count / manifest.rows
    rows = ceil(min(training.progress_a_call, manifest.rows) * row)
    states = {"sgd": 1, "momentum": 2, "adam": 3}[training.optimiser.kind]
    copies = 5 * states + WEIGHTS_KEPT + 4 + 2 * workers + 3 * functions
    job = (
        Need("process", JOB_PROCESS),
        Need("network", copies * parameters),
        Need("rows", 4 * functions * rows),
    )
    actor = (
        Need("process", ACTOR_PROCESS),
        Need("network", (BLOBS_OF_WORKER + 5) * parameters),
        Need("rows", 8 * rows),
    )
    return MemoryNeeds(job, actor, documents=(Need("network", (states + 1) * parameters),))
