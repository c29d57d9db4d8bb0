"""Cells of money folded into the rows of a report. All tables of one question have the same total, exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property

from webapp.money.models import Basis
from webapp.reports.bills.billed import Billed
from webapp.reports.cells import Cell, cells
from webapp.reports.job_facts import JobFacts, facts_of
from webapp.reports.question import BY, By, Question
from webapp.reports.sold_services import service_of

NO_TAG = "no tag"


@dataclass(frozen=True)
class Amounts:
    """What our ledger says, by how well it is known: booked at the most it could be, metered, confirmed by a bill."""

    estimated: int = 0
    metered: int = 0
    billed: int = 0

    @property
    def cost(self) -> int:
        return self.estimated + self.metered + self.billed

    @property
    def basis(self) -> str:
        """The words for it, the least certain first."""
        parts = (("estimated", self.estimated), ("metered", self.metered), ("billed", self.billed))
        return ", ".join(name for name, amount in parts if amount) or "metered"

    def plus(self, basis: str, amount: int) -> Amounts:
        values = {"estimated": self.estimated, "metered": self.metered, "billed": self.billed}
        return Amounts(**{**values, basis: values[basis] + amount})


@dataclass(frozen=True)
class Row:
    """`detail` tells same-named rows apart. `told`: what the cloud's own bill says, None where there is none."""

    key: str
    label: str
    detail: str
    amounts: Amounts
    calls: int | None
    told: int | None

    @property
    def cost(self) -> int:
        return self.amounts.cost


@dataclass(frozen=True)
class Table:
    """Rows of one kind and their total. Rows of tags may overlap, and then `overlaps`."""

    by: By
    rows: tuple[Row, ...]
    total: Row
    overlaps: bool = False

    @property
    def title(self) -> str:
        return BY[self.by]

    @property
    def has_calls(self) -> bool:
        return self.total.calls is not None

    @property
    def has_told(self) -> bool:
        return self.total.told is not None


@dataclass
class _Sum:
    amounts: Amounts = field(default_factory=Amounts)
    calls: int = 0
    told: int | None = None


class Costs:
    """The answer to a question, read once. `with_services`: also by what was bought, which takes longer."""

    def __init__(self, question: Question, *, with_services: bool = False) -> None:
        self.question = question
        self._by_sku = with_services or question.by == "service" or bool(question.service)

    @cached_property
    def _read(self) -> tuple[dict[str, JobFacts], list[Cell]]:
        """Read when it is first needed: a file can begin before that."""
        found = cells(self.question, by_sku=self._by_sku)
        known = facts_of(cell.job_id for cell in found)
        facts = {job_id: job for job_id, job in known.items() if job.passes(self.question)}
        mine = [cell for cell in found if cell.job_id in facts]
        wanted = self.question.service
        if wanted:
            mine = [
                cell
                for cell in mine
                if service_of(cell.sku or "", facts[cell.job_id].provider).name == wanted
            ]
        return facts, mine

    @property
    def facts(self) -> dict[str, JobFacts]:
        """The jobs that something was paid for, by id."""
        return self._read[0]

    @property
    def cells(self) -> list[Cell]:
        return self._read[1]

    @cached_property
    def bills(self) -> Billed:
        return Billed.read(self.question)

    @cached_property
    def total(self) -> int:
        return sum(cell.picodollars for cell in self.cells)

    def basis_of(self, cell: Cell) -> str:
        facts = self.facts[cell.job_id]
        return self.basis(facts, cell.day, cell.basis)

    def basis(self, facts: JobFacts, day: date, basis: str) -> str:
        """Estimated, metered, or billed where a bill of that day and provider has been read."""
        if self.bills.covers(facts.project_id, day, facts.provider):
            return "billed"
        return "estimated" if basis == Basis.ASSUMED else "metered"

    def by_day(self) -> dict[date, int]:
        """What each day cost, those without cost as well."""
        days = dict.fromkeys(self.question.period.days(), 0)
        for cell in self.cells:
            days[cell.day] += cell.picodollars
        return days

    def table(self, by: By | None = None) -> Table:
        by = by or self.question.by
        by = "job" if by == "call" else by
        sums: dict[tuple[str, str, str], _Sum] = {}
        whole = _Sum()
        overlaps = False
        for cell in self.cells:
            keys = list(self._keys(by, cell))
            overlaps = overlaps or len(keys) > 1
            for one in (*(sums.setdefault(key, _Sum()) for key in keys), whole):
                one.amounts = one.amounts.plus(self.basis_of(cell), cell.picodollars)
                one.calls += cell.calls
        self._tell(by, sums, whole)
        counted = not self._by_sku
        rows = [_row(key, one, counted) for key, one in sums.items()]
        order: Callable[[Row], tuple[int, str]] = (
            (lambda row: (0, row.key)) if by in ("day", "month") else (lambda row: (-row.cost, row.label))
        )
        total = _row(("total", "Total", ""), whole, counted)
        return Table(by, tuple(sorted(rows, key=order)), total, overlaps)

    def _tell(self, by: By, sums: dict[tuple[str, str, str], _Sum], whole: _Sum) -> None:
        """What the clouds' bills say, where they can be put beside a row of ours."""
        told = [one for one in self.bills.told if self._about(one.job_id)]
        for one in told:
            whole.told = (whole.told or 0) + one.picodollars
            key = {
                "day": one.day.isoformat(),
                "month": f"{one.day:%Y-%m}",
                "service": one.service,
                "job": one.job_id or "",
            }.get(by)
            for (name, _, _), row in sums.items():
                if key is not None and name == key:
                    row.told = (row.told or 0) + one.picodollars

    def _about(self, job_id: str | None) -> bool:
        return not self.question.filters or job_id in self.facts

    def _keys(self, by: By, cell: Cell) -> Iterator[tuple[str, str, str]]:
        """Key, label and detail of the rows that a cell counts in."""
        facts = self.facts[cell.job_id]
        if by == "day":
            yield cell.day.isoformat(), cell.day.isoformat(), f"{cell.day:%a}"
        elif by == "month":
            yield f"{cell.day:%Y-%m}", f"{cell.day:%Y-%m}", f"{cell.day:%B}"
        elif by == "job":
            yield facts.id, facts.name, facts.id
        elif by == "service":
            service = service_of(cell.sku or "", facts.provider)
            yield service.name, service.name, service.provider
        elif by == "tag":
            yield from ((tag, tag, "") for tag in facts.tags or (NO_TAG,))
        else:
            value = {"project": facts.project, "user": facts.user, "cloud": facts.cloud}[by]
            yield value, value, ""


def _row(key: tuple[str, str, str], one: _Sum, counted: bool) -> Row:
    return Row(*key, one.amounts, one.calls if counted else None, one.told)


def choices(facts: Iterable[JobFacts]) -> dict[str, list[tuple[str, str]]]:
    """What filters can be set to, given the jobs that something was paid for."""
    jobs = list(facts)
    return {
        "job": sorted(((job.id, f"{job.name} ({job.id})") for job in jobs), key=lambda pair: pair[1])[:500],
        "user": [(name, name) for name in sorted({job.user for job in jobs})],
        "cloud": [(name, name) for name in sorted({job.cloud for job in jobs})],
        "tag": [(name, name) for name in sorted({tag for job in jobs for tag in job.tags})],
    }
