"""Every figure and table of the papers: which experiment repeats it, or why none does."""

from __future__ import annotations

from research.calculation import Calculation, ResultTable, Statement
from webapp.comparing.papers.figures import DRAWINGS, FIGURES

_SURFACE = "the surface of any checkpoint, on demand"
_ATARI = "about 200 processor-seconds for one round of MinionsRL: not tested at scale"


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    rows = [
        (
            f"{one.paper}, {one.number.lower()}",
            ", ".join(one.repeated_by) or (_SURFACE if one.elsewhere else "not run"),
            one.remark,
        )
        for one in FIGURES
    ]
    rows.append(("Atari, MinionsRL and Nitro", "not run", _ATARI))
    table = ResultTable(
        "Figures and where they are", ("figure", "experiment", "remark"), tuple(rows), DRAWINGS
    )
    return [table], [
        Statement(f"{figure}.", "not run", f"{remark[:1].upper()}{remark[1:]}", "reason")
        for figure, where, remark in rows
        if where == "not run"
    ]


CALCULATION = Calculation(
    title="Figures of the papers: where each is repeated, and what is not",
    question="Which figures are repeated here, by what, and why are the others not?",
    oracle="Every experiment that is named here exists.",
    can_claim="Nothing but where to look.",
    compute=compute,
)
