"""Writes the lines of a bill: in small batches, and counted all at once or not at all.

While a bill is being read, its lines do not count yet, and the periods that it replaces are marked but still count. The
bill's own state decides which count: one row, changed at the end. The next reading removes what a dead worker left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import TruncDate

from cloud.accounts.register import TAG_RUN, is_ours, run_of
from webapp.background import Attempt, TakenOver
from webapp.database.short_writes import keys_of, write_in_batches
from webapp.jobs.models import Job
from webapp.money.models import Charge, ChargeState
from webapp.reports.bills.bill_file import BillRefused
from webapp.reports.bills.bill_lines import OUR_SERVICES, CloudCharge
from webapp.reports.bills.replacement import WHAT_TO_DO, Coverage, PeriodKey, doubt
from webapp.reports.models import BilledLine, BilledPeriod, CloudBill, FileState, MatchedBy

_MOST_DAYS = 4000
_MOST_PERIODS = 10_000
_ALIVE_EVERY_LINES = 20_000


class BillAttempt:
    """Writes the lines of a bill. Raises TakenOver once a later reading has begun."""

    def __init__(self, attempt: Attempt[CloudBill]) -> None:
        self.bill = attempt.row
        self.write = attempt.write

    def keep_alive(self, lines: Iterable[CloudCharge | None]) -> Iterator[CloudCharge | None]:
        for number, line in enumerate(lines, 1):
            if number % _ALIVE_EVERY_LINES == 0:
                self.write()
            yield line

    def store(self, lines: Iterable[CloudCharge | None], survey: Survey) -> None:
        """Write the lines, which do not count yet. Raises BillRefused if they may not replace what is stored."""
        _forget(self.bill, self.write)
        write_in_batches(Matching(self.bill, survey, self._periods(survey)).rows(lines), self._write)

    def _periods(self, survey: Survey) -> dict[PeriodKey, BilledPeriod]:
        """The bill's periods as rows, with the stored periods marked that they replace."""
        stored = _stored_periods(self.bill)
        periods: dict[PeriodKey, BilledPeriod] = {}
        replaced: list[int] = []
        for key, coverage in survey.periods.items():
            same = [
                period
                for period in stored.get((key.provider, key.first_day), ())
                if not key.account or period.account in (key.account, "")
            ]
            for period in () if self.bill.replace_anyway else same:
                _refuse_in_doubt(key, coverage, period)
            if same or coverage.line_count:
                periods[key] = _period_row(self.bill, key, coverage)
                replaced += [period.pk for period in same]

        def create(rows: list[BilledPeriod]) -> None:
            self.write()
            BilledPeriod.objects.bulk_create(rows)

        def mark(keys: list[int]) -> None:
            self.write()
            BilledPeriod.objects.filter(pk__in=keys).update(replaced_by=self.bill)

        write_in_batches(periods.values(), create)
        write_in_batches(replaced, mark)
        return periods

    def _write(self, rows: list[BilledLine]) -> None:
        self.write()
        BilledLine.every.bulk_create(rows)


def _stored_periods(bill: CloudBill) -> dict[tuple[str, date], list[BilledPeriod]]:
    """The project's periods that count, by provider and first day."""
    ready = BilledPeriod.objects.filter(bill__project_id=bill.project_id, bill__state=FileState.READY)
    stored: dict[tuple[str, date], list[BilledPeriod]] = {}
    for period in ready.exclude(replaced_by__state=FileState.READY).select_related("bill"):
        stored.setdefault((period.provider, period.first_day), []).append(period)
    return stored


def _period_row(bill: CloudBill, key: PeriodKey, coverage: Coverage) -> BilledPeriod:
    return BilledPeriod(
        bill=bill,
        **key._asdict(),
        used_from=coverage.used_from,
        used_until=coverage.used_until,
        line_count=coverage.line_count,
        picodollars=coverage.picodollars,
    )


def _refuse_in_doubt(key: PeriodKey, new: Coverage, period: BilledPeriod) -> None:
    """Raise BillRefused if the file may be older than the stored period, or only a part of it."""
    if period.used_from is None or period.used_until is None:
        return
    services = set(BilledLine.every.filter(period=period).values_list("service", flat=True).distinct())
    stored = Coverage(
        period.used_from, period.used_until, period.line_count, period.picodollars, services & OUR_SERVICES
    )
    if words := doubt(key, new, stored, period.bill.name):
        raise BillRefused(f"{words} {WHAT_TO_DO}")


def tidy(bill: CloudBill) -> None:
    """Delete the lines that no longer count, if the bill is read or failed. Raises TakenOver if it is read again."""
    same = CloudBill.objects.filter(pk=bill.pk, state=bill.state, attempt=bill.attempt)

    def still_so() -> None:
        if not same.update(state=bill.state):
            raise TakenOver

    if bill.state == FileState.READY:
        _delete(BilledLine.every.filter(period__replaced_by=bill), still_so)
    elif bill.state == FileState.FAILED:
        _forget(bill, still_so)


def _forget(bill: CloudBill, check: Callable[[], None]) -> None:
    """Delete the lines of a bill that does not count, and the marks on periods that it would have replaced."""
    _delete(BilledLine.every.filter(period__bill=bill), check)
    with transaction.atomic():
        check()
        bill.periods.all().delete()
        bill.replaced.update(replaced_by=None)


def _delete(lines: QuerySet[BilledLine], check: Callable[[], None]) -> None:
    def delete(keys: list[int]) -> None:
        check()
        lines.filter(pk__in=keys).delete()

    write_in_batches(keys_of(lines), delete)


@dataclass
class Survey:
    """What a first pass over all lines of a bill finds."""

    row_count: int = 0
    days: set[date] = field(default_factory=set)
    tagged: set[tuple[date, str]] = field(default_factory=set)
    """Days and services with a tagged line: their other lines belong to other programs."""
    periods: dict[PeriodKey, Coverage] = field(default_factory=dict)


def survey_lines(lines: Iterable[CloudCharge | None]) -> Survey:
    """Go through all lines. Raises BillRefused if one cannot be read: half a bill would look like a small one."""
    survey = Survey()
    for line in lines:
        survey.row_count += 1
        if line is None:
            continue
        survey.days.add(line.day)
        if len(survey.days) > _MOST_DAYS:
            raise BillRefused(f"The file has lines of more than {_MOST_DAYS:,} days. Export it by month.")
        if line.service and _is_tagged(line):
            survey.tagged.add((line.day, line.service))
        coverage = survey.periods.setdefault(_key(line), Coverage(line.day, line.day))
        if len(survey.periods) > _MOST_PERIODS:
            raise BillRefused(
                f"The file has more than {_MOST_PERIODS:,} accounts and billing periods. Export it by month."
            )
        coverage.extend(line.day)
        if _is_kept(line):
            coverage.line_count += 1
            coverage.picodollars += line.picodollars
            if line.service:
                coverage.services.add(line.service)
    return survey


def _key(line: CloudCharge) -> PeriodKey:
    return PeriodKey(line.provider, line.account, line.period)


class Matching:
    """Finds the project's job that a line is for, if any."""

    def __init__(self, bill: CloudBill, survey: Survey, periods: Mapping[PeriodKey, BilledPeriod]) -> None:
        self._project_id = bill.project_id
        self._periods = periods
        self._tagged = survey.tagged
        self._job_ids = set(Job.objects.filter(project_id=bill.project_id).values_list("pk", flat=True))
        self._metered = _metered_days(bill.project_id, survey.days)

    def rows(self, lines: Iterable[CloudCharge | None]) -> Iterator[BilledLine]:
        """The lines as rows, without lines that are neither Starling's nor of a service that Starling uses."""
        for line in lines:
            if line is not None and _is_kept(line):
                yield self._row(line)

    def _row(self, line: CloudCharge) -> BilledLine:
        run = run_of(line.tags.get(TAG_RUN, ""))
        job_id = run[0] if run and run[0] in self._job_ids else None
        return BilledLine(
            period=self._periods[_key(line)],
            project_id=self._project_id,
            day=line.day,
            provider=line.provider,
            service=line.service or line.billed_service_name,
            what=line.what,
            resource=line.resource,
            job_id=job_id,
            matched_by=self._matched_by(line, job_id),
            picodollars=line.picodollars,
        )

    def _matched_by(self, line: CloudCharge, job_id: str | None) -> str:
        """How a line is matched. Without any tagged line that day, all lines of a service match what was metered."""
        if job_id is not None:
            return MatchedBy.TAG
        if _is_tagged(line):
            return MatchedBy.OURS
        alone = line.day in self._metered and (line.day, line.service) not in self._tagged
        return MatchedBy.DAY if alone else MatchedBy.NOTHING


def _is_kept(line: CloudCharge) -> bool:
    return bool(line.service) or _is_tagged(line)


def _is_tagged(line: CloudCharge) -> bool:
    """Whether the line's tags or its resource's name say that it is Starling's."""
    named = run_of(line.tags.get(TAG_RUN, "")) is not None or is_ours(line.tags)
    return named or "starling" in line.resource.lower()


def _metered_days(project_id: int, days: set[date]) -> set[date]:
    """The days on which charges that are really paid were settled."""
    if not days:
        return set()
    begin = datetime.combine(min(days), time(), UTC)
    end = datetime.combine(max(days), time(), UTC) + timedelta(days=1)
    real = {"account__job__simulated": False, "account__job__emulated": False}
    charges = Charge.objects.filter(account__job__project_id=project_id, state=ChargeState.SETTLED, **real)
    paid = charges.filter(resolved_at__gte=begin, resolved_at__lt=end, settled_picodollars__gt=0)
    return set(paid.values_list(TruncDate("resolved_at", tzinfo=UTC), flat=True).distinct().order_by())
