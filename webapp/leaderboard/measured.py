"""What the stored experiments took to get to their goals, on simulated clouds: the rows beside a project's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any
from urllib.parse import urlencode

from webapp.money.amounts import PICODOLLARS_PER_USD
from webapp.papers import figures

_EXPERIMENTS = ("nitro_rewards", "nitro_rewards_fast", "minionsrl_schedules", "minionsrl_table2")
_OURS = "starling"
_PLAIN = "machine"


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
    venues = {one["name"]: one for one in document["venues"]}
    titles = {one["arm"]: one.get("title", one["arm"]) for one in document["arms"]}
    return [
        MeasuredRow(
            experiment=name,
            subject=one["environment"],
            arm=titles.get(one["arm"], one["arm"]),
            venue=venues[one["venue"]]["title"],
            goal=found["target"],
            runs=one["seeds"],
            reached=found["reached"],
            cost_picodollars=None
            if (usd := found["median_usd"]) is None
            else round(usd * PICODOLLARS_PER_USD),
            time_s=found["median_seconds"],
            run=_beginning(one["environment"], one["arm"], venues[one["venue"]]),
        )
        for one in document["costs"]
        if (_OURS in one["venue"] or one["venue"] == _PLAIN) and (found := _to_goal(one)) is not None
    ]


def _to_goal(costs: dict[str, Any]) -> dict[str, Any] | None:
    """Return what it took to the goal while training, if the experiment has one, else to that of evaluations."""
    found: dict[str, Any] = costs.get("training") or costs
    return found if found["target"] is not None else None


def _beginning(environment: str, arm: str, venue: dict[str, Any]) -> str:
    """Return the query of a form that runs the like of an arm: its policy, its environment and its cloud."""
    policy, _, actors = arm.partition("_")
    known = {"environment": environment, "profile": venue["profile"]}
    if policy == "fixed" and actors.isdecimal():
        return urlencode({**known, "scaling": "fixed", "actors": actors})
    if arm == "nitro":
        return urlencode({**known, "scaling": "nitro"})
    return ""
