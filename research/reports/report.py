"""What came out of an experiment, for people (Markdown), for programs (JSON) and as a figure (SVG)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from research.experiment import Experiment
from research.reports.cost_report import cost_verdicts, priced_runs
from research.reports.cost_tables import cost_lines, cost_tables
from research.reports.earlier import add_earlier
from research.reports.learning_curves import BAND_REPETITIONS, BAND_SEEDS, learning_curves
from research.reports.outcomes import RunOutcome, Summary, read_summaries
from research.reports.preregistration import declaration, priced_with, processor_s, rounds_by_arm
from research.reports.repeatability import repeatability_tables
from research.reports.scheduler_cost import scheduler_cost_sentences
from research.reports.verdicts import threshold_of, verdicts
from research.skill import add_skill, first_readings, target_rows
from training.statistics.few_seeds import bootstrap, interquartile_mean

DRAWS = 200
_WARNING = (
    "> **Not evidence.** A quick run: one environment, 2 seeds, 6 rounds. It shows that the machinery works."
)


def write_report(
    name: str, experiment: Experiment, folder: Path, target: Path, *, quick: bool = False, draws: int = DRAWS
) -> dict[str, Any]:
    """Write NAME.md, NAME.json and NAME.svg into `target` from the rows in `folder`; the content of the JSON.

    `draws`: how often the clouds' numbers are drawn from their ranges for a primary claim.
    """
    summaries = read_summaries(experiment, folder, quick=quick)
    results = results_of(name, experiment, summaries, quick=quick)
    runs = priced_runs(experiment, folder, summaries)
    results["costs"] = cost_tables(experiment, runs)
    results["tables"] = repeatability_tables(experiment, summaries)
    results["skill"] = target_rows(experiment, folder.parents[1], _first_readings(experiment, summaries))
    if not quick:
        results["verdicts"] += [
            verdict.as_dict() for verdict in cost_verdicts(experiment, summaries, runs, draws=draws)
        ]
        add_earlier(name, results["verdicts"])
        add_skill(results["verdicts"], results["skill"])
    titles = {arm.name: arm.title for arm in experiment.arms}
    figure = learning_curves(experiment.title, summaries, titles)
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    (target / f"{name}.md").write_text(_markdown(experiment, results, has_figure=figure is not None))
    if figure is not None:
        (target / f"{name}.svg").write_text(figure)
    return results


def _first_readings(experiment: Experiment, summaries: Sequence[Summary]) -> dict[str, list[float]]:
    trained = [summary for summary in summaries if experiment.arm(summary.arm).study is None]
    return first_readings((one.environment, outcome.rows) for one in trained for outcome in one.done)


def results_of(
    name: str, experiment: Experiment, summaries: Sequence[Summary], *, quick: bool
) -> dict[str, Any]:
    arms = []
    for summary in summaries:
        curve = summary.common_curve()
        arms.append(
            {
                **summary.as_dict(threshold_of(experiment, summary.environment)),
                "title": experiment.arm(summary.arm).title,
                **rounds_by_arm(summary),
                "curve": None
                if curve is None
                else {"env_steps": curve[0], "return_by_seed": curve[1], **middle_of(curve[1])},
            }
        )
    outcomes = [outcome for summary in summaries for outcome in summary.outcomes]
    left = [outcome.cell for outcome in outcomes if not outcome.complete]
    return {
        "name": name,
        "kind": "experiment",
        **declaration(experiment),
        "priced_with": priced_with(experiment),
        "processor_s": processor_s(experiment, [outcome.cell for outcome in outcomes]),
        "processor_s_left": processor_s(experiment, left),
        "evidence": not quick,
        "complete": all(outcome.complete for outcome in outcomes),
        "runs": len(outcomes),
        "runs_complete": sum(outcome.complete for outcome in outcomes),
        "endpoint": experiment.endpoint,
        # A quick run decides nothing, whatever it shows.
        "verdicts": [] if quick else [verdict.as_dict() for verdict in verdicts(experiment, summaries)],
        "arms": arms,
        "schedulers": scheduler_cost_sentences(experiment, arms),
        "made_with": fingerprints(outcomes),
    }


def middle_of(seeds: Sequence[Sequence[float]]) -> dict[str, Any]:
    """The interquartile mean at each step and, from three seeds on, its 95 % interval."""
    columns = np.asarray(seeds).T
    curve: dict[str, Any] = {"iqm": [round(interquartile_mean(column), 1) for column in columns]}
    if len(seeds) >= BAND_SEEDS:
        bands = [bootstrap(column, repetitions=BAND_REPETITIONS) for column in columns]
        curve["band"] = [[round(band.low, 1) for band in bands], [round(band.high, 1) for band in bands]]
    return curve


def fingerprints(outcomes: Sequence[RunOutcome]) -> list[dict[str, Any]]:
    """Each different machine and set of versions that runs were made with, and how many runs."""
    prints: dict[str, dict[str, Any]] = {}
    for outcome in outcomes:
        if outcome.rows:
            made_with = outcome.made_with
            entry = prints.setdefault(json.dumps(made_with, sort_keys=True), {**made_with, "runs": 0})
            entry["runs"] += 1
    return list(prints.values())


def _markdown(experiment: Experiment, results: dict[str, Any], *, has_figure: bool) -> str:
    lines = [f"# {experiment.title}", ""]
    if not results["evidence"]:
        lines += [_WARNING, ""]
    if not results["complete"]:
        lines += [f"> Not finished: {results['runs_complete']} of {results['runs']} runs are complete.", ""]
    lines += [experiment.question, "", "## Verdicts", ""]
    if not results["evidence"]:
        lines += ["A quick run decides nothing.", ""]
    elif not results["verdicts"]:
        lines += ["Nothing was claimed.", ""]
    else:
        lines += _verdict_lines(results["verdicts"])
    if experiment.beside:
        lines += ["## Beside the paper", "", experiment.beside, ""]
    if has_figure:
        lines += [f"![Learning curves]({results['name']}.svg)", ""]
    lines += ["## Figures", "", *_table(results["arms"]), ""]
    lines += [f"Endpoint, declared before the first run: {experiment.endpoint}.", ""]
    lines += [experiment.endpoint_note, ""] if experiment.endpoint_note else []
    lines += [
        "IQM: interquartile mean; brackets: stratified bootstrap, 95 %, which is too narrow for so few seeds. Wall time"
        " is of a machine that did other work as well: no figure of speed.",
        "",
        *cost_lines(experiment, results["costs"]),
        *_scheduler_cost_lines(results["schedulers"]),
        *_thresholds(results["arms"]),
        "## How we would know that it is wrong",
        "",
        experiment.oracle,
        "",
        "## What it can claim",
        "",
        experiment.can_claim,
        "",
        "## Made with",
        "",
        *_made_with(results["made_with"]),
        "",
        f"Repeat: `manage.py papers run {results['name']}`, then `manage.py papers report {results['name']}`.",
        "",
    ]
    return "\n".join(lines)


def _verdict_lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """Claims about returns as sentences; those about money as a table, with the paper's own figures beside ours."""
    plain = [one for one in found if "figures" not in one]
    lines = [f"- **{one['verdict'].capitalize()}**: {one['claim']} {one['reason']}" for one in plain]
    lines += [""] if plain else []
    comparisons = [one for one in found if "figures" in one]
    if not comparisons:
        return lines
    lines += ["| verdict | kind | claim | ours | the paper | remarks |", "|---|---|---|---|---|---|"]
    for one in comparisons:
        ours = _ours(one["figures"].get("interval"), ratio="ratio" in one["claim"])
        paper = one.get("paper") or "–"
        lines.append(
            f"| **{one['verdict']}** | {one['label']} | {one['claim']} | {ours} | {paper} | {_remarks(one)} |"
        )
    accounts = [(one, row) for one in comparisons for row in one["figures"].get("variants", [])]
    if accounts:
        lines += ["", "The same runs by other accounts, each verdict as if it were the only one:", ""]
        lines += ["| claim | account | ours | verdict |", "|---|---|---|---|"]
    for one, row in accounts:
        ours = _ours(row["interval"], ratio="ratio" in one["claim"])
        lines.append(f"| {one['claim']} | {row['words']} | {ours} | {row['word']} |")
    alone = [(one, row) for one in comparisons for row in one["figures"].get("by_environment", [])]
    if alone:
        lines += ["", "Each environment alone, p values by Holm over them:", ""]
        lines += ["| claim | environment | ours | p | verdict |", "|---|---|---|---|---|"]
    for one, row in alone:
        ours = _ours(row["interval"], ratio="ratio" in one["claim"])
        p_value = "–" if row["p_holm"] is None else f"{row['p_holm']:.2g}"
        lines.append(f"| {one['claim']} | {row['environment']} | {ours} | {p_value} | {row['word']} |")
    return [*lines, ""]


def _remarks(one: dict[str, Any]) -> str:
    """The reason, and the verdict before the repairs with what changed it."""
    before = one["figures"].get("earlier")
    if before is None:
        return str(one["reason"])
    ours = _ours(before["interval"], ratio="ratio" in one["claim"])
    words = f"Before the repairs: {ours}, {before['verdict']}."
    return " ".join(filter(None, (one["reason"], words, before.get("why", ""))))


def _ours(interval: dict[str, float] | None, *, ratio: bool) -> str:
    """A ratio is written as a change as well, as in the papers."""
    if interval is None:
        return "–"
    words = f"{interval['value']:.3g} [{interval['low']:.3g}, {interval['high']:.3g}]"
    return (
        f"{words}, {100 * (interval['value'] - 1):+.0f} %".replace("-", "−")
        if ratio
        else words.replace("-", "−")
    )


def _table(arms: Sequence[dict[str, Any]]) -> list[str]:
    lines = [
        "| environment | arm | seeds | endpoint, IQM [95 %] | each seed | last 100 training episodes | wall min |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        iqm = arm["iqm"]
        shown = "–" if iqm is None else f"**{iqm['value']:,.0f}** [{iqm['low']:,.0f}, {iqm['high']:,.0f}]"
        seeds = f"{arm['seeds_complete']} of {arm['seeds_planned']}"
        wall = [f"{seconds / 60:.0f}" for seconds in arm["wall_s_by_seed"].values()]
        lines.append(
            f"| {arm['environment']} | {arm['title']} | {seeds} | {shown} | {_each(arm['endpoint_by_seed'])} |"
            f" {_each(arm['training_return_by_seed'])} | {', '.join(wall) or '–'} |"
        )
    return lines


def _each(by_seed: dict[str, float | None]) -> str:
    return ", ".join("–" if value is None else f"{value:,.0f}" for value in by_seed.values()) or "–"


def _scheduler_cost_lines(sentences: Sequence[str]) -> list[str]:
    lines = [f"- {sentence}" for sentence in sentences]
    return ["## What schedulers cost before they decide anything", "", *lines, ""] if lines else []


def _thresholds(arms: Sequence[dict[str, Any]]) -> list[str]:
    measured = [arm for arm in arms if arm.get("to_threshold", {}).get("of")]
    if not measured:
        return []
    lines = [
        "## How soon",
        "",
        "Steps until three evaluations in a row held the goal; runs that did not are kept.",
        "",
    ]
    for arm in measured:
        reached = arm["to_threshold"]
        median = reached["kaplan_meier_median_steps"]
        median_text = (
            "no median: too few got there" if median is None else f"Kaplan–Meier median {median:,.0f} steps"
        )
        lines.append(
            f"- {arm['environment']}, {arm['title']}: {reached['reached']} of {reached['of']} reached"
            f" {reached['threshold']:,.0f}; {median_text}; PAR2 {reached['par2_steps']:,.0f} steps."
        )
    return [*lines, ""]


def _made_with(machines: Sequence[dict[str, Any]]) -> list[str]:
    return [
        f"- {one['runs']} run{'s' * (one['runs'] > 1)}: "
        + ", ".join(f"{name} {value}" for name, value in one.items() if name != "runs")
        for one in machines
    ] or ["Nothing was run yet."]
