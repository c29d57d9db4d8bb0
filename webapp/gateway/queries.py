"""The pullers of a job, for its process and its page."""

from __future__ import annotations

from dataclasses import dataclass

from training.ports import Puller
from webapp.gateway.models import CallState, PulledCall, SeenPuller

# A waiting puller calls every 25 s at the latest, a working one every few seconds.
PRESENT_S = 40.0


@dataclass(frozen=True)
class Machines:
    """How many machines have ever called, how many are present, and how many actors these run."""

    called: int
    present: int
    actors: int
    working: int


def pullers(job_id: str) -> list[Puller]:
    leased = PulledCall.objects.filter(box_id=job_id, state=CallState.LEASED)
    held = {
        puller: (call_id, heard)
        for puller, call_id, heard in leased.values_list("puller", "call_id", "heard_unix_s")
    }
    found = []
    for row in SeenPuller.objects.filter(box_id=job_id).order_by("first_seen_unix_s", "pk"):
        call_id, heard = held.get(row.name, (None, 0.0))
        last = max(row.last_seen_unix_s, heard)
        found.append(Puller(row.name, row.unit, row.first_seen_unix_s, last, call_id, row.leaving))
    return found


def machines(job_id: str, now_unix_s: float) -> Machines:
    seen = pullers(job_id)
    here = [one for one in seen if not one.leaving and one.last_seen_unix_s > now_unix_s - PRESENT_S]
    return Machines(
        called=len({one.unit for one in seen}),
        present=len({one.unit for one in here}),
        actors=len(here),
        working=sum(one.call_id is not None for one in here),
    )
