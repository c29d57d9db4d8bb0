"""What a Ray cluster says of the actors of all jobs of Starling: which have a core, and which wait for one."""

from __future__ import annotations

import importlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cloud.platforms.ray.core_sharing import JobCores

_LIVING = ("DEPENDENCIES_UNREADY", "PENDING_CREATION", "ALIVE")


@dataclass(frozen=True)
class ActorRow:
    """One actor. It has a core from the moment when Ray has found one for it, before its process answers."""

    id: str
    job: str
    cores: float
    has_core: bool


@dataclass(frozen=True)
class ActorTable:
    """The living actors, and the cores of each machine of the cluster."""

    actors: tuple[ActorRow, ...]
    machines: tuple[float, ...]

    def with_core(self) -> dict[str, bool]:
        """Return each actor by its id, and whether it has a core."""
        return {actor.id: actor.has_core for actor in self.actors}

    def by_job(self) -> dict[str, JobCores]:
        """Return what each job has of the cluster. An actor that no machine can ever hold does not count as waiting."""
        rows: dict[str, list[ActorRow]] = defaultdict(list)
        for row in self.actors:
            rows[row.job].append(row)
        return {
            job: JobCores(
                job,
                each=max(actor.cores for actor in found),
                held=sum(actor.cores for actor in found if actor.has_core),
                waits=any(not actor.has_core and self.fits(actor.cores) for actor in found),
            )
            for job, found in rows.items()
        }

    def fits(self, cores: float) -> bool:
        """Return whether a machine has that many cores, free or not."""
        return any(cores <= machine for machine in self.machines)


def read_actor_table(ray: Any, class_name: str) -> ActorTable:
    """Read the table of actors of this class. Ray's own functions leave out how many cores an actor needs."""
    state = importlib.import_module("ray._private.state").state
    rows = importlib.import_module("ray.core.generated.gcs_pb2").ActorTableData
    accessor = state._connect_and_get_accessor()
    read = (rows.FromString(data) for name in _LIVING for data in accessor.get_actor_table(None, name))
    actors = tuple(
        ActorRow(
            id=row.actor_id.hex(),
            job=row.job_id.hex(),
            cores=row.required_resources.get("CPU", 0.0),
            # Ray notes the process once a machine has given it its cores.
            has_core=row.pid != 0,
        )
        for row in read
        if row.class_name == class_name
    )
    return ActorTable(actors, _cores_of_machines(ray.nodes()))


def _cores_of_machines(nodes: Sequence[dict[str, Any]]) -> tuple[float, ...]:
    return tuple(float(node["Resources"].get("CPU", 0.0)) for node in nodes if node["Alive"])
