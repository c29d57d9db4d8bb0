"""Nitro's figure 18: the time of a group of concurrent functions, from 100 to 1,000 of them."""

from __future__ import annotations

import numpy as np

from research.calculation import HOPPER, QBERT, Calculation, ResultTable, Statement, rounds_of, timed
from research.pricing_targets import PRICING_TARGETS, place_of

_GROUPS = (100, 200, 400, 700, 1000)
_FLAT = 0.25
"""How much longer the slowest of 1,000 may take. Stragglers alone make it 8 to 16 %, in the paper's cloud as well, and
its figure has no scale by which another number could be read.
"""


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    rows, statements = [], []
    for target in ("functions_paper", "functions_starling"):
        for workload in (HOPPER, QBERT):
            middles, bodies = [], []
            for actors in _GROUPS[:2] if quick else _GROUPS:
                runs = timed(rounds_of(workload, actors), place_of(target), quick=quick)
                rollouts = [[call for call in retimed.done if call.kind == "rollout"] for retimed in runs]
                bodies.append(float(np.median([max(call.run_s for call in some) for some in rollouts])))
                middles.append(
                    float(np.median([max(call.run_s + call.startup_s for call in some) for some in rollouts]))
                )
                rows.append(
                    (
                        PRICING_TARGETS[target].title,
                        workload.environment,
                        actors,
                        bodies[-1],
                        middles[-1],
                    )
                )
            grown = bodies[-1] / bodies[0] - 1
            statements.append(
                Statement(
                    "A group's execution time is flat up to 1,000 functions, at most"
                    f" {100 * _FLAT:.0f} % longer than of 100 ({workload.environment},"
                    f" {PRICING_TARGETS[target].stack}).",
                    "holds" if grown <= _FLAT else "does not hold",
                    f"It grows by {100 * grown:.0f} %: the slowest of more stragglers. With cold starts and Lambda's"
                    f" scaling it grows by {100 * (middles[-1] / middles[0] - 1):.0f} %.",
                    "assumed timing",
                )
            )
    return [
        ResultTable(
            "Seconds of the slowest function of a group",
            ("place", "environment", "functions", "running", "with its start"),
            tuple(rows),
            drawn=("functions", "running"),
        )
    ], statements


CALCULATION = Calculation(
    title="Nitro figure 18: groups of 100 to 1,000 functions",
    question="Does a group take longer the more functions it has?",
    oracle=(
        "Log-normal stragglers alone make the slowest of 1,000 8 to 16 % slower than the slowest of 100. A"
        " real round of 1,000 actors on the simulated cloud is measured by `manage.py bench scale`."
    ),
    can_claim=(
        "Timing under the profile's assumptions: no 1,000 functions were started on a real account. What counts as flat"
        f" is ours: {100 * _FLAT:.0f} %. By a bar of 10 % none of the four would hold."
    ),
    compute=compute,
    beside="Nitro: flat from 100 to 1,000 concurrent functions, Atari higher than MuJoCo.",
)
