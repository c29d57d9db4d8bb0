"""MinionsRL's figures 7 and 8: one round's time by actors, and what start-up and transfer are of it."""

from __future__ import annotations

import numpy as np

from research.calculation import HOPPER, QBERT, Calculation, ResultTable, Statement, rounds_of, timed
from research.pricing_targets import PRICING_TARGETS, place_of

_ACTORS = (1, 4, 8, 16, 32)
_PRICING_TARGETS = ("containers_paper", "containers_starling", "containers_today")


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    rows, statements = [], []
    for target in _PRICING_TARGETS:
        for workload in (HOPPER, QBERT):
            totals = []
            for actors in _ACTORS:
                runs = timed(rounds_of(workload, actors, 2), place_of(target), quick=quick)
                first = [max(call.startup_s for call in one.done if call.round_no == 1) for one in runs]
                last = [retimed.rounds[-1] for retimed in runs]
                run_s = [
                    max(call.run_s for call in retimed.done if call.kind == "rollout" and call.round_no == 2)
                    for retimed in runs
                ]
                update_s = [
                    sum(call.run_s for call in retimed.done if call.kind == "update" and call.round_no == 2)
                    for retimed in runs
                ]
                totals.append(float(np.median([retimed.total_s for retimed in last])))
                rest = totals[-1] - float(np.median(run_s)) - float(np.median(update_s))
                rows.append(
                    (
                        PRICING_TARGETS[target].title,
                        workload.environment,
                        actors,
                        totals[-1],
                        float(np.median(run_s)),
                        float(np.median(update_s)),
                        rest,
                        float(np.median(first)),
                    )
                )
            statements.append(
                Statement(
                    f"A round takes longer the more actors it has ({workload.environment},"
                    f" {PRICING_TARGETS[target].title}).",
                    "holds" if totals[-1] > totals[0] else "does not hold",
                    f"From {totals[0]:.2f} s with 1 actor to {totals[-1]:.2f} s with 32.",
                    "assumed timing",
                )
            )
    return [
        ResultTable(
            "Seconds of a warm round, and of the first start",
            (
                "place",
                "environment",
                "actors",
                "round",
                "slowest actor",
                "learning",
                "transfer and waiting",
                "first start",
            ),
            tuple(rows),
            "256 MuJoCo steps or 192 stacked pictures an actor, as at the paper's full scale for pictures.",
            drawn=("actors", "round"),
        )
    ], statements


CALCULATION = Calculation(
    title="MinionsRL figures 7 and 8: one round by actors",
    question="How does a round's time grow with its actors, and what of it is start-up and transfer?",
    oracle="The paper's anchors: 300 ms to start an actor, 1,500 ms a learner, transfers under 100 and 800 ms.",
    can_claim="Timing under the profiles' assumptions, some of which are the paper's own numbers.",
    compute=compute,
    beside=(
        "MinionsRL: rounds grow with the actors, steeper for Atari; an actor starts in about 300 ms, a"
        " learner in 1,500, both hidden by warming up; under 100 ms for 65,536 MuJoCo steps, under 800 ms for"
        " 6,144 stacked pictures."
    ),
)
