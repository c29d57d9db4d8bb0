"""How much memory a job of reinforcement learning takes at most: in its own process, where it learns, and in one actor.
Worked out from the spec.
"""

from __future__ import annotations

from math import ceil, prod

from training.calls.kind import Sizes
from training.engine.checkpoints import DATA_LIMIT_BYTES
from training.engine.memory_needs import (
    ACTOR_PROCESS,
    BLOBS_OF_WORKER,
    JOB_PROCESS,
    MEGABYTE,
    WEIGHTS_KEPT,
    MemoryNeeds,
    Need,
)
from training.loops.asynchronous import Asynchronous
from training.loops.pipelined import Pipelined
from training.loops.staleness_aware import StalenessAware
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.expectations import expectation_of
from training.rl.measures.curvature import CurvatureSpec
from training.rl.measures.measures import AnyMeasure
from training.rl.measures.noise_scale import NoiseScaleSpec
from training.rl.measures.policy_shift import PolicyShiftSpec
from training.rl.message_sizes import sizes_of
from training.rl.spaces import Spaces
from training.spec import TrainingSpec

_TORCH = 380 * MEGABYTE
_FAMILIES = {"MuJoCo": 32 * MEGABYTE, "Atari": 32 * MEGABYTE}
_OTHER_FAMILY = 64 * MEGABYTE
"""What an environment's library takes beside the process; of a further package a guess."""
_COPIES = {"Classic control": 16 * 2**10, "MuJoCo": 3 * MEGABYTE}
_OTHER_COPY = 3 * MEGABYTE
"""What one copy of an environment takes."""

_STEP_NUMBERS = 40
"""Bytes of a step's values, advantages, targets and the order of samples, beside what is shuffled."""
_SHUFFLED_NUMBERS = 28
"""Bytes of what is shuffled of a step, beside its observation and action."""
_PICTURES_A_SHARD = 64
_FRAGMENT_COPIES = 5
"""Copies of a fragment in an actor: as sampled, as encoded, and on its way."""


def needs_of_reinforcement(training: TrainingSpec, spaces: Spaces, workers: int) -> MemoryNeeds:
    """Return what a job needs. `spaces` are its environment's; `workers` are the processes that the job's process sends
    its calls to directly.
    """
    sizes, network = sizes_of(training, spaces), training.network
    learned, held = _trajectories(training)
    steps = learned * training.progress_a_call
    tensors = not network.has_closed_form or any(map(_needs_torch, training.scaling.measures))
    job = (
        Need("process", JOB_PROCESS + (_TORCH if tensors else 0)),
        Need("network", _learner_bytes(training, sizes, workers)),
        Need("round", _held_bytes(training, held * sizes.trajectory) + steps * _step_bytes(training, spaces)),
        _minibatch(training, spaces, sizes, steps),
        Need("round", _measuring_bytes(training, spaces, steps)),
    )
    return MemoryNeeds(
        job,
        _of_actor(training, spaces, sizes),
        steps=training.scaling.largest * training.progress_a_call,
        documents=(Need("network", sizes.learner + sizes.weights), Need("round", _longest(training, sizes))),
    )


def _longest(training: TrainingSpec, sizes: Sizes) -> int:
    """Return the bytes of the most that is encoded together: a checkpoint of a pipelined run holds a round."""
    pipelined = isinstance(training.loop, Pipelined)
    return sizes.trajectory * (training.scaling.largest if pipelined else 1)


def _trajectories(training: TrainingSpec) -> tuple[int, int]:
    """Return how many trajectories the job's process learns from at once, and how many it holds as they came."""
    actors, loop = training.scaling.largest, training.loop
    if isinstance(loop, StalenessAware):
        a_slice = loop.trajectories_per_gradient
        held = 2 * actors + loop.learners * a_slice
        return (a_slice, held) if loop.where == "learner" else (0, held)
    if isinstance(loop, Asynchronous):
        update = loop.trajectories_per_update or actors
        batches, uses = training.algorithm.replay
        replayed = batches * update if uses > 1 else 0
        return update, (loop.staleness_limit + 2) * update + replayed
    return actors, (3 if isinstance(loop, Pipelined) else 2) * actors


def _held_bytes(training: TrainingSpec, held_bytes: int) -> int:
    """Return the bytes of trajectories that wait. Checkpoints of an asynchronous run hold many of them once more."""
    again = min(held_bytes, DATA_LIMIT_BYTES) if isinstance(training.loop, Asynchronous) else 0
    return held_bytes + again


def _learner_bytes(training: TrainingSpec, sizes: Sizes, workers: int) -> int:
    """Return the bytes of all copies of parameters, of their moments and of policies at the end of an update."""
    states, descent = 11 * sizes.learner // 2, 11 * sizes.gradient
    published = sizes.weights * (WEIGHTS_KEPT + 3 + 2 * workers)
    loop = training.loop
    if not isinstance(loop, StalenessAware):
        return states + descent + published
    gradients = 4 * loop.learners * sizes.gradient
    return states + descent + published + gradients + WEIGHTS_KEPT * sizes.parameters


def _step_bytes(training: TrainingSpec, spaces: Spaces) -> int:
    """Return the bytes of a step while it is learned from, beside the trajectory that it came in."""
    seen, action = _observation_bytes(spaces), _action_bytes(spaces)
    shuffled = seen + action + _SHUFFLED_NUMBERS
    normalised = 3 * seen if training.algorithm.normalise_observations and not spaces.pictures else 0
    tensors = seen + action if spaces.pictures else 0
    return seen + action + normalised + tensors + 2 * shuffled + _STEP_NUMBERS


def _minibatch(training: TrainingSpec, spaces: Spaces, sizes: Sizes, steps: int) -> Need:
    """Return what layers give of a minibatch, and its gradient by shards. All that is there may be one minibatch."""
    whole = isinstance(training.loop, StalenessAware) or not hasattr(training.algorithm, "minibatch_size")
    at_once = steps if whole or not steps else training.algorithm.minibatch_of(steps)
    shards = ceil(at_once / _PICTURES_A_SHARD) if spaces.pictures else 0
    taken = at_once * _sample_bytes(training, spaces) + shards * sizes.gradient
    return Need("round" if whole else "minibatch", taken)


def _needs_torch(measure: AnyMeasure) -> bool:
    """Return whether a measurement beside an update computes in tensors, also of networks that learn without."""
    return isinstance(measure, PolicyShiftSpec) or getattr(measure, "objective", "") == "total_loss"


def _measuring_bytes(training: TrainingSpec, spaces: Spaces, steps: int) -> int:
    """Return the bytes of what layers give of the samples that a scaling policy has measured, and of its slopes."""
    sample, taken = _sample_bytes(training, spaces), [0]
    for measure in training.scaling.measures:
        if isinstance(measure, CurvatureSpec):
            taken.append(4 * sample * min(steps, measure.samples))
        elif isinstance(measure, NoiseScaleSpec):
            taken.append(2 * sample * training.progress_a_call)
    return max(taken)


def _sample_bytes(training: TrainingSpec, spaces: Spaces) -> int:
    """Return the bytes of what the layers of a network give of one sample, and of the slopes on the way back."""
    sizes = [prod(named.layer.output_shape) for named in training.network.layout(spaces).learner]
    if spaces.pictures:  # of each shard the graph is kept, and slopes only of one layer at a time
        return 4 * (spaces.observation_size + sum(sizes) + max(sizes))
    return 4 * (sum(sizes) + 4 * max(sizes))


def _of_actor(training: TrainingSpec, spaces: Spaces, sizes: Sizes) -> tuple[Need, ...]:
    entry = ENTRIES.get(training.environment.id)
    family = _OTHER_FAMILY if entry is None else _FAMILIES.get(entry.family, 0)
    rollout = training.rollout
    state = expectation_of(training.environment.id, pictures=spaces.pictures).state_bytes
    copy = _COPIES.get(entry.family if entry else "", _OTHER_COPY) + 4 * state
    steps = training.progress_a_call
    outputs = 16 * spaces.policy_outputs
    needs = [
        Need("process", ACTOR_PROCESS + family),
        Need("network", BLOBS_OF_WORKER * sizes.weights),
        Need("round", _FRAGMENT_COPIES * sizes.trajectory + steps * outputs),
        Need("environments", rollout.environments_per_actor * copy),
    ]
    loop = training.loop
    if isinstance(loop, StalenessAware) and loop.where == "actor":
        learned = loop.trajectories_per_gradient
        a_slice = learned * training.progress_a_call
        of_slice = 4 * learned * sizes.trajectory + a_slice * _step_bytes(training, spaces)
        needs += [
            Need("network", 8 * sizes.gradient),
            Need("round", of_slice),
            _minibatch(training, spaces, sizes, a_slice),
        ]
        if not training.network.has_closed_form:
            needs.append(Need("process", _TORCH))
    return tuple(needs)


def _observation_bytes(spaces: Spaces) -> int:
    return spaces.observation_size * (1 if spaces.pictures else 4)


def _action_bytes(spaces: Spaces) -> int:
    return 8 * len(spaces.action_counts) if spaces.discrete else 4 * len(spaces.action_low)
