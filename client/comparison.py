"""A comparison of runs: its verdicts as text, its sides as rows, and a table for notebooks."""

from __future__ import annotations

from html import escape
from typing import Any

from . import output_columns
from .tables import shown, usd


class Comparison:
    """`document` is the response of the API. Printing a comparison shows what `starling compare` shows."""

    def __init__(self, document: dict[str, Any], url: str) -> None:
        self.document, self.url = document, url

    @property
    def verdicts(self) -> list[str]:
        """Sentences: which side is better, and how certain that is."""
        return list(self.document["verdicts"])

    @property
    def sides(self) -> list[dict[str, Any]]:
        """A row a side: scores, interquartile mean with its interval, cost and time a run."""
        return list(self.document["sides"])

    def __str__(self) -> str:
        return shown(self.document, output_columns.COMPARED)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(side['name'] for side in self.sides)}>"

    def _repr_html_(self) -> str:
        rows = "".join(_row(side) for side in self.sides)
        verdicts = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.verdicts)
        score = escape((self.document["score"] or {"name": "score"})["name"].capitalize())
        heads = "".join(f"<th>{head}</th>" for head in ("", score, "95 % interval", "Cost a run"))
        return (
            f"{verdicts}<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f'<p><a href="{escape(self.url)}">Open the comparison</a></p>'
        )


def _row(side: dict[str, Any]) -> str:
    iqm, cost = side["iqm"], side["cost_a_run_usd"]
    between = "–" if not iqm or iqm["low"] is None else f"{iqm['low']:,.4g} – {iqm['high']:,.4g}"
    cells = (f"{iqm['value']:,.4g}" if iqm else "–", between, "–" if cost is None else usd(cost))
    name = f"<strong>{escape(side['name'])}</strong>" if side["best"] else escape(side["name"])
    return f"<tr><td>{name}</td>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
