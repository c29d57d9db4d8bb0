"""Turns the query of an address into a question, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args
from urllib.parse import urlencode

from webapp.accounts.models import Project
from webapp.money.amounts import Prices
from webapp.reports.cells import charge_count, kinds_of_money
from webapp.reports.files.formats import FORMATS
from webapp.reports.report_query import PRESETS, By, DayRange, NoPeriod, Question, preset

_INSTEAD = " This month is shown instead."
_FILTERS = ("job", "user", "cloud", "service", "tag")
NAMES = ("from", "to", "range", "by", "prices", *_FILTERS)
_MADE_AT_ONCE = 20_000
"""A report that reads more charges than this is built by the worker."""
_FOLDED_BY_DATABASE = 10
"""Sums are made by the database, so many times faster than charges are read one by one."""


@dataclass(frozen=True)
class ParsedQuery:
    """The question of an address. `range_name` is empty for two given days; `problem` says what was not understood."""

    question: Question
    range_name: str
    problem: str = ""

    @property
    def query(self) -> str:
        """The question as a query string, with fixed days, so that the address keeps its meaning."""
        question = self.question
        fixed = {
            "from": question.first_day,
            "to": question.last_day,
            "by": question.by,
            "prices": question.prices,
        }
        return urlencode({**fixed, **question.filters})


def parse_query(query: Mapping[str, Any], project: Project | None, today: date) -> ParsedQuery:
    """Parse an address. A part that is wrong is named in `problem`; the rest holds."""
    range_name, period, problem = _period(query, today)
    project_id = project.pk if project else None
    by = query.get("by", "")
    prices = query.get("prices", "")
    known = get_args(Prices)
    if prices not in known:
        prices = next(iter(kinds_of_money(project_id, period)), "actual")
    filters = {name: str(query.get(name, ""))[:100] for name in _FILTERS}
    question = Question(
        project=project_id,
        first_day=period.first_day,
        last_day=period.last_day,
        by=by if by in get_args(By) else "day",
        prices=prices,
        **{**filters, "job": filters["job"][:20]},
    )
    return ParsedQuery(question, range_name, problem)


def refusal(query: Mapping[str, Any], today: date) -> str:
    """Why an address is not understood; empty if it is. A page may show another period instead, a file may not."""
    for name, values in (("by", get_args(By)), ("prices", get_args(Prices)), ("range", tuple(PRESETS))):
        if query.get(name) and query[name] not in values:
            return f"{name} is {query[name]}. It may be {', '.join(values)}."
    return _period(query, today)[2].removesuffix(_INSTEAD)


def _period(query: Mapping[str, Any], today: date) -> tuple[str, DayRange, str]:
    name = query.get("range", "")
    if name in PRESETS:
        return name, preset(name, today), ""
    texts = query.get("from", ""), query.get("to", "")
    if not any(texts):
        return "this-month", preset("this-month", today), ""
    try:
        first, last = (date.fromisoformat(text) for text in texts)
        return "", DayRange(first, last), ""
    except ValueError as error:
        words = str(error) if isinstance(error, NoPeriod) else "Days are written like 2026-01-31."
        return "this-month", preset("this-month", today), f"{words}{_INSTEAD}"


def too_large(question: Question, format_key: str, charges: int | None = None) -> bool:
    """Whether the worker builds such a file. CSV is never too large, as it is streamed."""
    if format_key == "csv" or format_key not in FORMATS:
        return False
    count = charge_count(question) if charges is None else charges
    one_by_one = format_key == "focus" or (question.by == "call" and format_key != "pdf")
    return (count if one_by_one else count // _FOLDED_BY_DATABASE) > _MADE_AT_ONCE
