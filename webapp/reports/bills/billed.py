"""What clouds' own bills say of a question's time, as they were read in. Nothing here writes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from django.db.models import Sum

from webapp.reports.models import BilledLine, MatchedBy
from webapp.reports.question import Question


@dataclass(frozen=True)
class Told:
    """Part of a cloud's bill: of a job where the bill can be matched to one."""

    project_id: int
    day: date
    provider: str
    service: str
    job_id: str | None
    picodollars: int


@dataclass(frozen=True)
class Billed:
    """The bills of a time: their amounts, and which days of which provider they cover."""

    told: tuple[Told, ...]
    covered: frozenset[tuple[int, date, str]]

    @classmethod
    def read(cls, question: Question) -> Billed:
        """Only money that is paid is ever on a bill."""
        if question.prices != "actual":
            return cls((), frozenset())
        lines = BilledLine.objects.filter(day__range=(question.first_day, question.last_day)).exclude(
            matched_by=MatchedBy.NOTHING
        )
        if question.project is not None:
            lines = lines.filter(project_id=question.project)
        groups = lines.values_list("project_id", "day", "provider", "service", "job_id")
        told = tuple(
            Told(*group, int(amount))
            for *group, amount in groups.annotate(amount=Sum("picodollars")).order_by("day", "service")
        )
        return cls(told, frozenset((one.project_id, one.day, one.provider) for one in told))

    def covers(self, project_id: int, day: date, provider: str) -> bool:
        return (project_id, day, provider) in self.covered
