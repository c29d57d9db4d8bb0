"""`python -m tests.webapp.victim`: runs jobs in processes of their own that are killed where they are told to be.

Each line of input is a JSON document; a fork of this process, which has imported everything already, takes the job's
lease, holds what the job wants in its account, makes some calls and gives everything back, as a job's process does.
The line that comes back says how it ended: 0, or minus the number of the signal.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

_COMES_WITHIN_S = 20.0


class NoLearner:
    """No call of a learner is sent here, so none is made."""

    def __init__(self, deliver: object) -> None: ...

    def submit(self, call: object, weights: bytes | None, limit_s: float) -> None:
        raise AssertionError("there is no learner here")

    def cancel(self, call_id: str) -> None: ...

    def seconds_to_limit(self) -> float:
        return float("inf")

    def enforce_limit(self) -> None: ...

    def close(self) -> None: ...


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _ledger(account_id: int, epoch: int, killed_at: str) -> Any:
    from webapp.jobs import failpoints
    from webapp.money.ledger import DatabaseLedger

    class Ledger(DatabaseLedger):
        """Dies before or after it has settled, when it is told to."""

        def settle(self, batch: Sequence[Any]) -> None:
            if batch and killed_at == "before_settle":
                _die()
            super().settle(batch)
            if batch and killed_at == "after_settle":
                _die()

    return Ledger(account_id, epoch, after_reserve=lambda: failpoints.reach("after_reserve"))


def _opened(options: Any, connection: Any, holder: Any) -> Any:
    from cloud.platforms.aws_lambda import LambdaPlatform
    from cloud.platforms.azure_container import AzureContainerPlatform
    from cloud.platforms.pulled import ReachableMailbox
    from tests.cloud.memory_mailbox import MemoryMailbox

    if options.kind == "aws_lambda":
        return LambdaPlatform(options, connection.open(), holder=holder, learner=NoLearner)
    # The groups here have no processes, so no one will ever call at that address.
    mailbox = MemoryMailbox()
    reached = ReachableMailbox(mailbox, "http://127.0.0.1:9", mailbox.new_token)
    return AzureContainerPlatform(options, connection, reached, holder, learner=NoLearner)


def _run(orders: dict[str, Any]) -> None:
    from django.conf import settings

    from cloud.accounts.register import Holder
    from cloud.money.billing.price_book import PriceBook
    from cloud.money.metering import MeteredPlatform
    from tests.cloud import calls
    from tests.webapp.held import run_of
    from webapp.connections import decrypt
    from webapp.jobs.models import Job
    from webapp.jobs.reasons import Reason
    from webapp.jobs.running.recovery import run_ended
    from webapp.resources.register import DatabaseRegister

    settings.FAILPOINTS = orders["failpoints"]
    if orders["killed_after_s"] is not None:
        threading.Timer(orders["killed_after_s"], _die).start()
    job = Job.objects.select_related("account").get(pk=orders["job"])
    epoch = run_of(job)
    spec = job.parsed_spec()
    options, memory_mb = spec.platform, spec.training.rollout.memory_mb
    there = options.connection
    holder = Holder(DatabaseRegister(there, job.pk, epoch), there, job.pk, epoch, job.project.slug)
    connection = decrypt.open_connection(job.project_id, there)
    platform = MeteredPlatform(
        _opened(options, connection, holder),
        _ledger(job.account.pk, epoch, orders["killed_at"]),
        options.tariff(PriceBook.load(), memory_mb),
    )
    weights = platform.publish(0, calls.weights())
    for number in range(orders["calls"]):
        name = f"{job.pk}-e{epoch}-c{number}"
        platform.submit(calls.rollout(name, weights, deadline_s=10.0, memory_mb=memory_mb))
    heard, end_s = 0, time.monotonic() + orders["seconds"]
    while (heard < orders["calls"] and time.monotonic() < end_s) or _is_still_coming(job, end_s):
        if heard < orders["calls"]:
            heard += platform.next(0.1) is not None
        else:
            time.sleep(0.02)
    platform.close()
    run_ended(job_id=job.pk, epoch=epoch, why=Reason.WORKER_STOPPED.change())


def _is_still_coming(job: Any, end_s: float) -> bool:
    """Whether something was asked for that does not stand yet: to be killed before it does proves little."""
    return time.monotonic() < end_s + _COMES_WITHIN_S and job.holdings.filter(state="intended").exists()


def _forked(orders: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        _run(orders)
        code = 0
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    import django

    django.setup()
    import boto3  # noqa: F401 - what is imported here need not be in each fork

    from cloud.money import metering  # noqa: F401
    from cloud.platforms import aws_lambda, azure_container  # noqa: F401
    from tests.cloud import calls
    from webapp.jobs.running import runner  # noqa: F401

    calls.weights()
    print("ready", flush=True)
    for line in sys.stdin:
        print(_forked(json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
