"""Where a board's figures come from: finished jobs, each read once, and the stored experiments on simulated clouds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any
from urllib.parse import urlencode

from training.rl.environments import catalogue
from webapp.comparing.models import GoalResult
from webapp.comparing.papers import figures
from webapp.job_states import Observed
from webapp.jobs.charts.score_curves import RunCurve, arrival, own_curves_of
from webapp.jobs.models import Job
from webapp.money.amounts import PICODOLLARS_PER_USD

AT_ONCE = 50
_ENDED = (Observed.SUCCEEDED, Observed.FAILED)

_EXPERIMENTS = ("nitro_rewards", "nitro_rewards_fast", "minionsrl_schedules", "minionsrl_table2")
_OURS = "starling"
_PLAIN = "machine"


def references() -> dict[str, float]:
    """Return the reference return of each environment that has one."""
    entries = catalogue.ENTRIES.values()
    return {entry.id: entry.reference_score for entry in entries if entry.reference_score is not None}


def title_of(subject: str) -> str:
    return catalogue.ENTRIES[subject].title


def read_finished() -> int:
    """Read the next finished jobs, and return how many. A job that a user stopped does not count."""
    waiting = Job.objects.filter(
        observed__in=_ENDED, goal_result=None, round_no__gt=0, deleted_at=None, subject__in=references()
    )
    jobs = list(waiting.order_by("pk").defer("summary", "note")[:AT_ONCE])
    curves = own_curves_of(jobs) if jobs else {}
    GoalResult.objects.bulk_create([_result(job, curves) for job in jobs], ignore_conflicts=True)
    return len(jobs)


def _result(job: Job, curves: Mapping[str, RunCurve]) -> GoalResult:
    goal, curve = references()[job.subject], curves[job.pk]
    reached = arrival(curve, goal, job.training_facts.score)
    spec: Mapping[str, Any] = job.spec
    return GoalResult(
        job=job,
        project_id=job.project_id,
        subject=job.subject,
        algorithm=job.algorithm,
        policy=spec["training"]["scaling"]["kind"],
        cloud=_cloud(spec["platform"]),
        money=job.unreal,
        goal=goal,
        evaluated=curve.basis == "evaluation",
        reached=reached is not None,
        cost_picodollars=round(reached.usd * PICODOLLARS_PER_USD) if reached is not None else None,
        time_s=reached.time_s if reached is not None else None,
    )


def _cloud(platform: Mapping[str, Any]) -> str:
    """Return the platform's kind, with the profile of a simulated one."""
    return f"{platform['kind']}:{platform['profile']}" if "profile" in platform else platform["kind"]


@dataclass(frozen=True)
class MeasuredRow:
    """One arm of an experiment at one place. `run` is what a form begins with to run the like; empty if it cannot."""

    experiment: str
    subject: str
    arm: str
    venue: str
    goal: float
    runs: int
    reached: int
    cost_picodollars: int | None
    time_s: float | None
    run: str


def measured_rows(subject: str) -> list[MeasuredRow]:
    """Return the rows of an environment: the highest goal first, and of each goal the cheapest. Rows that fewer than
    half of the seeds reached come last.
    """

    def place(row: MeasuredRow) -> tuple[float, float, str, str]:
        cost = inf if row.cost_picodollars is None else row.cost_picodollars
        return -row.goal, cost, row.arm, row.venue

    return sorted((row for row in _every() if row.subject == subject), key=place)


def measured_subjects() -> list[str]:
    return sorted({row.subject for row in _every()})


@lru_cache(1)
def _every() -> tuple[MeasuredRow, ...]:
    return tuple(row for name in _EXPERIMENTS for row in _rows(name))


def _rows(name: str) -> list[MeasuredRow]:
    document = figures.find_result(name)
    if document is None:
        return []
    venues = {venue["name"]: venue for venue in document["venues"]}
    titles = {arm["arm"]: arm.get("title", arm["arm"]) for arm in document["arms"]}
    return [
        MeasuredRow(
            experiment=name,
            subject=cost["environment"],
            arm=titles.get(cost["arm"], cost["arm"]),
            venue=venues[cost["venue"]]["title"],
            goal=reached["target"],
            runs=cost["seeds"],
            reached=reached["reached"],
            cost_picodollars=None
            if (usd := reached["median_usd"]) is None
            else round(usd * PICODOLLARS_PER_USD),
            time_s=reached["median_seconds"],
            run=_beginning(cost["environment"], cost["arm"], venues[cost["venue"]]),
        )
        for cost in document["costs"]
        if (_OURS in cost["venue"] or cost["venue"] == _PLAIN) and (reached := _to_goal(cost)) is not None
    ]


def _to_goal(costs: dict[str, Any]) -> dict[str, Any] | None:
    """Return what it took to the goal while training, if the experiment has one, else to that of evaluations."""
    part: dict[str, Any] = costs.get("training") or costs
    return part if part["target"] is not None else None


def _beginning(environment: str, arm: str, venue: dict[str, Any]) -> str:
    """Return the query of a form that runs the like of an arm: its policy, its environment and its cloud."""
    policy, _, actors = arm.partition("_")
    known = {"environment": environment, "profile": venue["profile"]}
    if policy == "fixed" and actors.isdecimal():
        return urlencode({**known, "scaling": "fixed", "actors": actors})
    if arm == "nitro":
        return urlencode({**known, "scaling": "nitro"})
    return ""
