"""The memory that a job needs, against what it may have: on this machine, and in the places of its actors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import floor, log10

from django.conf import settings

from cloud.timing.forecasting import workload
from cloud.workers.memory_watch import allow_workers
from training.data.store import MissingData
from training.engine.codec import BODY_LIMIT_BYTES
from training.engine.memory_limit import limit_growth, machine_bytes
from training.engine.memory_needs import MemoryNeeds, Need, largest_of
from training.engine.torch_loading import may_have_gpu
from training.rl.environments.measuring import NotMeasured, measured_apart
from training.rl.spaces import Spaces
from training.spec import TrainingSpec
from training.tasks.kinds import task_of
from webapp.formatting import plural
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.spec import JobSpec

_MEGABYTE, _GIGABYTE = 2**20, 2**30
_REST_BYTES = _GIGABYTE
"""What the site and its worker take beside the jobs."""
_LEAST_BYTES = _GIGABYTE


@dataclass(frozen=True)
class JobMemory:
    """What a job takes on this machine: its process, and its actors where they are processes of this machine."""

    needs: MemoryNeeds
    workers: int

    @property
    def here(self) -> tuple[Need, ...]:
        return (*self.needs.job, *(Need(need.of, need.bytes * self.workers) for need in self.needs.actor))

    @property
    def bytes_here(self) -> int:
        return self.needs.job_bytes + self.workers * self.needs.actor_bytes

    @property
    def shares(self) -> tuple[int, int]:
        """What the job's process and each of its workers may take of what the job may take here."""
        room = max(most_job_bytes(), self.bytes_here)
        return (
            room * self.needs.job_bytes // self.bytes_here,
            room * self.needs.actor_bytes // self.bytes_here,
        )


def most_job_bytes() -> int:
    """Return how much memory a job may take on this machine, as the operator says, or so much that two such jobs fit
    beside the rest."""
    if chosen := int(settings.STARLING_MAX_JOB_MEMORY_MB):
        return chosen * _MEGABYTE
    machine = machine_bytes()
    return min(machine, max(_LEAST_BYTES, (machine - _REST_BYTES) // 2))


def memory_of(spec: JobSpec) -> JobMemory | None:
    """Return what a job takes; None where its data or environment cannot be used, which other checks say."""
    workers = _workers(spec)
    try:
        return JobMemory(task_of(spec.training).memory_needs(_spaces(spec), workers), workers)
    except (MissingData, ValueError):
        return None


def memory_obstacle(spec: JobSpec) -> SpecProblem | None:
    """Return why a job would run out of memory, in one sentence; None if it would not."""
    if (memory := memory_of(spec)) is None:
        return None
    return next(_problems(spec, memory), None)


def limit_to_most() -> None:
    """Keep this process, and each worker that it will start, below what a job may take."""
    most = most_job_bytes()
    if not may_have_gpu():
        limit_growth(most)
    allow_workers(most)


def limit_process(memory: JobMemory) -> None:
    """Keep this process and the workers that it will start below what the job may take. On a GPU's machine the process
    itself is not limited: what a driver maps would count."""
    own, of_worker = memory.shares
    if not may_have_gpu():
        limit_growth(own)
    allow_workers(of_worker)


def memory_sentence(spec: JobSpec) -> str:
    """Return how much memory a job needs; empty if that is not known."""
    if (memory := memory_of(spec)) is None:
        return ""
    own, actor, name = memory.needs.job_bytes, memory.needs.actor_bytes, spec.training.actor_name
    here = f"About {format_memory(own)} in the job's process and {format_memory(actor)} in each {name}"
    return f"{here}; a job may take {format_memory(most_job_bytes())} on this machine."


def format_memory(byte_count: float) -> str:
    """Return a rough amount of memory, with two digits."""
    if byte_count < 10 * _MEGABYTE:
        return f"{max(1, round(byte_count / _MEGABYTE))} MB"
    unit, word = (_MEGABYTE, "MB") if byte_count < 0.995 * _GIGABYTE else (_GIGABYTE, "GB")
    amount = byte_count / unit
    return f"{amount:.1f} {word}" if amount < 9.95 else f"{int(_two_digits(amount)):,} {word}"


def _workers(spec: JobSpec) -> int:
    """Return how many processes of this machine do the calls of actors."""
    return spec.platform.processes_here(spec.training.scaling.largest)


def _spaces(spec: JobSpec) -> Spaces | None:
    """Return the spaces of the environment, guessed if measuring them had no time. ValueError if it cannot be made."""
    if not isinstance(spec.training, TrainingSpec):
        return None
    try:
        return measured_apart(spec.training.environment)
    except NotMeasured:
        return workload.spaces_of(spec.training)[0]


def _problems(spec: JobSpec, memory: JobMemory) -> Iterator[SpecProblem]:
    for need in memory.needs.documents:
        if need.bytes > BODY_LIMIT_BYTES:
            what = "the learner's state" if need.of == "network" else "what one call samples"
            words = f"{what} would have {format_memory(need.bytes)}, and a message of a job holds"
            yield _problem(
                spec, need, f"{words} {format_memory(BODY_LIMIT_BYTES)}.", BODY_LIMIT_BYTES, memory
            )
    most = most_job_bytes()
    if memory.bytes_here > most:
        where = (
            f"in its own process and {plural(memory.workers, 'worker')}"
            if memory.workers
            else "in its own process"
        )
        words = (
            f"the job needs about {format_memory(memory.bytes_here)} of memory on this machine, {where}, and may take"
            f" {format_memory(most)} of its {format_memory(machine_bytes())}."
        )
        need = largest_of(memory.here)
        yield _problem(spec, need, words, need.bytes - (memory.bytes_here - most), memory)
    allowed = _bytes_of_place(spec)
    if allowed is not None and memory.needs.actor_bytes > allowed:
        words = (
            f"each {spec.training.actor_name} needs about {format_memory(memory.needs.actor_bytes)} of memory and has"
            f" {format_memory(allowed)}; give it more ({_path_of_place(spec)}), or ask for less."
        )
        need = largest_of(memory.needs.actor)
        yield _problem(spec, need, words, need.bytes - (memory.needs.actor_bytes - allowed), memory)


def _problem(spec: JobSpec, need: Need, words: str, room: int, memory: JobMemory) -> SpecProblem:
    """Return the problem at the field that the need grows with. `room`: what the need may have."""
    path, title, advice = _changes(spec, need, room, memory)
    return SpecProblem(path, f"{title} ({path}): {words} {advice}")


def _changes(spec: JobSpec, need: Need, room: int, memory: JobMemory) -> tuple[str, str, str]:
    """Return the field to change, its title and what to do."""
    training = spec.training
    if not isinstance(training, TrainingSpec):
        if need.of == "network":
            return "training.model", "Model", "Choose a smaller model, fewer columns or fewer functions."
        return (
            "training.minibatch",
            "Minibatch",
            "Choose a smaller minibatch, fewer local steps or functions.",
        )
    if need.of == "network":
        path = "training.network.hidden"
        return path, "Hidden layers", "Choose fewer or smaller hidden layers."
    if need.of == "minibatch":
        most = _at_most(training.algorithm.minibatch_of(memory.needs.steps), need, room, "samples")
        return "training.algorithm.minibatch_size", "Minibatch", f"Choose a smaller minibatch{most}."
    if need.of == "environments":
        path = "training.rollout.environments_per_actor"
        return path, "Environment copies per actor", "Choose fewer copies of the environment."
    path = "training.rollout.steps_per_call"
    most = _at_most(memory.needs.steps, need, room, "steps a round")
    words = f"Sample fewer steps a round{most}: fewer steps per call, environment copies or actors."
    return path, "Steps per call", words


def _at_most(count: int, need: Need, room: int, of: str) -> str:
    """Return the most that fits, for a need that grows with a count; empty if nothing would."""
    most = _two_digits(count * max(0, room) / max(1, need.bytes))
    return f" (at most about {int(most):,} {of})" if most >= 1 else ""


def _two_digits(value: float) -> float:
    """Return a number rounded down to its first two digits."""
    if value < 1:
        return 0.0
    step = 10.0 ** max(0, floor(log10(value)) - 1)
    return floor(value / step) * step


def _bytes_of_place(spec: JobSpec) -> int | None:
    """Return the memory that an actor has where its size is bought; None elsewhere. That of functions that learn from
    data is checked with their data (`webapp.datasets.job_choice`)."""
    if spec.platform.actor_memory_mb is not None:
        return spec.platform.actor_memory_mb[1] * _MEGABYTE
    if not spec.platform.has_functions or not isinstance(spec.training, TrainingSpec):
        return None
    changing = spec.training.scaling.memory_range_mb
    return (changing[1] if changing else spec.training.memory_mb) * _MEGABYTE


def _path_of_place(spec: JobSpec) -> str:
    if spec.platform.actor_memory_mb is not None:
        return f"platform.{spec.platform.actor_memory_mb[0]}"
    return f"training.{spec.training.memory_field}"
