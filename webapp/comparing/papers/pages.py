"""What the pages of experiments show, put together from stored results and from the list of the papers' figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from webapp.comparing.papers.drawing import PaperPanel, Series, panel
from webapp.comparing.papers.figures import FIGURES, PaperFigure, figures_of, find_result, result_names
from webapp.comparing.papers.verdicts import VerdictRow, pill_of, verdict

_DRAWN = 6
_SEEDS_DRAWN = 6


@dataclass(frozen=True)
class FigureRow:
    """A figure of a paper on the list: what it says, what came of it here, and where to read on."""

    figure: PaperFigure
    word: str
    tone: str
    icon: str
    leading: VerdictRow | None
    differs: int
    led_by: str
    links: tuple[tuple[str, str], ...]
    ran: str


def figure_rows(paper: str) -> list[FigureRow]:
    return [figure_row(figure) for figure in FIGURES if figure.paper == paper]


def figure_row(figure: PaperFigure) -> FigureRow:
    """`led_by` is the experiment of the leading claim; `differs`: in how many settings it is not the paper's."""
    results = [(name, found) for name in figure.repeated_by if (found := find_result(name)) is not None]
    answers = [
        (verdict(claim), name, found)
        for name, found in results
        for claim in found["verdicts"]
        if found["kind"] == "calculation" or figure.key in claim.get("asked", {}).get("repeats", ())
    ]
    leading = _leading([answer for answer, _, _ in answers])
    led_by, declared = next(((name, found) for answer, name, found in answers if answer is leading), ("", {}))
    word = leading.word if leading else "on demand" if figure.elsewhere else "shown" if results else "not run"
    ran = [f"{found['runs_complete']} of {found['runs']} runs" for _, found in results if found.get("runs")]
    links = tuple((name, found["title"]) for name, found in results)
    differs = len(changed_settings(declared))
    return FigureRow(figure, word, *pill_of(word), leading, differs, led_by, links, "; ".join(ran))


def _leading(answers: Sequence[VerdictRow]) -> VerdictRow | None:
    """The claim that a row shows: the first with a figure. The paper's own claim goes before others, and among those
    and the others the primary one.
    """
    known = [answer for answer in answers if answer.figure] or list(answers)
    return min(known, key=lambda answer: (not answer.paper, not answer.primary), default=None)


def changed_settings(results: dict[str, Any]) -> list[str]:
    """The settings of the recipe that are not the paper's, in words."""
    paths = dict.fromkeys(row["path"] for row in results.get("differences", ()))
    return [re.sub("[._]", " ", path.removeprefix("algorithm.")) for path in paths]


def others() -> list[dict[str, Any]]:
    """Stored experiments that repeat no figure: our own questions, and whether the machinery is right."""
    named = {name for figure in FIGURES for name in figure.repeated_by} | {"not_run"}
    found = [
        (name, results) for name in result_names() if name not in named and (results := find_result(name))
    ]
    return [
        {
            "name": name,
            "title": results.get("title", name),
            "question": results.get("question", ""),
            "leading": _leading([verdict(claim) for claim in results["verdicts"]]),
            "ran": f"{results['runs_complete']} of {results['runs']} runs" if results.get("runs") else "",
        }
        for name, results in found
    ]


def totals() -> dict[str, Any]:
    """How much of everything that was declared has run."""
    found = [results for name in result_names() if (results := find_result(name)) and results.get("runs")]
    return {
        "runs": sum(results["runs"] for results in found),
        "complete": sum(results["runs_complete"] for results in found),
        "hours_left": sum(results.get("processor_s_left", 0.0) for results in found) / 3600,
    }


def page_of(name: str, results: dict[str, Any]) -> dict[str, Any]:
    """Everything on one experiment's page."""
    verdicts = [verdict(claim) for claim in results["verdicts"]]
    decided = [row for row in verdicts if row.word != "open"]
    arms = results.get("arms", [])
    hours = results.get("processor_s_left", 0.0) / 3600
    return {
        "name": name,
        "results": results,
        "figures": figures_of(name),
        "changed": changed_settings(results),
        "skill": targets(results),
        "accounts": [
            (words, _groups(claims))
            for words, claims in (
                ("By the paper's own account", [row for row in decided if row.by_paper]),
                ("By our account, start-ups on and off", [row for row in decided if not row.by_paper]),
            )
            if claims
        ],
        "lettered": any(row.letter for row in decided),
        "turned": [row for row in decided if row.turned_by],
        "open": [row for row in verdicts if row.word == "open"],
        "share": round(100 * results["runs_complete"] / results["runs"]) if results.get("runs") else 100,
        "hours_left": hours,
        "hours": results.get("processor_s", 0.0) / 3600,
        "curves": [
            *learning_panels(arms, results.get("targets", {})),
            *actor_panels(arms),
            *ratio_panels(arms),
        ],
        "tables": [_table(table) for table in results.get("tables", [])],
        "arms": [arm for arm in arms if arm["seeds_complete"]],
        "costs": cost_groups(results),
        "made_with": [_words_of(pair) for pair in results.get("made_with", [])],
    }


def targets(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Targets beside what says whether they ask for skill: the pilots' span, and how many untrained policies are there
    already, by the stored result of `untrained_policies`.
    """
    untrained = find_result("untrained_policies") or {"tables": []}
    reached = {
        (environment, meter, target): f"{there:.0f} of {seeds:.0f}"
        for table in untrained["tables"]
        for environment, meter, target, there, seeds, *_ in table["rows"]
    }
    return [
        {**row, "reached": reached.get((row["environment"], row["meter"], row["target"]), "")}
        for row in results.get("skill", [])
    ]


def _groups(claims: Iterable[VerdictRow]) -> list[tuple[str, list[VerdictRow]]]:
    """Claims by their environments, the primary one first."""
    ordered = sorted(claims, key=lambda claim: not claim.primary)
    return [(name, list(rows)) for name, rows in groupby(ordered, lambda claim: claim.environments)]


def _words_of(fingerprint: dict[str, Any]) -> str:
    runs = fingerprint.get("runs")
    counted = f"{runs} run{'s' * (runs > 1)}: " if runs else ""
    return counted + ", ".join(f"{name} {value}" for name, value in fingerprint.items() if name != "runs")


def learning_panels(arms: Sequence[dict[str, Any]], targets: dict[str, float]) -> list[PaperPanel]:
    """Evaluated returns, one panel an environment: the first arms that have run, as declared."""
    panels = []
    for environment, group in groupby(arms, lambda arm: arm["environment"]):
        drawn = [
            Series(
                arm["title"],
                list(zip(arm["curve"]["env_steps"], arm["curve"]["iqm"], strict=True)),
                *arm["curve"].get("band", ((), ())),
            )
            for arm in group
            if arm.get("curve") and arm["curve"].get("iqm")
        ][:_DRAWN]
        if drawn:
            goal = targets.get(environment)
            panels.append(
                panel(
                    f"Return, {environment}",
                    drawn,
                    x_words="environment steps",
                    y_words="interquartile mean of evaluations, from three seeds on with its 95 % interval",
                    level=goal,
                    level_words="" if goal is None else f"target {goal:,.0f}",
                )
            )
    return panels


def actor_panels(arms: Sequence[dict[str, Any]]) -> list[PaperPanel]:
    """Numbers of actors by round of the arms that change them."""
    panels = []
    for environment, group in groupby(arms, lambda arm: arm["environment"]):
        drawn = [
            Series(arm["title"], list(enumerate(arm["actors_by_round"], start=1)))
            for arm in group
            if len(set(arm.get("actors_by_round", ()))) > 1
        ][:_DRAWN]
        if drawn:
            title = f"Actors by round, {environment}"
            panels.append(panel(title, drawn, x_words="rounds", y_words="actors, mean of the seeds"))
    return panels


def ratio_panels(arms: Sequence[dict[str, Any]]) -> list[PaperPanel]:
    """R by round, each seed a line, of the first arm in each environment that measured it."""
    panels = []
    for environment, group in groupby(arms, lambda arm: arm["environment"]):
        measured = next((arm for arm in group if arm.get("ratio_by_round")), None)
        if measured is None:
            continue
        lines = [
            Series(f"seed {seed}", [(k, value) for k, value in enumerate(values, start=1) if value])
            for seed, values in measured["ratio_by_round"].items()
        ][:_SEEDS_DRAWN]
        lines = [line for line in lines if line.points]
        if lines:
            title = f"Curvature by round, {environment}, {measured['title']}"
            panels.append(panel(title, lines, x_words="rounds", y_words="R = −λmax / λmin"))
    return panels


@dataclass(frozen=True)
class PaperCell:
    words: str
    number: bool


def _table(table: dict[str, Any]) -> dict[str, Any]:
    """A calculation's table as it is shown, with its curves."""
    numbers = [not isinstance(value, str) for value in table["rows"][0]]
    heads = [PaperCell(name, number) for name, number in zip(table["columns"], numbers, strict=True)]
    cells = [[_cell(value) for value in row] for row in table["rows"]]
    return {**table, "panel": table_panel(table), "heads": heads, "cells": cells}


def _cell(value: str | float) -> PaperCell:
    if isinstance(value, str):
        return PaperCell(value, False)
    words = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return PaperCell(words.replace("-", "−"), True)


def table_panel(table: dict[str, Any]) -> PaperPanel | None:
    """A calculation's table as curves, where it says which columns are the axes."""
    if not table.get("drawn"):
        return None
    columns = list(table["columns"])
    x, y = (columns.index(name) for name in table["drawn"])
    words = [i for i, value in enumerate(table["rows"][0]) if isinstance(value, str)]
    by_name: dict[str, list[tuple[float, float]]] = {}
    for row in table["rows"]:
        by_name.setdefault(", ".join(str(row[i]) for i in words), []).append((row[x], row[y]))
    series = [Series(name, points) for name, points in by_name.items()]
    return panel(table["title"], series, x_words=columns[x], y_words=columns[y])


def cost_groups(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Costs by environment and place, with the most that any policy of scaling could save there."""
    titles = {arm["arm"]: arm["title"] for arm in results.get("arms", [])}
    places = {place["name"]: place for place in results.get("venues", [])}
    rows = results.get("costs", [])
    groups = []
    for environment in dict.fromkeys(row["environment"] for row in rows):
        for venue in places:
            here = [row for row in rows if (row["environment"], row["venue"]) == (environment, venue)]
            if here:
                shares = [f"{100 * share:.0f} %" for share in sorted(row["rollouts_share"] for row in here)]
                groups.append(
                    {
                        "environment": environment,
                        "place": places[venue],
                        "ceiling": " to ".join(dict.fromkeys((shares[0], shares[-1]))),
                        "training": all(row.get("training") for row in here),
                        "evaluation": all(row["target"] is not None for row in here),
                        "rows": [
                            {
                                **row,
                                "title": titles.get(row["arm"], row["arm"]),
                                "share": f"{100 * row['rollouts_share']:.0f} %",
                            }
                            for row in here
                        ],
                    }
                )
    return groups
