"""The kinds of file that a report can be. A new kind is one row here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from webapp.reports.files import csv_file, focus_file, json_file
from webapp.reports.report_query import Question
from webapp.reports.table import Costs

OnProgress = Callable[[int], None]


@dataclass(frozen=True)
class ReportFormat:
    """`pieces`: builds the file while it is sent. `make` builds the others whole."""

    key: str
    word: str
    what: str
    suffix: str
    content_type: str
    pieces: Callable[[Costs, OnProgress], Iterator[str]] | None = None

    def name_of_file(self, question: Question, whose: str) -> str:
        by = f"-by-{question.by}" if self.key in ("csv", "xlsx", "json") else ""
        return f"starling-{whose}-cost{by}-{question.first_day}-to-{question.last_day}{self.suffix}"


FORMATS: dict[str, ReportFormat] = {
    kind.key: kind
    for kind in (
        ReportFormat("csv", "CSV", "for anything", ".csv", "text/csv; charset=utf-8", csv_file.pieces),
        ReportFormat(
            *("xlsx", "Excel", "real numbers under a header that stays", ".xlsx"),
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        ReportFormat("pdf", "PDF", "pictures first, then tables", ".pdf", "application/pdf"),
        ReportFormat("json", "JSON", "for programs", ".json", "application/json", json_file.pieces),
        ReportFormat(
            *("focus", "FOCUS 1.2", "for FinOps tools, by hour and SKU", ".focus-1.2.csv"),
            *("text/csv; charset=utf-8", focus_file.pieces),
        ),
    )
}


def make(
    question: Question,
    format_key: str,
    path: Path,
    *,
    whose: str,
    made_at: datetime,
    on_progress: OnProgress = lambda rows: None,
) -> None:
    """Write the whole file to `path`."""
    chosen = FORMATS[format_key]
    costs = Costs(question, with_services=format_key == "pdf")
    if chosen.pieces is not None:
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(chosen.pieces(costs, on_progress))
    elif format_key == "xlsx":
        from webapp.reports.files import xlsx_file  # loads a library that pages never need

        xlsx_file.write(costs, path, whose, on_progress)
    else:
        from webapp.reports.files import pdf_file  # loads a library that pages never need

        pdf_file.write(costs, path, whose, made_at)
