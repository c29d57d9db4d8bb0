"""Makes calls, then every kind of report of them; prints the figures as JSON: `python -m benchmarks.reporting N`."""

# ruff: noqa: E402 - Django is set up before models are imported

from __future__ import annotations

import csv
import json
import os
import sys
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from benchmarks.reporting.uvicorn_process import serving
from cloud.money.billing.price_book import PriceBook
from cloud.money.pricing import price_line
from webapp.accounts import services as accounts
from webapp.accounts.models import Project, User
from webapp.jobs.form.presets import presets
from webapp.jobs.models import Job
from webapp.jobs.services import submit_job
from webapp.money.amounts import exact_usd
from webapp.money.models import Charge
from webapp.reports.files import formats
from webapp.reports.report_query import Question
from webapp.reports.table import Costs

_FIRST_AT = datetime(2026, 11, 1, tzinfo=UTC)
_JOBS = 10


def _populated(calls: int) -> tuple[Any, Any, int]:
    """A project with jobs, its owner, and what all its calls came to."""
    person = accounts.create_person("bench@example.org", "correct horse battery")
    project = accounts.ensure_personal_project(person)
    spec = presets()["hopper-simulated"].spec
    jobs: list[Job] = [submit_job(project=project, user=person, spec=spec) for _ in range(_JOBS)]
    rows = list(_charges(jobs, calls))
    Charge.objects.bulk_create(rows, batch_size=2000)
    return project, person, sum(row.settled_picodollars or 0 for row in rows)


def _charges(jobs: list[Job], calls: int) -> Iterator[Charge]:
    book = PriceBook.load()
    duration, fee = book.row("lambda.duration.x86"), book.row("lambda.request")
    for number in range(calls):
        lines = (price_line(duration, 700 + number * 37 % 9001, 1000), price_line(fee, 1))
        amount = sum(line.picodollars for line in lines)
        at = _FIRST_AT + timedelta(days=29) * number / calls
        yield Charge(
            account=jobs[number % _JOBS].account,
            epoch=1,
            name=f"r{number // 8}-s{number % 8}-a1",
            round_no=number // 8,
            kind="rollout",
            state="settled",
            basis="metered",
            reserved_picodollars=amount,
            settled_picodollars=amount,
            lines=[vars(line) for line in lines],
            opened_at=at,
            resolved_at=at,
        )


def _csv_by_http(project: Project, person: User, calls: int, exact: str) -> dict[str, float]:
    """As a browser takes it from a real server: until its first bytes, its rate, and the server's memory meanwhile."""
    client = Client()
    client.force_login(person)
    cookie = f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
    address = reverse("reports:file", args=[project.slug])
    query = "?format=csv&from=2026-11-01&to=2026-11-30&prices=simulated&by="
    connection.close()
    page = reverse("reports:page", args=[project.slug])
    with serving() as server:
        server.get(f"{address}{query}day", cookie)  # everything is imported
        before_mb = server.memory_mb()
        began_s = time.perf_counter()
        first_s, text, most_mb = server.streamed(f"{address}{query}call", cookie)
        took_s = time.perf_counter() - began_s
        page_s = _timed(lambda: server.get(f"{page}{query}day", cookie))
    lines = text.splitlines()
    assert len(lines) == calls + 2, f"{len(lines)} lines"
    return {
        "csv_first_s": first_s,
        "csv_rows_a_s": calls / took_s,
        "csv_more_mb": max(0.0, most_mb - before_mb),
        "page_s": page_s,
        "csv_equal": float(lines[-1].split(",")[12] == exact),
    }


def _timed(act: Any) -> float:
    began_s = time.perf_counter()
    act()
    return time.perf_counter() - began_s


def _files(project: Project, folder: Path, exact: str) -> Iterator[tuple[str, float]]:
    question = Question(
        project=project.pk, first_day="2026-11-01", last_day="2026-11-30", prices="simulated", by="call"
    )
    now = datetime.now(UTC)
    for key, one in formats.FORMATS.items():
        path = folder / f"report{one.suffix}"
        whose = f"project {project.name}"
        yield f"{key}_s", _timed(lambda: formats.make(question, key, path, whose=whose, made_at=now))  # noqa: B023
    with (folder / "report.focus-1.2.csv").open(newline="") as file:
        focus = sum((Decimal(row["BilledCost"]) for row in csv.DictReader(file)), Decimal(0))
    reported = json.loads((folder / "report.json").read_text())["total"]["cost_usd"]
    page = exact_usd(Costs(question).total)
    yield "files_equal", float(reported == page == exact and focus == Decimal(exact))


def main(calls: int) -> None:
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)  # pages name their files by content
    project, person, whole = _populated(calls)
    exact = exact_usd(whole)
    found = _csv_by_http(project, person, calls, exact)
    found |= dict(_files(project, Path(settings.STARLING_DATA), exact))
    found["equal"] = found["csv_equal"] * found["files_equal"]
    print(json.dumps(found))


if __name__ == "__main__":
    urllib.request.install_opener(urllib.request.build_opener(urllib.request.ProxyHandler({})))
    main(int(sys.argv[1]))
