"""Costs of a month, files on their way, schedules and a cloud's bill, for looking at the pages of reports."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import price_line
from tests.journeys.scenes import USD, put, spend, submitted
from webapp.accounts.models import Project, User
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import Observed
from webapp.jobs.models import Job, Tag
from webapp.money.models import Charge, ChargeState
from webapp.reports import schedules
from webapp.reports.models import (
    BilledLine,
    BilledPeriod,
    CloudBill,
    FileState,
    MatchedBy,
    ReportFile,
    Sending,
)

_DAYS = 24
_SERVICE = "AWS Lambda"


def month_of_costs(project: Project, user: User) -> None:
    """Two jobs that went on for weeks, on Lambda and on the simulated cloud, and what was made of their costs."""
    real = _long_job(project, user, "Hopper, weeks on Lambda")
    as_on_lambda(real)
    for name in ("paper", "baseline"):
        tag, _ = Tag.objects.get_or_create(project=project, name=name)
        real.tags.add(tag)
    charged = _booked(real, rented=False)
    _booked(_long_job(project, user, "Hopper, weeks of rehearsal"), rented=True)
    _files(project, user)
    _plans(project, user)
    _bill(project, user, charged)


def as_on_lambda(job: Job) -> None:
    """Makes a simulated job look as if it had run on Lambda for real."""
    spec = {**job.spec, "platform": {"kind": "aws_lambda", "connection": "", "region": "us-east-1"}}
    Job.objects.filter(pk=job.pk).update(spec=spec, simulated=False)
    job.refresh_from_db()


def _long_job(project: Project, user: User, name: str) -> Job:
    job = submitted(project, user, "hopper-simulated", name, "60.00")
    figures = {"round_no": 977, "total_progress": 2_000_000, "actors": 8, "training_score": 2_204.5}
    return put(job, Observed.SUCCEEDED, "Reached 2,000,000 steps.", minutes=_DAYS * 24 * 60, **figures)


def _booked(job: Job, *, rented: bool) -> list[Charge]:
    """The job's charges, and its account as they leave it."""
    charges = Charge.objects.bulk_create(_charges(job, rented))
    spend(job, sum(charge.settled_picodollars or 0 for charge in charges) / USD)
    return charges


def _charges(job: Job, rented: bool) -> list[Charge]:
    book, noise = PriceBook.load(), random.Random(job.name)
    duration, fee, host = book.row("lambda.duration.x86"), book.row("lambda.request"), book.row("c5.4xlarge")
    made = []
    for number in range(_DAYS * 12):
        at = SYSTEM_CLOCK.now() - timedelta(days=_DAYS - number / 12)
        if noise.random() < 0.25:
            continue
        lines = (price_line(duration, noise.randrange(10**6, 9 * 10**6), 1000), price_line(fee, 40))
        lines = (
            (price_line(host, noise.randrange(200, 900), 36_000),) if rented and number % 9 == 0 else lines
        )
        amount = sum(line.picodollars for line in lines)
        unmetered = number % 40 == 1
        made.append(
            Charge(
                account=job.account,
                epoch=90,
                name=f"report-{number}",
                round_no=number,
                kind="rollout",
                state=ChargeState.SETTLED,
                basis="assumed" if unmetered else "metered",
                reserved_picodollars=amount,
                settled_picodollars=amount,
                lines=[] if unmetered else [vars(line) for line in lines],
                opened_at=at,
                resolved_at=at,
            )
        )
    return made


def _files(project: Project, user: User) -> None:
    now = SYSTEM_CLOCK.now()
    question: dict[str, Any] = {"project": project.pk, "by": "call", "prices": "actual"}
    question |= {"first_day": str((now - timedelta(days=30)).date()), "last_day": str(now.date())}
    shared = {"project": project, "question": question, "requested_by": user, "since": now}
    rows = (
        {
            "format": "xlsx",
            "state": FileState.READY,
            "byte_count": 6_560_673,
            "rows_of": 100_000,
            "file": "1.xlsx",
        },
        {"format": "focus", "state": FileState.BUILDING, "rows_done": 60_000, "rows_of": 100_000},
        {"format": "json", "state": FileState.QUEUED, "rows_of": 100_000},
    )
    for number, row in enumerate(rows):
        requested_at = now - timedelta(minutes=30 // (number + 1))
        ReportFile.objects.create(
            **shared, **row, requested_at=requested_at, expires_at=now + timedelta(days=7)
        )


def _plans(project: Project, user: User) -> None:
    made = schedules.add_schedule(
        project=project,
        user=user,
        every="week",
        by="job",
        prices="actual",
        formats=["pdf", "csv"],
        recipients=[user],
    )
    now = SYSTEM_CLOCK.now()
    week = schedules.period_before(made, now.date())
    Sending.objects.create(
        schedule=made, first_day=week.first_day, last_day=week.last_day, state="sent", since=now
    )


def _bill(project: Project, user: User, charges: list[Charge]) -> None:
    """A bill of all but the last two days, a fifth lower than what was metered: far enough to be warned of."""
    now = SYSTEM_CLOCK.now()
    bill = CloudBill.objects.create(
        project=project,
        sha256="0" * 64,
        name="november-cur.csv.gz",
        layout="aws-cur",
        state=FileState.READY,
        row_count=4_812,
        kept_count=1_204,
        imported_by=user,
        since=now,
    )
    period = BilledPeriod.objects.create(
        bill=bill,
        provider="AWS",
        account="123456789012",
        first_day=now.date().replace(day=1),
        used_from=now.date() - timedelta(days=30),
        used_until=now.date() - timedelta(days=2),
        line_count=1_204,
        picodollars=3_100_000_000_000,
    )
    before = CloudBill.objects.create(
        project=project, sha256="1" * 64, name="november-cur-before.csv.gz", layout="aws-cur", state=FileState.READY,
        row_count=4_700, kept_count=1_150, imported_by=user, since=now - timedelta(days=1),
    )  # fmt: skip
    BilledPeriod.objects.create(
        bill=before,
        provider=period.provider,
        account=period.account,
        first_day=period.first_day,
        used_from=period.used_from,
        used_until=now.date() - timedelta(days=3),
        line_count=1_150,
        picodollars=3_000_000_000_000,
        replaced_by=bill,
    )
    for number, charge in enumerate(charges):
        if charge.resolved_at is None or charge.resolved_at > now - timedelta(days=2):
            continue
        BilledLine.objects.create(
            period=period,
            project=project,
            day=charge.resolved_at.date(),
            provider="AWS",
            service=_SERVICE,
            matched_by=MatchedBy.NOTHING if number % 60 == 7 else MatchedBy.OURS,
            picodollars=int((charge.settled_picodollars or 0) * 0.8),
        )
