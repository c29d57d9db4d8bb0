"""Nitro's figure 20: what each component costs beside a round, and what the bounded Hessian saves. Measured here."""

from __future__ import annotations

from research import curvature_cost
from research.calculation import Calculation, ResultTable, Statement


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    rows, statements = [], []
    for figure in curvature_cost.measure(quick=quick):
        rows.append((figure.what, figure.value, figure.unit, figure.limit))
        if figure.limit:
            statements.append(
                Statement(
                    f"{figure.what[:1].upper()}{figure.what[1:]}: {figure.limit}.",
                    "holds" if figure.holds else "does not hold",
                    f"Measured: {figure.value:.3g} {figure.unit}".rstrip() + ".",
                    "measured",
                )
            )
    return [ResultTable("Measured", ("what", "value", "unit", "promise"), tuple(rows))], statements


CALCULATION = Calculation(
    title="Nitro figure 20: what the detector costs",
    question="Is the detector under 5 % of a round, and how much does bounding it save?",
    oracle="The bounded eigenvalues must lie within the tolerance of those of the whole matrix (tests of curvature).",
    can_claim="This machine's processor time, while others used it as well: ratios, no speeds.",
    compute=compute,
    measures=True,
    beside="Nitro: every component under 5 % of a round at 64 actors; approximation 100 ×, a subset 10 × faster.",
)
