"""What each arm cost, and where: a row for each environment, arm and pricing target, and the rows as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from research.claims import Meter
from research.experiment import Experiment
from research.pricing_targets import PRICING_TARGETS
from research.reports.paired_runs import Runs
from research.reports.run_cost import PricedRun
from research.statistics import median_time, penalised_mean_time
from training.statistics.few_seeds import Reached


def cost_tables(experiment: Experiment, runs: Runs) -> list[dict[str, Any]]:
    """A row for each environment, arm and pricing target: dollars and seconds to the target and in all."""
    rows = []
    for (arm, environment), seeds in runs.items():
        target = experiment.targets.get(environment)
        for pricing_target in experiment.priced_at(arm, environment):
            row: dict[str, Any] = {
                "arm": arm,
                "environment": environment,
                "venue": pricing_target,
                "target": target,
            }
            whole = [run.cost(pricing_target, run.rounds) for run in seeds.values()]
            row |= {
                "seeds": len(whole),
                "usd": float(np.mean([cost.usd for cost in whole])),
                "seconds": float(np.mean([cost.seconds for cost in whole])),
                "paper_usd": float(np.mean([cost.paper_usd for cost in whole])),
                "rollouts_share": float(np.mean([cost.rollouts_share for cost in whole])),
            }
            if target is not None:
                row |= _to_target(list(seeds.values()), pricing_target, target, "evaluation")
            trained = experiment.training_targets.get(environment)
            if trained is not None:
                row["training"] = {
                    "target": trained,
                    **_to_target(list(seeds.values()), pricing_target, trained, "training"),
                }
            rows.append(row)
    return rows


def _to_target(runs: Sequence[PricedRun], pricing_target: str, target: float, meter: Meter) -> dict[str, Any]:
    """Runs that did not get there are kept: the median knows of them, the mean counts them twice what they spent."""
    usd, seconds = [], []
    for run in runs:
        reached = run.reached(target, meter)
        cost = run.cost(pricing_target, int(reached.at))
        usd.append(Reached(cost.usd, reached.observed))
        seconds.append(Reached(cost.seconds, reached.observed))
    return {
        "reached": sum(one.observed for one in usd),
        "median_usd": median_time(usd),
        "median_seconds": median_time(seconds),
        "par2_usd": penalised_mean_time(usd),
        "par2_seconds": penalised_mean_time(seconds),
    }


def cost_lines(experiment: Experiment, tables: Sequence[dict[str, Any]]) -> list[str]:
    """The tables as Markdown."""
    if not tables:
        return []
    lines = [
        "## Cost",
        "",
        "Every run was trained once and timed and priced at each place from the record of its work, without its"
        " evaluations. To target: three evaluations in a row at the declared return; the mean counts a run that did"
        " not get there as twice what it spent. Share of actors: what sampling costs of the bill, which is the most"
        " that any policy of scaling could save at equal time.",
        *(["", experiment.targets_note] if experiment.targets_note else []),
        "",
        "| environment | place | arm | reached | USD to target | seconds to target | reached, training | USD to it |"
        " USD in all | paper's formula | share of actors |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    titles = {arm.name: arm.title for arm in experiment.arms}
    order = {name: place for place, name in enumerate(experiment.pricing_targets)}
    for row in sorted(tables, key=lambda one: (one["environment"], order[one["venue"]])):
        where = PRICING_TARGETS[row["venue"]].title
        reached = "–" if row["target"] is None else f"{row['reached']} of {row['seeds']}"
        to_target = f"{row['par2_usd']:.4f}" if "par2_usd" in row else "–"
        seconds = f"{row['par2_seconds']:,.0f}" if "par2_seconds" in row else "–"
        trained = row.get("training")
        training = (
            "– | –"
            if trained is None
            else f"{trained['reached']} of {row['seeds']} | {trained['par2_usd']:.4f}"
        )
        lines.append(
            f"| {row['environment']} | {where} | {titles[row['arm']]} | {reached} | {to_target} |"
            f" {seconds} | {training} | {row['usd']:.4f} | {row['paper_usd']:.4f} |"
            f" {100 * row['rollouts_share']:.0f} % |"
        )
    return [*lines, ""]
