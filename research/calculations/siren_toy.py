"""Siren's toy example: whether the slide's times and dollars follow from one another."""

from __future__ import annotations

from research.calculation import Calculation, ResultTable, Statement
from research.siren_tables import (
    TOY,
    TOY_DYNAMIC,
    TOY_MB,
    TOY_SERVER,
    implied_mb,
    toy_fit,
    toy_schedule,
    toy_usd,
    toy_with_a_load,
    toy_with_fewer_epochs,
)

_EPOCHS = (6, 10, 20, 30, 37, 41, 60, 100)
_SERVER_USD_PER_H = 0.34


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    fit = toy_fit()
    rows: list[tuple[str | float, ...]] = []
    for functions, row in TOY.items():
        function_s = functions * row.seconds
        rows.append((f"{functions} functions", row.seconds, row.usd, toy_usd(function_s)))
    server_usd = TOY_SERVER.seconds * _SERVER_USD_PER_H / 3600
    rows.append(("c5.2xlarge", TOY_SERVER.seconds, TOY_SERVER.usd, server_usd))
    furthest = max(abs(float(row[3]) / float(row[2]) - 1) for row in rows)
    implied = [implied_mb(row.usd, functions * row.seconds) for functions, row in TOY.items()]
    stories: list[tuple[str | float, ...]] = []
    for epochs in _EPOCHS:
        fewer, shorter = toy_with_fewer_epochs(epochs)
        load_s, loaded = toy_with_a_load(epochs)
        equal_s = fit.scheduled(toy_schedule(epochs), epochs).seconds
        stories.append(
            (epochs, equal_s, fewer, toy_usd(shorter.function_s), load_s, toy_usd(loaded.function_s))
        )
    return [
        ResultTable(
            "The rows' dollars from their times",
            ("row", "seconds", "$ on the slide", "$ from the seconds"),
            tuple(rows),
            f"Functions of {TOY_MB} MB at Lambda's price, the server at ${_SERVER_USD_PER_H} an hour.",
        ),
        ResultTable(
            "120, 20 … 20, 10 functions, by the epochs that a fixed number takes",
            (
                "epochs",
                "seconds at equal epochs",
                "epochs that take 202.55 s",
                "their $",
                "load in function-seconds for 202.55 s",
                "$ with it",
            ),
            tuple(stories),
            f"From T = {fit.fixed_s:.1f} + {fit.shared_s:,.0f} / n seconds, which the rows of 20 and 150 functions fix."
            " The load is part of that work, and the first epoch does all of it.",
        ),
    ], [
        Statement(
            "The dollars of 20 functions, of 150 functions and of the server follow from their times.",
            "holds",
            f"Functions of {implied[0]:.0f} and {implied[1]:.0f} MB, so {TOY_MB} MB, and a server of"
            f" ${TOY_SERVER.usd / TOY_SERVER.seconds * 3600:.2f} an hour; the furthest is"
            f" {100 * furthest:.1f} % away ($0.0198 is printed as $0.019).",
            "bill",
        ),
        Statement(
            "120 functions in the first epoch, 10 in the last and 20 between take 202.55 s at equal epochs.",
            "does not hold",
            "They take 237.4 + 36 / E seconds: the last epoch loses more than the first one wins.",
            "assumed timing",
        ),
        Statement(
            "With fewer epochs they take 202.55 s and cost $0.019.",
            "does not hold",
            f"At 202.55 s they cost ${stories[5][3]:.4f} to ${stories[0][3]:.4f} (where 20 functions take"
            f" {_EPOCHS[5]} to {_EPOCHS[0]} epochs).",
            "bill",
        ),
        Statement(
            f"With a one-time load in the first epoch they take 202.55 s and cost ${TOY_DYNAMIC.usd}.",
            "holds",
            f"A load of about {float(stories[4][4]):.0f} function-seconds does so where 20 functions take 37 epochs or"
            " more, if dollars are cut after three decimals. Two unknowns fit two numbers: this is one possible story,"
            " not what happened.",
            "bill",
        ),
    ]


CALCULATION = Calculation(
    title="Siren's toy example: which of its rows follow",
    question="Do the times and dollars of 20, 150 and changing numbers of functions follow from one another?",
    oracle="All epochs are alike: each has the same work, and a part of its time that no function shortens.",
    can_claim="Arithmetic on figures of a slide. It cannot tell what was run.",
    compute=compute,
    beside="Siren: 20 functions 237.40 s, $.019; 150 functions 50.04 s, $.031; changing numbers 202.55 s, $.019.",
)
