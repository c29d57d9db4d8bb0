"""Bills of made-up jobs, for looking at pages: in the proportions of jobs that really ran."""

from __future__ import annotations

from typing import Any

from webapp.clock import SYSTEM_CLOCK
from webapp.jobs.models import Job
from webapp.money.models import RENT, Account, BillSheet, Charge, ChargeState, LaunchForecast

SIMULATED: dict[str, Any] = {
    "total": 448001000000,
    "parts": {
        "cold_starts": 3261000000,
        "environment": 29656000000,
        "inference": 7000000000,
        "transfer": 2000000000,
        "requests": 3911000000,
        "evaluation": 1492000000,
        "failed": 74000000,
        "learner": 92526000000,
        "idle": 293936000000,
        "address_and_disk": 14145000000,
    },
    "by_forecast_part": {
        "learner": 400607000000,
        "actors": 41991000000,
        "evaluation": 1492000000,
        "requests": 3911000000,
    },
    "counts": {
        "calls": 1268,
        "cold_starts": 12,
        "failed_calls": 4,
        "actors_stood_ms": 0,
        "actors_busy_ms": 0,
        "learner_stood_ms": 118748,
        "learner_busy_ms": 28430,
    },
    "time_s": 118.7,
    "papers": {
        "nitro-intended": 333443000000,
        "nitro-active": 1070110000000,
        "minionsrl": 444610000000,
        "stellaris": 800825000000,
        "siren": 37698000000,
    },
    "free_tier": {"covered": 47394000000, "total": 448001000000},
    "not_compared": False,
    "notes": [],
}
SIMULATED_ELSEWHERE = [
    ("one-machine", "One plain CPU machine", 324476000000, 96.2),
    ("one-machine-spot", "One plain CPU machine, spot", 168427000000, 96.2),
    ("nitro-cluster", "Nitro's server cluster", 1953651000000, 107.7),
    ("minionsrl-cluster", "MinionsRL's server cluster", 3921531000000, 113.5),
    ("stellaris-cluster", "Stellaris' server cluster", 2654738000000, 107.7),
]

LOCAL: dict[str, Any] = {
    "total": 0,
    "parts": {},
    "counts": {
        "calls": 280,
        "cold_starts": 2,
        "actors_stood_ms": 0,
        "actors_busy_ms": 0,
        "learner_stood_ms": 0,
        "learner_busy_ms": 0,
    },
    "time_s": 18.9,
    "papers": {
        "nitro-intended": 4653000000,
        "nitro-active": 18816000000,
        "minionsrl": 2371000000,
        "stellaris": 14081000000,
        "siren": 455000000,
    },
    "free_tier": {"covered": 0, "total": 0},
    "not_compared": False,
    "notes": [],
}
LOCAL_ELSEWHERE = [
    ("one-machine", "One plain CPU machine", 13402000000, 68.4),
    ("one-machine-spot", "One plain CPU machine, spot", 6957000000, 68.4),
    ("lambda", "AWS Lambda", 14705000000, 71.6),
    ("nitro-cluster", "Nitro's server cluster", 74064000000, 70.4),
    ("minionsrl-cluster", "MinionsRL's server cluster", 143569000000, 71.6),
    ("stellaris-cluster", "Stellaris' server cluster", 100642000000, 70.4),
]


_PARTS = {
    "rollout": ("cold_starts", "environment", "inference", "transfer", "requests", "failed"),
    "evaluate": ("evaluation",),
    "update": ("learner",),
    RENT: ("idle", "address_and_disk"),
}
"""What of the bill each kind of charge came to."""


def _settle(job: Job) -> None:
    """Books what the bill tells apart: the account, its charges and the bill come to the same amount."""
    counts = {"rollout": 1121, "evaluate": 7, "update": 140, RENT: 2}
    charges = []
    for kind, count in counts.items():
        each, left = divmod(sum(SIMULATED["parts"][part] for part in _PARTS[kind]), count)
        for at in range(count):
            amount = each + (left if at == 0 else 0)
            charges.append(
                Charge(
                    account=job.account,
                    epoch=1,
                    name=f"{kind}-{at}",
                    round_no=1 + at * job.round_no // count,
                    kind=kind,
                    state=ChargeState.SETTLED,
                    basis="metered",
                    reserved_picodollars=amount,
                    settled_picodollars=amount,
                    opened_at=job.started_at,
                    resolved_at=SYSTEM_CLOCK.now(),
                )
            )
    Charge.objects.bulk_create(charges)
    Account.objects.filter(job=job).update(spent_picodollars=SIMULATED["total"])


def _forecast(job: Job) -> None:
    """A forecast at launch that was a fifth too low, most of it for the learner's machine."""
    LaunchForecast.objects.create(
        job=job,
        at=job.created_at,
        alike="",
        cost_p10_picodollars=310000000000,
        cost_p50_picodollars=373000000000,
        cost_p90_picodollars=441000000000,
        time_p10_s=80.0,
        time_p50_s=96.0,
        time_p90_s=118.0,
        first_round_picodollars=9000000000,
        parts={
            "learner": 322000000000,
            "actors": 44100000000,
            "evaluation": 3200000000,
            "requests": 3890000000,
        },
    )


def bills_of(simulated: Job, local: Job, over: Job) -> None:
    """A running simulated job's bill so far, the last one of a job that ran here for nothing, and that of a job that is
    over, beside its forecast."""
    _settle(simulated)
    for job in (simulated, over):
        _forecast(job)
    for job, document, elsewhere in (
        (simulated, SIMULATED, SIMULATED_ELSEWHERE),
        (over, SIMULATED, SIMULATED_ELSEWHERE),
        (local, LOCAL, LOCAL_ELSEWHERE),
    ):
        names = ("profile", "title", "picodollars", "time_s")
        compared = [dict(zip(names, one, strict=True)) | {"problem": ""} for one in elsewhere]
        BillSheet.objects.create(
            job=job,
            at=SYSTEM_CLOCK.now(),
            round_no=job.round_no,
            total_picodollars=document["total"],
            final=job is not simulated,
            again_at=None if job is not simulated else SYSTEM_CLOCK.now(),
            document=document | {"compared": compared},
        )
