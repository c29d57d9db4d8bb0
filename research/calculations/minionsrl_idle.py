"""MinionsRL's figure 1 (b): how much of what a server cluster is paid for does nothing."""

from __future__ import annotations

import numpy as np

from research.calculation import HOPPER, QBERT, Calculation, ResultTable, Statement, rounds_of, timed
from research.pricing_targets import PRICING_TARGETS, place_of

_ACTORS = 32
_ROUNDS = 4
_PRICING_TARGETS = (
    "azure_cluster_paper",
    "azure_cluster_starling",
    "containers_paper",
    "containers_starling",
)


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    rows, statements = [], []
    for target in _PRICING_TARGETS:
        for workload in (HOPPER, QBERT):
            waited, learned = [], []
            for run in timed(rounds_of(workload, _ACTORS, _ROUNDS), place_of(target), quick=quick):
                for times in run.rounds[1:]:
                    calls = [call for call in run.done if call.round_no == times.round_no]
                    sampled_s = [call.run_s for call in calls if call.kind == "rollout"]
                    update_s = sum(call.run_s for call in calls if call.kind == "update")
                    paid_s = _ACTORS * times.total_s
                    waited.append(1 - (sum(sampled_s) + _ACTORS * update_s) / paid_s)
                    learned.append(_ACTORS * update_s / paid_s)
            for_others, for_learner = float(np.median(waited)), float(np.median(learned))
            idle = for_others + for_learner
            has_cluster = PRICING_TARGETS[target].profile.endswith("-cluster")
            rows.append(
                (
                    PRICING_TARGETS[target].title,
                    workload.environment,
                    1 - idle,
                    for_others,
                    for_learner,
                    idle if has_cluster else 0.0,
                )
            )
            if has_cluster:
                statements.append(
                    Statement(
                        f"Actors of a server cluster are idle for part of each round ({workload.environment},"
                        f" {PRICING_TARGETS[target].stack}).",
                        "holds" if idle > 0.05 else "does not hold",
                        f"{100 * idle:.0f} % of the paid core-seconds: {100 * for_learner:.0f} % while the learner"
                        f" learns, {100 * for_others:.0f} % for the slowest and for transfers.",
                        "assumed timing",
                    )
                )
    return [
        ResultTable(
            f"Shares of {_ACTORS} actors' time in a warm round",
            (
                "place",
                "environment",
                "sampling",
                "waiting for others and transfers",
                "waiting for the learner",
                "idle and paid",
            ),
            tuple(rows),
            "Functions and containers end with their call, so that their waiting costs nothing.",
        )
    ], statements


CALCULATION = Calculation(
    title="MinionsRL figure 1 (b): idle actors of a server cluster",
    question="How much of what a cluster of servers is paid for does nothing?",
    oracle=(
        "Sampling, waiting for others and waiting for the learner make up the whole round; with equal actors and an"
        " update that takes no time actors would wait only for transfers."
    ),
    can_claim="Timing under the profiles' assumptions. How long the learner takes decides nearly all of it.",
    compute=compute,
    beside="MinionsRL draws it, without a number: actors wait for the slowest, and while the learner learns.",
)
