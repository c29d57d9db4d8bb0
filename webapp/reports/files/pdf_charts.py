"""The charts of a report as PDF, drawn as vectors."""

from __future__ import annotations

from fpdf import FPDF
from fpdf.enums import XPos, YPos

from webapp.formatting import display_usd, format_axis_usd, format_day, format_percent
from webapp.reports.bars import bars_of
from webapp.reports.files.pdf_look import ACCENT, BOTTOM, FAINT, GREY, INK, LINE, MARGIN, WIDTH
from webapp.reports.table import Costs, Table

_HEIGHT = 48.0
_MOST_BARS = 62
_MOST_ROWS = 8
_LABELS = 7
_AXIS = 20.0
_LABEL_WIDTH, _FIGURE_WIDTH = 52.0, 34.0


def over_time(paper: FPDF, costs: Costs) -> None:
    """Draw a bar for each day, or for several days if there are many."""
    found = bars_of(costs.by_day(), _MOST_BARS)
    days = (found.bars[0].last - found.bars[0].first).days + 1
    _title(paper, f"Spend over time, a bar for {'each day' if days == 1 else f'{days} days'}", _HEIGHT + 16)
    top, left, width = paper.get_y() + 2, MARGIN + _AXIS, WIDTH - _AXIS
    paper.set_font(size=7.5)
    paper.set_text_color(*GREY)
    paper.set_draw_color(*LINE)
    paper.set_line_width(0.15)
    for level in found.levels:
        y = top + _HEIGHT * (1 - level / found.highest)
        paper.line(left, y, left + width, y)
        paper.set_xy(MARGIN, y - 2)
        paper.cell(_AXIS - 2, 4, format_axis_usd(level), align="R")
    slot = width / max(1, len(found.bars))
    paper.set_fill_color(*ACCENT)
    every = -(-len(found.bars) // _LABELS)
    for number, (first, _, amount) in enumerate(found.bars):
        height = _HEIGHT * amount / found.highest
        x = left + slot * number
        if amount:
            paper.rect(x + slot * 0.14, top + _HEIGHT - height, slot * 0.72, height, style="F")
        if number % every == 0:
            paper.set_xy(x + slot / 2 - 10, top + _HEIGHT + 1)
            paper.cell(20, 4, format_day(first, short=True), align="C")
    paper.set_xy(MARGIN, top + _HEIGHT + 9)


def shares(paper: FPDF, table: Table, title: str) -> None:
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
