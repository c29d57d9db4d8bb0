"""Nitro's figure 16 (c): the memory of a function. The same rounds with more and less of it; nothing is learned"
" again."""

from __future__ import annotations

import numpy as np

from research.calculation import HOPPER, QBERT, Calculation, ResultTable, Statement, rounds_of, timed
from research.pricing_targets import PRICING_TARGETS, place_of

_SIZES = (512, 1024, 1769, 2048, 3008)


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    rows, statements = [], []
    for target in ("functions_paper", "functions_starling"):
        for workload in (HOPPER, QBERT):
            times = {}
            for memory_mb in _SIZES:
                runs = timed(rounds_of(workload, 16, 2, memory_mb=memory_mb), place_of(target), quick=quick)
                seconds = [
                    call.run_s
                    for retimed in runs
                    for call in retimed.done
                    if call.kind == "rollout" and call.round_no == 2
                ]
                dollars = [
                    sum(line.picodollars for line in one.bill.lines if line.category == "rollout") / 10**12
                    for one in runs
                ]
                times[memory_mb] = float(np.median(seconds))
                rows.append(
                    (
                        PRICING_TARGETS[target].title,
                        workload.environment,
                        memory_mb,
                        times[memory_mb],
                        float(np.median(dollars)),
                    )
                )
            gain = 1 - times[2048] / times[1024]
            statements.append(
                Statement(
                    f"Above 1,024 MB a function is no faster ({workload.environment},"
                    f" {PRICING_TARGETS[target].stack}).",
                    "holds" if gain < 0.05 else "does not hold",
                    f"At 2,048 MB it takes {100 * gain:.0f} % less time: Lambda gives a whole core only at 1,769 MB.",
                    "assumed timing",
                )
            )
    return [
        ResultTable(
            "A warm function's time and two rounds' price by memory, 16 actors",
            ("place", "environment", "MB", "seconds", "dollars of sampling"),
            tuple(rows),
            drawn=("MB", "seconds"),
        )
    ], statements


CALCULATION = Calculation(
    title="Nitro figure 16 (c): the memory of a function",
    question="From which memory on does a function get no faster?",
    oracle="Lambda's documentation: one whole core at 1,769 MB, shares in proportion below; one thread uses no more.",
    can_claim="Timing by Lambda's documented shares of a core.",
    compute=compute,
    beside="Nitro: the duration is flat above 1,024 MB.",
)
