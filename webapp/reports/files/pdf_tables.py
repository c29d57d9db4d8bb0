"""Tables of a report as PDF: exact amounts, right-aligned, the header on each page, the total at the end."""

from __future__ import annotations

from fpdf import FPDF
from fpdf.enums import XPos, YPos

from webapp.formatting import format_percent
from webapp.money.amounts import exact_usd
from webapp.reports.files.pdf_charts import fitted
from webapp.reports.files.pdf_look import BOTTOM, FAINT, GREY, INK, LINE, MARGIN, WIDTH
from webapp.reports.report_query import Question
from webapp.reports.table import Amounts, Row, Table

MOST_ROWS = 400
"""Further rows become one line that says how many are left out; the other kinds of file have them all."""
_ROW = 5.6


def draw_table(paper: FPDF, table: Table, question: Question) -> None:
    """Draw the table, on as many pages as it needs."""
    if paper.get_y() + 8 + 4 * _ROW > BOTTOM:
        paper.add_page()
    paper.ln(3)
    paper.set_font(style="B", size=10.5)
    paper.set_text_color(*INK)
    paper.cell(WIDTH, 8, f"Cost by {table.title.lower()}", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    _header(paper, table)
    amounts = (*table.rows, table.total)
    places = max(len(exact_usd(row.cost).partition(".")[2]) for row in amounts)
    for number, row in enumerate(_rows_to_draw(table)):
        if paper.get_y() + _ROW > BOTTOM:
            paper.add_page()
            _header(paper, table)
        _line(paper, table, row, places, shaded=bool(number % 2))
    paper.set_draw_color(*GREY)
    paper.line(MARGIN, paper.get_y(), MARGIN + WIDTH, paper.get_y())
    _line(paper, table, table.total, places, bold=True)
    paper.set_font(style="", size=8)
    paper.set_text_color(*GREY)
    if table.overlaps:
        words = "A job with several tags counts in each of their rows, and once in the total."
        paper.cell(WIDTH, 5, words, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    paper.ln(3)


def _rows_to_draw(table: Table) -> list[Row]:
    rows, left = table.rows[:MOST_ROWS], table.rows[MOST_ROWS:]
    if not left:
        return list(rows)
    amounts = Amounts(
        estimated=sum(row.amounts.estimated for row in left),
        metered=sum(row.amounts.metered for row in left),
        billed=sum(row.amounts.billed for row in left),
    )
    words = f"{len(left):,} more rows, which CSV and XLSX list"
    return [*rows, Row("", words, "", amounts, None, None)]


def _columns(table: Table) -> list[tuple[str, float, str]]:
    """Name, width and alignment."""
    sized = [("Share", 16.0, "R"), ("Basis", 38.0, "L"), ("Cost [USD]", 40.0, "R")]
    if table.has_bill:
        sized.insert(2, ("We metered [USD]", 30.0, "R"))
    rest = WIDTH - sum(width for _, width, _ in sized)
    return [(table.title, rest, "L"), *sized]


def _aligned(picodollars: int, places: int) -> str:
    """The exact amount, with as many decimals as the longest of the table, so that digits align."""
    whole, _, decimals = exact_usd(picodollars).partition(".")
    return f"{whole}.{decimals.ljust(places, '0')}" if places else whole


def _header(paper: FPDF, table: Table) -> None:
    paper.set_font(style="B", size=8)
    paper.set_text_color(*GREY)
    for name, width, align in _columns(table):
        paper.cell(width, _ROW, name, align=align)
    paper.ln(_ROW)
    paper.set_draw_color(*LINE)
    paper.line(MARGIN, paper.get_y(), MARGIN + WIDTH, paper.get_y())


def _line(
    paper: FPDF, table: Table, row: Row, places: int, *, bold: bool = False, shaded: bool = False
) -> None:
    paper.set_font(style="B" if bold else "", size=8)
    paper.set_text_color(*INK)
    paper.set_fill_color(*FAINT)
    label = f"{row.label}  {row.detail}" if row.detail and table.by in ("job", "day", "month") else row.label
    share = format_percent(row.cost, table.total.cost, decimals=1)
    metered = "–" if row.metered is None else exact_usd(row.metered)
    cells = [label, share, row.amounts.basis, _aligned(row.cost, places)]
    if table.has_bill:
        cells.insert(3, metered)
    for text, (_, width, align) in zip(cells, _columns(table), strict=True):
        paper.cell(width, _ROW, fitted(paper, text, width - 2), align=align, fill=shaded)
    paper.ln(_ROW)
