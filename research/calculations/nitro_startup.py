"""Nitro's figure 5: how long additional actors take to stand, on virtual machines and as functions.

VM-pause waits for them, VM-replay learns from old data meanwhile. Both are arithmetic once start-up is known.
"""

from __future__ import annotations

import numpy as np

from cloud.money.billing.retiming import retime
from research.calculation import HOPPER, Calculation, ResultTable, Statement, rounds_of, timed
from research.pricing_targets import PRICING_TARGETS, place_of

_ACTORS = 16
_BOOSTS = 5
_PAIRS = (("functions_paper", "cluster_paper"), ("functions_starling", "cluster_starling"))


def _started(target: str, *, quick: bool) -> list[float]:
    """Seconds from the order until the last of 16 actors has started, over seeds of the cloud."""
    runs = timed(rounds_of(HOPPER, _ACTORS), place_of(target), quick=quick)
    return [max(call.startup_s for call in retimed.done if call.kind == "rollout") for retimed in runs]


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    starts, rounds, statements = [], [], []
    for functions, machines in _PAIRS:
        starts_s = {target: _started(target, quick=quick) for target in (functions, machines)}
        for target, seconds in starts_s.items():
            low, middle, high = (float(one) for one in np.quantile(seconds, [0.1, 0.5, 0.9]))
            starts.append((PRICING_TARGETS[target].title, low, middle, high))
        several = retime(rounds_of(HOPPER, _ACTORS, 4), place_of(machines), seed=0)
        round_s = float(np.median([round_.total_s for round_ in several.rounds[1:]]))
        wait_s = float(np.median(starts_s[machines]))
        hourly = several.bill.picodollars / 10**12 / several.time_s * 3600
        rounds.append(
            (
                PRICING_TARGETS[machines].title,
                round_s,
                wait_s / round_s,
                _BOOSTS * wait_s,
                _BOOSTS * wait_s * hourly / 3600,
            )
        )
        ratio = wait_s / max(float(np.median(starts_s[functions])), 1e-9)
        statements.append(
            Statement(
                f"Functions stand sooner than machines ({PRICING_TARGETS[functions].stack}).",
                "holds" if ratio > 1 else "does not hold",
                f"Machines take {ratio:,.0f} times as long. While they boot, VM-replay would learn from the same old"
                f" data for {wait_s / round_s:,.0f} rounds.",
                "assumed timing",
            )
        )
    return [
        ResultTable(
            f"Seconds until {_ACTORS} actors stand",
            ("place", "one in ten is below", "half are", "nine in ten are"),
            tuple(starts),
            "Imports of the software are part of a function's start.",
        ),
        ResultTable(
            f"What {_BOOSTS} boosts by new machines cost",
            (
                "place",
                "seconds of a round",
                "rounds that pass while a machine boots",
                "VM-pause: seconds added",
                "VM-pause: dollars added",
            ),
            tuple(rounds),
            "VM-replay adds no time; what it learns meanwhile is from data as many rounds old as stand here.",
        ),
    ], statements


CALCULATION = Calculation(
    title="Nitro figure 5: additional actors as machines and as functions",
    question="How long do additional actors take to stand, and what does waiting for them cost?",
    oracle="The released code pretends a machine's start by sleeping 60 s; ours must lie in that number's range.",
    can_claim="Timing under the profiles' assumptions; nothing about learning from replayed data.",
    compute=compute,
    beside="Nitro's figure shows functions within seconds and machines at about a minute, without numbers in the text.",
)
