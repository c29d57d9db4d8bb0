"""Siren's simulation: what the grid search's rows imply, and which of Siren's rows numbers of functions can explain."""

from __future__ import annotations

from research.calculation import Calculation, ResultTable, Statement
from research.siren_tables import (
    GRID,
    LARGEST_MB,
    MOST_FUNCTIONS,
    SIREN,
    SMALLEST_MB,
    STEP_MB,
    grid_fit,
    grid_usd_per_function_s,
    implied_mb,
    least_load_share,
    least_usd_of_a_whole_job,
    sizes_mb,
    usd_per_function_s,
)

_EPOCHS = (10, 20, 50, 100, 1000)
_REACHED = (300, 200, 100)


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    fit = grid_fit()
    grid: list[tuple[str | float, ...]] = []
    siren: list[tuple[str | float, ...]] = []
    furthest, dearer = 0.0, []
    for budget in _REACHED:
        row, ours = GRID[budget], SIREN[budget]
        assert row.seconds is not None
        assert ours.seconds is not None
        price = grid_usd_per_function_s(budget)
        furthest = max(furthest, abs(fit.seconds(row.most) / row.seconds - 1))
        dearer.append(ours.usd / (ours.most * ours.seconds) / price)
        grid.append(
            (
                f"${budget}",
                row.most,
                row.seconds,
                fit.seconds(row.most),
                implied_mb(row.usd, row.most * row.seconds),
                price / usd_per_function_s(LARGEST_MB),
            )
        )
        siren.append(
            (
                f"${budget}",
                ours.fewest,
                ours.most,
                ours.seconds,
                fit.seconds(ours.most),
                100 * (ours.seconds / row.seconds - 1),
                dearer[-1],
            )
        )
    shares = tuple((epochs, 100 * least_load_share(100, epochs)) for epochs in _EPOCHS)
    least_usd = least_usd_of_a_whole_job()
    return [
        ResultTable(
            "Grid search over the number of functions",
            (
                "budget",
                "functions",
                "seconds",
                "seconds by the fit",
                "MB that the price implies",
                "× price of 3,008 MB",
            ),
            tuple(grid),
            f"The fit: T = {fit.fixed_s:,.0f} + {fit.shared_s:,.0f} / n seconds.",
        ),
        ResultTable(
            "Siren beside the grid",
            (
                "budget",
                "fewest functions",
                "most functions",
                "seconds",
                "least seconds by the fit",
                "% of the grid's time",
                "× the grid's price, at least",
            ),
            tuple(siren),
            "The least seconds are those of the most functions in every epoch. The price is that of a function-second,"
            " if every epoch had the most functions.",
        ),
        ResultTable(
            "Row of $100: the least share of all work that the first epoch must do alone",
            ("epochs", "% of the work"),
            shares,
            "By numbers of functions only, at the price of a function-second that the grid paid in its row of $100.",
        ),
    ], [
        Statement(
            "The grid's rows follow from a fixed time and work that functions share.",
            "holds",
            f"T = {fit.fixed_s:,.0f} + {fit.shared_s:,.0f} / n is at most {100 * furthest:.2f} % away.",
            "assumed timing",
        ),
        Statement(
            f"138,000 choices are {MOST_FUNCTIONS:,} functions times the sizes that Lambda had.",
            "holds",
            f"{len(sizes_mb())} sizes from {SMALLEST_MB} to {LARGEST_MB:,} MB by {STEP_MB} MB.",
            "bill",
        ),
        Statement(
            "The grid's dollars follow from its times and from a function that Lambda sold.",
            "does not hold",
            f"A function-second costs {grid[2][5]:.2f} to {grid[0][5]:.2f} × that of {LARGEST_MB:,} MB, the"
            " largest then. Nothing on the slides explains it, so that only ratios count here.",
            "bill",
        ),
        Statement(
            "Rows of $300 and $200 follow from changing numbers of functions alone.",
            "does not hold",
            f"With at most {SIREN[300].most} and {SIREN[200].most} functions the grid's own epochs take at least"
            f" {siren[0][4]:,.0f} and {siren[1][4]:,.0f} s; printed are 1,569.5 and 2,454.4. The first paid at least"
            f" {dearer[0]:.2f} × the grid's price of a function-second, so it changed memory. The grid could not.",
            "assumed timing",
        ),
        Statement(
            "The row of $100 follows from changing numbers of functions alone, with alike epochs.",
            "does not hold",
            f"Time falls with the number of functions ever more slowly, so that equal numbers are best. It follows only"
            f" with a one-time load of at least {shares[-1][1]:.0f} % of all work with many epochs,"
            f" {shares[2][1]:.0f} % with 50, {shares[0][1]:.0f} % with 10.",
            "assumed timing",
        ),
        Statement(
            "The grid's row of $50 must fail.",
            "holds",
            f"At its prices the work alone costs at least ${least_usd:.0f}, whatever the number of functions. For"
            " Siren, which may change memory, that does not follow.",
            "bill",
        ),
    ]


CALCULATION = Calculation(
    title="Siren's simulation: what its table implies",
    question="Which rows of the simulation follow from the number of functions, and which need memory to change?",
    oracle="The grid's three rows have two unknowns; the third one tests the fit.",
    can_claim="Arithmetic on figures of a slide. It cannot tell how the simulation was made.",
    compute=compute,
    beside=(
        "Siren: 36, 13 and 10 % less time than a grid search over the number of functions at 300, 200 and 100 dollars;"
        " both fail at 50 dollars."
    ),
)
