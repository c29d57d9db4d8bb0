"""Siren's simulation run again: the agent against grid searches over functions, and over functions and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from research.calculation import Calculation, ResultTable, Statement
from research.reports.judging import judge
from research.siren_agents import (
    BUDGETS,
    DRAWS,
    EPOCHS,
    GRID_MB,
    LOADS,
    SETTINGS,
    SIZES_MB,
    AgentSetting,
    FunctionsPlan,
    PlayedTrainings,
    counted_s,
    judged_normals,
    play,
    recorded_usd,
    rows,
    run_missing,
    search,
)
from research.siren_tables import GRID, SIREN
from research.statistics import paired_bootstrap
from training.statistics.few_seeds import Interval

_ALONE = (300, 200, 100)
_FIRST_SIZES = (512, 768, 1024)
Counted = dict[AgentSetting, list[float]]
"""By setting, the time of each seed."""


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    """Compares agents whose rows are kept; `papers run` trains those that are missing."""
    kept = rows()
    seeds = [seed for seed in range(100) if all((one.budget, one.load, seed) in kept for one in SETTINGS)]
    if not seeds:
        return [], [
            Statement(
                "The agent takes less time than grid searches.", "open", "No agent is trained.", "learned"
            )
        ]
    arms: list[tuple[str | float, ...]] = []
    draws: list[tuple[str | float, ...]] = []
    agent, both, alone = _nothing(), _nothing(), _nothing()
    room: dict[AgentSetting, float] = {}
    for setting in SETTINGS:
        found, by_functions = search(setting, SIZES_MB), search(setting, [GRID_MB])
        assert found is not None
        plan, tried_usd = found
        twice_of_s = _seconds(setting, plan)
        own = [kept[setting.budget, setting.load, seed] for seed in seeds]
        for seed, row in zip(seeds, own, strict=True):
            normals = judged_normals(seed)
            agent[setting].append(counted_s(_played(row), twice_of_s))
            both[setting].append(counted_s(play(setting.cloud, plan, setting.budget, normals), twice_of_s))
            if by_functions is not None:
                played = play(setting.cloud, by_functions[0], setting.budget, normals)
                alone[setting].append(counted_s(played, twice_of_s))
        name = f"${setting.budget}, {100 * setting.load:.0f} % load"
        arms += [
            _arm(
                name,
                "the agent",
                _first_and_later(own),
                "changes",
                agent[setting],
                own,
                recorded_usd(setting),
            ),
            _fixed(name, "best functions and MB", plan, both[setting], tried_usd),
        ]
        if by_functions is not None:
            arms.append(_fixed(name, "best functions", by_functions[0], alone[setting], by_functions[1]))
        draws.append(
            (
                name,
                float(np.mean([row["faster_in"] for row in own])),
                float(np.mean([row["kept_in"] for row in own])),
                float(np.mean([row["fixed_kept_in"] for row in own])),
            )
        )
        if setting.load:
            first = search(setting, _FIRST_SIZES, own_first=True)
            assert first is not None
            room[setting] = _seconds(setting, first[0]) / twice_of_s - 1.0
    statements = [_over_budgets(load, agent, both, seeds, draws) for load in LOADS]
    statements += [
        _at(AgentSetting(budget, load), agent, both, seeds, room) for load in LOADS for budget in BUDGETS
    ]
    statements += [_against_functions(AgentSetting(budget, 0.0), agent, alone, seeds) for budget in _ALONE]
    return [
        ResultTable(
            "Time and dollars of each arm",
            ("setting", "arm", "functions", "MB", "seconds", "$", "kept its budget, %", "$ of finding it"),
            tuple(arms),
            f"{EPOCHS} epochs to the same loss, {len(seeds)} agents a setting, 100 trainings each. A training that"
            " broke its budget counts as twice the time of the best functions and MB. Finding a grid's point costs a"
            " training at each of its points; the agent's, the six trainings that its rehearsals were fitted to.",
        ),
        ResultTable(
            f"Over {DRAWS} draws of what is assumed of the cloud",
            (
                "setting",
                "the agent is quicker in",
                "it kept its budget in",
                "the best functions and MB kept it in",
            ),
            tuple(draws),
            "Both were chosen on the cloud as assumed and met the drawn one unprepared. Drawn are the parallel share of"
            " the work, the share that is fetched, the fixed time, the load and the spread of epochs.",
        ),
    ], statements


def _nothing() -> Counted:
    return {setting: [] for setting in SETTINGS}


def _seconds(setting: AgentSetting, plan: FunctionsPlan) -> float:
    return float(play(setting.cloud, plan, setting.budget, judged_normals(-1)).seconds.mean())


def _played(row: dict[str, Any]) -> PlayedTrainings:
    return PlayedTrainings(np.array(row["seconds"]), np.array(row["usd"]), np.array(row["kept"]))


def _first_and_later(own: Sequence[dict[str, Any]]) -> str:
    """Return the numbers of functions of the first epoch, the second and the last, means of the agents."""
    first, second, last = (float(np.mean([row[name] for row in own])) for name in ("first", "second", "last"))
    return f"{first:.0f}, {second:.0f} … {last:.0f}"


def _arm(
    name: str,
    arm: str,
    functions: str,
    memory: str,
    counted: Sequence[float],
    own: Sequence[dict[str, Any]],
    found_usd: float,
) -> tuple[str | float, ...]:
    usd = float(np.mean([np.mean(row["usd"]) for row in own]))
    kept = 100 * float(np.mean([np.mean(row["kept"]) for row in own]))
    return (name, arm, functions, memory, float(np.mean(counted)), usd, kept, found_usd)


def _fixed(
    name: str, arm: str, plan: FunctionsPlan, counted: Sequence[float], tried_usd: float
) -> tuple[str | float, ...]:
    budget = next(one for one in SETTINGS if name == f"${one.budget}, {100 * one.load:.0f} % load")
    played = play(budget.cloud, plan, budget.budget, judged_normals(0))
    kept = 100 * float(played.kept.mean())
    usd = float(played.usd.mean())
    return (
        name,
        arm,
        str(plan.functions),
        f"{plan.memory_mb:,}",
        float(np.mean(counted)),
        usd,
        kept,
        tried_usd,
    )


def _over_budgets(
    load: float,
    ours: Counted,
    theirs: Counted,
    seeds: Sequence[int],
    draws: Sequence[tuple[str | float, ...]],
) -> Statement:
    settings = [one for one in SETTINGS if one.load == load]
    x, y = (np.array([of[setting] for setting in settings]).T for of in (ours, theirs))
    interval = paired_bootstrap(x, y)
    word, why = judge(interval, 1.0, len(seeds), less=True)
    ending = f"{100 * load:.0f} % load"
    quicker = [row[1] for row in draws if str(row[0]).endswith(f" {ending}")]
    expected = "about 10 % less" if load else "no difference"
    return Statement(
        f"Over all budgets ({ending}) the agent takes less time than the best fixed functions and MB.",
        word,
        f"{_words(interval)}, expected was {expected}. Of {DRAWS} drawn clouds it is quicker in"
        f" {np.mean(np.array(quicker, dtype=float)):.0f}. {why}".strip(),
        "assumed timing",
    )


def _at(
    setting: AgentSetting,
    ours: Counted,
    theirs: Counted,
    seeds: Sequence[int],
    room: dict[AgentSetting, float],
) -> Statement:
    interval = paired_bootstrap(np.array(ours[setting])[:, None], np.array(theirs[setting])[:, None])
    word, why = judge(interval, 1.0, len(seeds), less=True)
    left = (
        f" A schedule whose first epoch has a number of its own takes {100 * room[setting]:+.1f} %."
        if setting in room
        else ""
    ).replace("-", "−")
    return Statement(
        f"At ${setting.budget} ({100 * setting.load:.0f} % load) the agent takes less time than the best fixed"
        " functions and MB.",
        word,
        f"{_words(interval)}.{left} {why}".strip(),
        "assumed timing",
    )


def _against_functions(
    setting: AgentSetting, ours: Counted, theirs: Counted, seeds: Sequence[int]
) -> Statement:
    interval = paired_bootstrap(np.array(ours[setting])[:, None], np.array(theirs[setting])[:, None])
    word, why = judge(interval, 1.0, len(seeds), less=True)
    grid_s, siren_s = GRID[setting.budget].seconds, SIREN[setting.budget].seconds
    assert grid_s is not None
    assert siren_s is not None
    return Statement(
        f"At ${setting.budget} the agent takes less time than the best number of functions of {GRID_MB:,} MB.",
        word,
        f"{_words(interval)}; the slides have −{100 * (1 - siren_s / grid_s):.0f} %. It may change memory, the grid may"
        f" not. {why}".strip(),
        "assumed timing",
    )


def _words(interval: Interval) -> str:
    def change(value: float) -> str:
        return f"{100 * (value - 1):+.1f} %".replace("-", "−")

    return f"{change(interval.value)} [{change(interval.low)}, {change(interval.high)}]"


CALCULATION = Calculation(
    title="Siren's simulation run again: the agent against grid searches",
    prepare=run_missing,
    question="At equal budget and loss, does a trained agent take less time than the best fixed numbers?",
    oracle=(
        "With alike epochs no changing numbers beat the best fixed ones, as time is convex in them: an agent that did"
        " would show a fault. With a one-time load the first epoch should get more functions than the others."
    ),
    can_claim=(
        "Arithmetic that gives the slides' grid. The slides do not say how memory changes speed; it is assumed here."
        " All arms train for the same epochs, so that what more functions cost in loss is left out."
    ),
    compute=compute,
    beside=(
        "Siren: 36, 13 and 10 % less time than a grid search over the number of functions at 300, 200 and 100 dollars."
        " It was not compared with a search over functions and memory."
    ),
)
