"""Sums cells of money into the rows of a report. All tables of one question have exactly the same total."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import NamedTuple

from webapp.reports.cost_query import CostPart, CostReading, read
from webapp.reports.job_facts import JobFacts
from webapp.reports.report_query import BY, By, Question
from webapp.reports.sold_services import service_of

NO_TAG = "no tag"
OF_NO_USER = "of no single user"


@dataclass(frozen=True)
class Amounts:
    """Costs by how certain they are: estimated at the reservation, metered by Starling, billed by a cloud."""

    estimated: int = 0
    metered: int = 0
    billed: int = 0

    @property
    def cost(self) -> int:
        return self.estimated + self.metered + self.billed

    @property
    def basis(self) -> str:
        """The kinds that occur, the least certain first."""
        parts = (("estimated", self.estimated), ("metered", self.metered), ("billed", self.billed))
        return ", ".join(name for name, amount in parts if amount) or "metered"

    def plus(self, basis: str, amount: int) -> Amounts:
        values = {"estimated": self.estimated, "metered": self.metered, "billed": self.billed}
        return Amounts(**{**values, basis: values[basis] + amount})


@dataclass(frozen=True)
class ReportRow:
    """`detail` distinguishes rows of one name. `metered`: what Starling metered of the billed part, if there is one."""

    key: str
    label: str
    detail: str
    amounts: Amounts
    calls: int | None
    metered: int | None

    @property
    def cost(self) -> int:
        return self.amounts.cost


@dataclass(frozen=True)
class ReportTable:
    """Rows of one kind and their total. `overlaps`: a job with several tags counts in several rows."""

    by: By
    rows: tuple[ReportRow, ...]
    total: ReportRow
    overlaps: bool = False

    @property
    def title(self) -> str:
        return BY[self.by]

    @property
    def has_calls(self) -> bool:
        return self.total.calls is not None

    @property
    def has_bill(self) -> bool:
        return self.total.metered is not None


@dataclass
class _Sum:
    amounts: Amounts = field(default_factory=Amounts)
    calls: int = 0
    metered: int | None = None

    def add(self, part: CostPart) -> None:
        self.amounts = self.amounts.plus(part.basis, part.picodollars)
        self.calls += part.calls
        if part.metered is not None:
            self.metered = (self.metered or 0) + part.metered


class Costs:
    """The costs of a question, read once. `with_services`: also by service, which takes longer."""

    def __init__(self, question: Question, *, with_services: bool = False) -> None:
        self.question = question
        self._by_sku = with_services or question.by == "service" or bool(question.service)

    @cached_property
    def reading(self) -> CostReading:
        """Read on first use, so that a streamed file can begin before it."""
        return read(self.question, by_sku=self._by_sku)

    @property
    def facts(self) -> dict[str, JobFacts]:
        """Jobs with costs, by id."""
        return self.reading.facts

    @property
    def parts(self) -> list[CostPart]:
        return self.reading.parts

    @cached_property
    def has_bill(self) -> bool:
        """Whether a cloud's bill covers some of the costs."""
        return any(part.metered is not None for part in self.parts)

    @cached_property
    def total(self) -> int:
        return sum(part.picodollars for part in self.parts)

    def by_day(self) -> dict[date, int]:
        """The cost of each day, days without cost included."""
        days = dict.fromkeys(self.question.period.days(), 0)
        for part in self.parts:
            days[part.day] += part.picodollars
        return days

    def table(self, by: By | None = None) -> ReportTable:
        by = by or self.question.by
        by = "job" if by == "call" else by
        sums: dict[tuple[str, str, str], _Sum] = {}
        whole = _Sum()
        overlaps = False
        for part in self.parts:
            keys = list(_keys(by, part))
            overlaps = overlaps or len(keys) > 1
            for row_sum in (*(sums.setdefault(key, _Sum()) for key in keys), whole):
                row_sum.add(part)
        # A call has lines of several services.
        counted = by != "service" and not self.question.service
        rows = [_row(key, row_sum, counted) for key, row_sum in sums.items()]
        order: Callable[[ReportRow], tuple[int, str]] = (
            (lambda row: (0, row.key)) if by in ("day", "month") else (lambda row: (-row.cost, row.label))
        )
        total = _row(("total", "Total", ""), whole, counted)
        return ReportTable(by, tuple(sorted(rows, key=order)), total, overlaps)


def _keys(by: By, part: CostPart) -> Iterator[tuple[str, str, str]]:
    """Key, label and detail of the rows that a part counts in."""
    facts = part.facts
    if by == "day":
        yield part.day.isoformat(), part.day.isoformat(), f"{part.day:%a}"
    elif by == "month":
        yield f"{part.day:%Y-%m}", f"{part.day:%Y-%m}", f"{part.day:%B}"
    elif by == "job":
        yield facts.id, facts.name, facts.id
    elif by == "service":
        service = part.service or service_of("", facts.provider)
        yield service.name, service.name, service.provider
    elif by == "tag":
        yield from ((tag, tag, "") for tag in facts.tags or (NO_TAG,))
    else:
        value = {"project": facts.project, "user": facts.user or OF_NO_USER, "cloud": facts.cloud}[by]
        yield value, value, ""


def _row(key: tuple[str, str, str], row_sum: _Sum, counted: bool) -> ReportRow:
    return ReportRow(*key, row_sum.amounts, row_sum.calls if counted else None, row_sum.metered)


def choices(facts: Iterable[JobFacts]) -> dict[str, list[tuple[str, str]]]:
    """The values that filters can take, from jobs with costs."""
    jobs = list(facts)
    return {
        "job": sorted(((job.id, f"{job.name} ({job.id})") for job in jobs), key=lambda pair: pair[1])[:500],
        "user": [(name, name) for name in sorted({job.user for job in jobs})],
        "cloud": [(name, name) for name in sorted({job.cloud for job in jobs})],
        "tag": [(name, name) for name in sorted({tag for job in jobs for tag in job.tags})],
    }


class Bar(NamedTuple):
    """What was spent from the first to the last of some days."""

    first: date
    last: date
    picodollars: int


class Bars(NamedTuple):
    bars: list[Bar]
    highest: int
    """The top of the axis."""
    levels: list[int]
    """About four round amounts from zero to the top; zero alone if nothing was spent."""


def bars_of(by_day: Mapping[date, int], most_bars: int) -> Bars:
    """A bar for each day, or for several days where there are more than `most_bars`."""
    days = list(by_day.items())
    each = max(1, -(-len(days) // most_bars))
    chunks = [days[at : at + each] for at in range(0, len(days), each)]
    bars = [Bar(chunk[0][0], chunk[-1][0], sum(amount for _, amount in chunk)) for chunk in chunks]
    most = max((bar.picodollars for bar in bars), default=0)
    if most <= 0:
        return Bars(bars, 1, [0])
    rough = max(1, most // 4)
    size = 10 ** (len(str(rough)) - 1)
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    highest = step * -(-most // step)
    return Bars(bars, highest, list(range(0, highest + 1, step)))
