"""Siren's loop on real trainings: its loss beside the synchronous loop's, the bytes it pushes, its time and cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from research.calculation import Calculation, ResultTable, Statement
from research.pricing_targets import machine_start_s
from research.reports.judging import ONE_SIDED, judge, judge_alike, undecided
from research.siren_descent import (
    ARMS,
    RATES,
    SPARING,
    DescentArm,
    Rows,
    kept,
    piloted,
    rate_of,
    read_rows,
    run_missing,
)
from research.statistics import paired_bootstrap
from training.statistics.few_seeds import Interval

MARGIN = (0.99, 1.01)
FEWER = 5.0
_DIGITS, _FLIGHTS = DescentArm("digits"), DescentArm("flights")
_SYNCHRONOUS = {
    "digits": DescentArm("digits", loop="bulk_synchronous"),
    "flights": DescentArm("flights", loop="bulk_synchronous"),
}
_MACHINE = DescentArm("flights", functions=16, profile="one-machine")
_TITLES = {
    "hybrid": "hybrid (HSP)",
    "bulk_synchronous": "bulk synchronous",
    "fully_asynchronous": "fully asynchronous",
}


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    """Compares trainings whose rows are kept; `papers run` trains those that are missing."""
    rows = read_rows()
    tables = [_arms(rows), _pilots(rows)]
    statements = [
        _alike(
            "At equal epochs the final loss of HSP with 20 functions is within 1 % of the synchronous loop's, on digits"
            " and flights.",
            [(_DIGITS, _SYNCHRONOUS["digits"]), (_FLIGHTS, _SYNCHRONOUS["flights"])],
            rows,
        ),
        *(
            _alike(f"The same on {one.data} alone.", [(one, _SYNCHRONOUS[one.data])], rows)
            for one in (_DIGITS, _FLIGHTS)
        ),
        _alike(
            "With 150 functions HSP ends within 1 % of where it ends with 20, on digits.",
            [(DescentArm("digits", functions=150), _DIGITS)],
            rows,
        ),
        _alike(
            "Without the barrier between epochs the loss ends within 1 % of HSP's, on digits.",
            [(DescentArm("digits", loop="fully_asynchronous"), _DIGITS)],
            rows,
        ),
        *(_fewer(arm, rows) for arm in SPARING),
        *(
            _less(verb, name, rows, started=started)
            for verb, name in (("takes less time", "seconds"), ("costs less", "usd"))
            for started in (True, False)
        ),
    ]
    return tables, statements


def _finals(arm: DescentArm, seeds: Sequence[int], rows: Rows, name: str = "") -> list[float]:
    rows_kept = kept(arm, rows)
    return [float(rows_kept[seed][name] if name else rows_kept[seed]["losses"][-1]) for seed in seeds]


def _seeds(arms: Sequence[DescentArm], rows: Rows) -> list[int]:
    """Return the seeds that all of these arms have."""
    having = [set(kept(arm, rows)) for arm in arms]
    return sorted(set.intersection(*having))


def _intervals(
    pairs: Sequence[tuple[DescentArm, DescentArm]], seeds: Sequence[int], rows: Rows
) -> tuple[Interval, Interval]:
    ours, theirs = (np.array([_finals(pair[side], seeds, rows) for pair in pairs]).T for side in (0, 1))
    return paired_bootstrap(ours, theirs), paired_bootstrap(ours, theirs, level=ONE_SIDED)


def _alike(claim: str, pairs: Sequence[tuple[DescentArm, DescentArm]], rows: Rows) -> Statement:
    seeds = _seeds([arm for pair in pairs for arm in pair], rows)
    if not seeds:
        return Statement(claim, "open", "Its runs are missing.", "learned")
    wide, narrow = _intervals(pairs, seeds, rows)
    word, why = judge_alike(wide, narrow, MARGIN, 1.0, len(seeds))
    return Statement(claim, word, f"{_change(wide)}. {why}", "learned")


def _fewer(arm: DescentArm, rows: Rows) -> Statement:
    parts = [f"{arm.local_steps} local steps in place of 2"] if arm.local_steps else []
    parts += [f"a significance filter at {100 * arm.significance:g} %"] if arm.significance else []
    what = " and ".join(parts)
    claim = (
        f"With {what} at least {FEWER:g} × fewer bytes are pushed at a final loss within 1 %, on sparse data."
    )
    seeds = _seeds([arm, _FLIGHTS], rows)
    if not seeds:
        return Statement(claim, "open", "Its runs are missing.", "learned")
    sent, usual = (np.mean(_finals(one, seeds, rows, "pushed_bytes")) for one in (arm, _FLIGHTS))
    fold = float(usual / sent)
    wide, narrow = _intervals([(arm, _FLIGHTS)], seeds, rows)
    alike, why = judge_alike(wide, narrow, MARGIN, 1.0, len(seeds))
    word = "does not hold" if fold < FEWER else alike
    return Statement(
        claim, word, f"{fold:.1f} × fewer bytes; the loss changes by {_change(wide)}. {why}", "learned"
    )


def _less(verb: str, name: str, rows: Rows, *, started: bool) -> Statement:
    claim = f"With 20 functions learning from flights {verb} than on one plain machine (c5.4xlarge)"
    claim += " that has to start." if started else " that already runs."
    seeds = _seeds([_FLIGHTS, _MACHINE], rows)
    if not seeds:
        return Statement(claim, "open", "Its runs are missing.", "assumed timing")
    ours, theirs = (np.array(_finals(one, seeds, rows, name)) for one in (_FLIGHTS, _MACHINE))
    if not started:
        theirs = theirs * _share_after_start(seeds, rows)
    interval = paired_bootstrap(ours[:, None], theirs[:, None])
    word, why = judge(interval, 1.0, len(seeds), less=True) if len(seeds) > 1 else (undecided(len(seeds)), "")
    return Statement(claim, word, f"{_change(interval)}. {why}".strip(), "assumed timing")


def _share_after_start(seeds: Sequence[int], rows: Rows) -> npt.NDArray[np.float64]:
    """Return the share of the machine's time in which it trains. It pays by the second, so that of its bill too."""
    seconds = np.array(_finals(_MACHINE, seeds, rows, "seconds"))
    start_s = machine_start_s(_MACHINE.profile)
    return np.asarray(1.0 - start_s / seconds)


def _change(interval: Interval) -> str:
    low, value, high = (100 * (one - 1) for one in (interval.low, interval.value, interval.high))
    return f"{value:+.1f} % [{low:+.1f} %, {high:+.1f} %]".replace("-", "−")


def _arms(rows: Rows) -> ResultTable:
    table_rows: list[tuple[str | float, ...]] = []
    for arm in ARMS:
        own = kept(arm, rows)
        rate = rate_of(arm, rows)
        if not own or rate is None:
            continue
        losses = [row["losses"][-1] for row in own.values()]
        means = [
            float(np.mean([row[name] for row in own.values()])) for name in ("pushed_bytes", "seconds", "usd")
        ]
        table_rows.append(
            (
                arm.data, _titled(arm), arm.functions, rate, float(np.median(losses)), min(losses), max(losses),
                means[0] / 1e6, max(row["staleness"] for row in own.values()), means[1], means[2], len(own),
            )
        )  # fmt: skip
    return ResultTable(
        "Final loss, bytes, time and dollars",
        (
            *("data", "loop", "functions", "rate", "loss, median", "least", "most"),
            *("MB pushed", "oldest push, versions", "seconds", "$", "seeds"),
        ),
        tuple(table_rows),
        "Digits: logistic regression, 10 epochs in calls of 8 rows. Flights: click-through, 2 epochs in calls of two"
        " steps of 256 rows. Simulated Lambda functions of 1,024 MB and a learner function, or one c5.4xlarge.",
    )


def _titled(arm: DescentArm) -> str:
    more = [f"filter {100 * arm.significance:g} %"] if arm.significance else []
    more += [f"{arm.local_steps} local steps"] if arm.local_steps else []
    more += ["one machine"] if arm.profile != "lambda" else []
    return ", ".join([_TITLES[arm.loop], *more])


def _pilots(rows: Rows) -> ResultTable:
    found: list[tuple[str | float, ...]] = []
    for arm, rates in RATES.items():
        for rate in rates:
            finals = [one for one in piloted(arm, rate, rows) if math.isfinite(one)]
            if finals:
                chosen = "chosen" if rate == rate_of(arm, rows) else ""
                found.append((arm.data, _titled(arm), arm.functions, rate, len(finals), max(finals), chosen))
    return ResultTable(
        "How rates were chosen",
        ("data", "loop", "functions", "rate", "pilots", "worst final loss", ""),
        tuple(found),
        "Each arm has the rate whose worst pilot ended lowest, on seeds that are not judged. A rate has two more pilots"
        " if its first ended within a tenth of the best. Where the largest or the smallest one is chosen, a better rate"
        " may lie beyond.",
    )


CALCULATION = Calculation(
    title="Siren's hybrid loop beside the synchronous one, and what it pushes",
    prepare=run_missing,
    question="At equal epochs, does HSP learn as well as waiting for all functions, and can it push less?",
    oracle=(
        "With one function and one local step all loops are plain SGD, bit for bit, which a test holds. A loop that"
        " learned more from the same rows than plain SGD at its best rate would show a fault."
    ),
    can_claim=(
        "Two linear models, five seeds, one to three pilots a rate. Rates stay the same through all epochs, so that"
        " final losses of digits spread by several percent: five seeds cannot show that two are within 1 % there. On"
        " flights, knowing only how many are late has a loss of 0.548, so that 1 % is an eighth of all that is learned."
        " Losses are real; times and dollars are those of"
        " the simulated cloud."
    ),
    compute=compute,
    beside="Siren: no figure of its loop alone; up to 44.3 % less time at the same cost than MXNet on EC2.",
)
