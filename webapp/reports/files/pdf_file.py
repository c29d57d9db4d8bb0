"""A report as PDF: the total, then charts, then tables. Single calls are in the other kinds of file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pymupdf_fonts
from fpdf import FPDF
from fpdf.enums import XPos, YPos

from webapp.formatting import display_usd
from webapp.money.amounts import exact_usd
from webapp.reports.bills.difference import metered_sentence
from webapp.reports.columns import BASES, prices_sentence
from webapp.reports.files import pdf_drawing
from webapp.reports.files.pdf_drawing import ACCENT, GREY, INK, LINE, MARGIN, WARNING, WIDTH, draw_table
from webapp.reports.report_query import By
from webapp.reports.table import Costs

FONT = "starling"
_FONTS = {"": "notos", "B": "notosbo"}
_TABLES: tuple[By, ...] = ("month", "day", "job", "service", "cloud", "user")


class _Paper(FPDF):
    """Pages with a footer that says what this is and when it was made."""

    def __init__(self, made_at: datetime, footing: str) -> None:
        super().__init__(format="A4")
        self._footing = f"{footing}  ·  made {made_at:%Y-%m-%d %H:%M} UTC"
        self.set_margins(MARGIN, MARGIN, MARGIN)
        self.set_auto_page_break(True, margin=18)
        self.set_creation_date(made_at)

    def footer(self) -> None:
        self.set_y(-13)
        self.set_font(FONT, size=7.5)
        self.set_text_color(*GREY)
        self.cell(WIDTH / 2, 5, pdf_drawing.drawable(self, self._footing))
        self.cell(WIDTH / 2, 5, f"{self.page_no()} / {{nb}}", align="R")


def write(costs: Costs, path: Path, whose: str, made_at: datetime) -> None:
    """Write the file. The costs must have been read with services."""
    paper = _Paper(made_at, f"Starling  ·  cost of {whose}")
    with _fonts() as files:
        for style, file in files.items():
            paper.add_font(FONT, style, file)
        paper.set_title(f"Cost of {whose}, {costs.question.period}")
        paper.set_lang("en")
        paper.add_page()
        _head(paper, costs, whose)
        pdf_drawing.over_time(paper, costs)
        pdf_drawing.shares(paper, costs.table("job"), "By job")
        pdf_drawing.shares(paper, costs.table("service"), "By service")
        for by in _tables(costs):
            draw_table(paper, costs.table(by), costs.question)
        _legend(paper)
        paper.output(str(path))


@contextmanager
def _fonts() -> Iterator[dict[str, str]]:
    """Paths of Noto Sans, which covers the scripts of most names."""
    with tempfile.TemporaryDirectory(prefix="starling-fonts-") as folder:
        files = {}
        for style, name in _FONTS.items():
            file = Path(folder) / f"{name}.ttf"
            file.write_bytes(pymupdf_fonts.myfont(name))
            files[style] = str(file)
        yield files


def _tables(costs: Costs) -> list[By]:
    """The tables to draw: the requested one first, then those that most readers need or that have several rows."""
    requested: By = "job" if costs.question.by == "call" else costs.question.by
    others = [by for by in _TABLES if by in ("day", "job", "service") or len(costs.table(by).rows) > 1]
    return [requested, *(by for by in others if by != requested)]


def _head(paper: FPDF, costs: Costs, whose: str) -> None:
    question = costs.question
    paper.set_font(FONT, "B", 18)
    paper.set_text_color(*INK)
    paper.multi_cell(
        WIDTH,
        9,
        pdf_drawing.drawable(paper, f"Cost of {whose}"),
        new_x=XPos.LMARGIN,
        new_y=YPos.NEXT,
        align="L",
    )
    paper.set_font(FONT, size=10)
    paper.set_text_color(*GREY)
    paper.cell(WIDTH, 6, f"{question.period}, UTC", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    if question.filters:
        only = "; ".join(f"{name} {value}" for name, value in question.filters.items())
        paper.multi_cell(
            WIDTH,
            6,
            pdf_drawing.drawable(paper, f"Only {only}"),
            new_x=XPos.LMARGIN,
            new_y=YPos.NEXT,
            align="L",
        )
    paper.ln(3)
    paper.set_font(FONT, "B", 26)
    paper.set_text_color(*INK)
    amount = display_usd(costs.total)
    paper.cell(paper.get_string_width(amount) + 4, 12, amount)
    paper.set_font(FONT, size=9)
    paper.set_text_color(*GREY)
    exact = f"exactly {exact_usd(costs.total)} USD"
    paper.cell(0, 15, exact, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    paper.set_text_color(*(GREY if question.prices == "actual" else WARNING))
    amounts = costs.table("cloud").total.amounts
    parts = [(name, getattr(amounts, name)) for name in BASES]
    known = ", ".join(f"{display_usd(amount)} {word}" for word, amount in parts if amount)
    words = (
        f"{prices_sentence(question)}.{f' Of it {known}.' if known else ''} {metered_sentence(costs)}".strip()
    )
    paper.multi_cell(WIDTH, 5, words, new_x=XPos.LMARGIN, new_y=YPos.NEXT, align="L")
    paper.set_draw_color(*LINE)
    paper.ln(4)


def _legend(paper: FPDF) -> None:
    paper.ln(4)
    if paper.get_y() > 255:
        paper.add_page()
    paper.set_font(FONT, size=8)
    paper.set_text_color(*GREY)
    paper.set_draw_color(*ACCENT)
    words = " ".join(f"{name.capitalize()}: {words[0].lower()}{words[1:]}" for name, words in BASES.items())
    paper.multi_cell(WIDTH, 4.5, words, new_x=XPos.LMARGIN, new_y=YPos.NEXT, align="L")
