"""The pullers of a job, for its process and its page, and the tokens that let them in."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from training.engine.ports import Puller
from webapp.accounts.models import Membership, Role
from webapp.connections.gateway.models import BoxToken, CallState, PulledCall, SeenPuller
from webapp.job_states import TERMINAL

# A waiting puller calls every 25 s at the latest, a working one every few seconds.
PRESENT_S = 40.0


@dataclass(frozen=True)
class CallingMachines:
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
    rows = []
    for row in SeenPuller.objects.filter(box_id=job_id).order_by("first_seen_unix_s", "pk"):
        call_id, heard = held.get(row.name, (None, 0.0))
        last = max(row.last_seen_unix_s, heard)
        rows.append(Puller(row.name, row.unit, row.first_seen_unix_s, last, call_id, row.leaving))
    return rows


def machines(job_id: str, now_unix_s: float) -> CallingMachines:
    seen = pullers(job_id)
    here = [one for one in seen if not one.leaving and one.last_seen_unix_s > now_unix_s - PRESENT_S]
    return CallingMachines(
        called=len({puller.unit for puller in seen}),
        present=len({puller.unit for puller in here}),
        actors=len(here),
        working=sum(puller.call_id is not None for puller in here),
    )


def valid_tokens() -> QuerySet[BoxToken]:
    """The tokens that open their box now.

    A token ends with its job. It also ends when its maker is removed from the project or may only view it, and with
    everything that ends the maker's sessions: a new password, signing out everywhere, an account that is switched off.
    """
    # Of this membership: a maker who left and was added again makes a new token.
    may_run = Membership.objects.filter(
        user=OuterRef("made_by"),
        project=OuterRef("box__job__project"),
        role__in=[role for role in Role if role.allows(Role.EDITOR)],
        created_at__lte=OuterRef("made_at"),
    )
    makers = Q(made_by__is_active=True, made_by__access_epoch=F("access_epoch")) & Exists(may_run)
    return BoxToken.objects.filter(makers | Q(made_by=None)).exclude(box__job__observed__in=TERMINAL)


def tokens_of_people(job_id: str) -> QuerySet[BoxToken]:
    """The job's valid tokens that people made, in the order in which they were made."""
    return (
        valid_tokens().filter(box_id=job_id, made_by__isnull=False).select_related("made_by").order_by("pk")
    )
