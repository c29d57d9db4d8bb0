"""The charts and tables of a report as PDF. Charts are vectors; tables have exact amounts, right-aligned, the header on
each page, and the total at the end.
"""

from __future__ import annotations

from fpdf import FPDF
from fpdf.enums import XPos, YPos

from webapp.formatting import display_usd, format_axis_usd, format_day, format_percent
from webapp.money.amounts import exact_usd
from webapp.reports.report_query import Question
from webapp.reports.table import Amounts, Costs, ReportRow, ReportTable, bars_of

MARGIN = 18.0
WIDTH = 210.0 - 2 * MARGIN
BOTTOM = 297.0 - 20.0

INK = (22, 25, 31)
GREY = (91, 100, 114)
LINE = (227, 230, 235)
FAINT = (247, 248, 250)
ACCENT = (0, 114, 178)
WARNING = (138, 92, 0)


_HEIGHT = 48.0
_MOST_BARS = 62
_MOST_ROWS = 8
_LABELS = 7
_AXIS = 20.0
_LABEL_WIDTH, _FIGURE_WIDTH = 52.0, 34.0


def over_time(paper: FPDF, costs: Costs) -> None:
    """Draw a bar for each day, or for several days if there are many."""
    bars = bars_of(costs.by_day(), _MOST_BARS)
    days = (bars.bars[0].last - bars.bars[0].first).days + 1
    _title(paper, f"Spend over time, a bar for {'each day' if days == 1 else f'{days} days'}", _HEIGHT + 16)
    top, left, width = paper.get_y() + 2, MARGIN + _AXIS, WIDTH - _AXIS
    paper.set_font(size=7.5)
    paper.set_text_color(*GREY)
    paper.set_draw_color(*LINE)
    paper.set_line_width(0.15)
    for level in bars.levels:
        y = top + _HEIGHT * (1 - level / bars.highest)
        paper.line(left, y, left + width, y)
        paper.set_xy(MARGIN, y - 2)
        paper.cell(_AXIS - 2, 4, format_axis_usd(level), align="R")
    slot = width / max(1, len(bars.bars))
    paper.set_fill_color(*ACCENT)
    every = -(-len(bars.bars) // _LABELS)
    for number, (first, _, amount) in enumerate(bars.bars):
        height = _HEIGHT * amount / bars.highest
        x = left + slot * number
        if amount:
            paper.rect(x + slot * 0.14, top + _HEIGHT - height, slot * 0.72, height, style="F")
        if number % every == 0:
            paper.set_xy(x + slot / 2 - 10, top + _HEIGHT + 1)
            paper.cell(20, 4, format_day(first, short=True), align="C")
    paper.set_xy(MARGIN, top + _HEIGHT + 9)


def shares(paper: FPDF, table: ReportTable, title: str) -> None:
    """Draw the largest rows as bars, and the sum of the rest as the last bar."""
    rows = [(row.label, row.cost) for row in table.rows if row.cost][:_MOST_ROWS]
    rest = table.total.cost - sum(cost for _, cost in rows)
    if rest > 0:
        rows.append((f"{len(table.rows) - len(rows)} more", rest))
    _title(paper, title, 8 + 6.5 * max(1, len(rows)))
    most = max((cost for _, cost in rows), default=0)
    room = WIDTH - _LABEL_WIDTH - _FIGURE_WIDTH
    for label, cost in rows:
        y = paper.get_y()
        paper.set_text_color(*INK)
        paper.cell(_LABEL_WIDTH - 3, 6, fitted(paper, label, _LABEL_WIDTH - 4))
        paper.set_fill_color(*FAINT)
        paper.rect(MARGIN + _LABEL_WIDTH, y + 1.2, room, 3.6, style="F")
        paper.set_fill_color(*ACCENT)
        paper.rect(MARGIN + _LABEL_WIDTH, y + 1.2, max(0.3, room * cost / most), 3.6, style="F")
        paper.set_xy(MARGIN + WIDTH - _FIGURE_WIDTH, y)
        share = format_percent(cost, table.total.cost, decimals=1)
        paper.cell(_FIGURE_WIDTH, 6, f"{display_usd(cost)}   {share}", align="R")
        paper.set_xy(MARGIN, y + 6.5)
    if not rows:
        paper.set_text_color(*GREY)
        paper.cell(WIDTH, 6, "Nothing was spent.", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    paper.ln(4)


def fitted(paper: FPDF, text: str, width: float) -> str:
    """The text, or its beginning where it is too long."""
    text = drawable(paper, text)
    if paper.get_string_width(text) <= width:
        return text
    while text and paper.get_string_width(f"{text}…") > width:
        text = text[:-1]
    return f"{text}…"


def drawable(paper: FPDF, text: str) -> str:
    """The text with a question mark for each letter that the font lacks."""
    known = paper.current_font.cmap  # type: ignore[union-attr]
    return "".join(letter if ord(letter) in known else "?" for letter in text)


def _title(paper: FPDF, words: str, room: float) -> None:
    if paper.get_y() + room > BOTTOM:
        paper.add_page()
    paper.set_font(style="B", size=10.5)
    paper.set_text_color(*INK)
    paper.cell(WIDTH, 8, words, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    paper.set_font(style="", size=8.5)


MOST_ROWS = 400
"""Further rows become one line that says how many are left out; the other kinds of file have them all."""
_ROW = 5.6


def draw_table(paper: FPDF, table: ReportTable, question: Question) -> None:
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


def _rows_to_draw(table: ReportTable) -> list[ReportRow]:
    rows, left = table.rows[:MOST_ROWS], table.rows[MOST_ROWS:]
    if not left:
        return list(rows)
    amounts = Amounts(
        estimated=sum(row.amounts.estimated for row in left),
        metered=sum(row.amounts.metered for row in left),
        billed=sum(row.amounts.billed for row in left),
    )
    words = f"{len(left):,} more rows, which CSV and XLSX list"
    return [*rows, ReportRow("", words, "", amounts, None, None)]


def _columns(table: ReportTable) -> list[tuple[str, float, str]]:
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


def _header(paper: FPDF, table: ReportTable) -> None:
    paper.set_font(style="B", size=8)
    paper.set_text_color(*GREY)
    for name, width, align in _columns(table):
        paper.cell(width, _ROW, name, align=align)
    paper.ln(_ROW)
    paper.set_draw_color(*LINE)
    paper.line(MARGIN, paper.get_y(), MARGIN + WIDTH, paper.get_y())


def _line(
    paper: FPDF, table: ReportTable, row: ReportRow, places: int, *, bold: bool = False, shaded: bool = False
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
