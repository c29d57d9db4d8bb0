"""Tests of connections: a page requests one, the worker runs it and stores its report. Pages never wait for a cloud."""

from __future__ import annotations

import threading
from typing import Any

from django.db import transaction
from django.db.models import F
from django.views.decorators.debug import sensitive_variables

from cloud.accounts import checks
from cloud.accounts.check_clients import aws_clients, azure_clients
from cloud.accounts.checks import AccountCheck, Findings
from cloud.platforms.aws.checks import AwsQuestion, check_aws
from cloud.platforms.azure.checks import AzureQuestion, check_azure
from webapp.celery import send_hint
from webapp.clock import SYSTEM_CLOCK, Clock
from webapp.connections import decrypt, queries
from webapp.connections.models import SECRET_FIELDS, CheckState, Connection, ConnectionKind
from webapp.connections.sealing import Secret
from webapp.connections.services import ConnectionRefused

LIMIT_S = 45.0
_AT_ONCE = 4
_PATIENCE_S = 20.0
# A worker's threads are for jobs: clouds that answer slowly must not take them all.
_worker_threads = threading.BoundedSemaphore(_AT_ONCE)


@transaction.atomic
def request_test(*, connection: Connection, clock: Clock = SYSTEM_CLOCK) -> Connection:
    """Request a test, which replaces an earlier request. ConnectionRefused without an identity."""
    if not connection.has_identity:
        raise ConnectionRefused("There is nothing to test yet: finish the earlier steps first.")
    Connection.objects.filter(pk=connection.pk).update(
        test_state=CheckState.REQUESTED, test_no=F("test_no") + 1, test_since=clock.now()
    )
    connection.refresh_from_db()
    number = connection.test_no
    task = "webapp.connections.tasks.test_connection"
    transaction.on_commit(lambda: send_hint(task, connection.pk, number), robust=True)
    return connection


def run_test(connection_id: str, number: int, *, clock: Clock = SYSTEM_CLOCK) -> None:
    """Run the test of that number. Does nothing if a newer one replaced it or if it is running already."""
    if not _worker_threads.acquire(timeout=_PATIENCE_S):
        return
    try:
        row = Connection.objects.filter(pk=connection_id, test_no=number)
        running = row.filter(test_state=CheckState.REQUESTED)
        if not running.update(test_state=CheckState.RUNNING, test_since=clock.now()):
            return
        report = report_on(row.get())
        learned = {"account_id": report["account"]} if report["account"] else {}
        row.filter(test_state=CheckState.RUNNING).update(
            test_state=CheckState.DONE, test_since=clock.now(), test_report=report, **learned
        )
    finally:
        _worker_threads.release()


@sensitive_variables()
def report_on(connection: Connection) -> dict[str, Any]:
    """The cloud's report as the row stores it, without secrets. Never raises."""
    secrets: list[Secret] = []
    try:
        decrypt.require_usable(connection)
        secrets = [decrypt.secret(connection, field) for field in SECRET_FIELDS[connection.kind]]
    except decrypt.CannotOpen as error:
        findings = Findings(connection.region)
        findings.found(AccountCheck("The stored credentials can be opened", False, str(error)))
        return findings.report().as_dict()
    report = checks.within(LIMIT_S, connection.region, lambda findings: _run_checks(connection, findings))
    return checks.scrubbed(report.as_dict(), [secret.reveal() for secret in secrets])


@sensitive_variables()
def _run_checks(connection: Connection, findings: Findings) -> None:
    if connection.kind == ConnectionKind.AZURE_PRINCIPAL:
        clients = azure_clients(decrypt.azure_connection(connection))
        check_azure(clients, _azure_question(connection), findings)
        return
    opened, made = decrypt.aws_connection(connection), queries.set_up_of(connection)
    question = AwsQuestion(
        connection.region,
        connection.role_arn,
        connection.external_id,
        connection.prefix,
        made.ready_mb if made else (),
        opened.bucket,
    )
    check_aws(aws_clients(opened), question, findings)


def _azure_question(connection: Connection) -> AzureQuestion:
    return AzureQuestion(
        region=connection.region,
        subscription_id=connection.subscription_id,
        resource_group=connection.resource_group,
        tenant_id=connection.tenant_id,
        client_id=connection.client_id,
    )
