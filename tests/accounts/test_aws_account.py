"""AWS Lambda from the set-up to the last line of its log: each test settles a row of docs/clouds.md."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from cloud.accounts.check_clients import aws_clients
from cloud.accounts.checks import Findings
from cloud.accounts.connections import AwsConnection, AwsRole
from cloud.accounts.provision.aws import set_up
from cloud.accounts.provision.aws_inventory import Owner, described
from cloud.accounts.provision.aws_removal import remove
from cloud.accounts.provision.steps import SetUpStep
from cloud.actor import bundle
from cloud.money.billing.price_book import PriceBook
from cloud.money.ledger import MemoryLedger
from cloud.money.metering import MeteredPlatform
from cloud.platforms.aws import log as aws_log
from cloud.platforms.aws.checks import AwsQuestion, check_aws
from cloud.platforms.aws.functions import function_name
from cloud.platforms.aws_lambda import LambdaOptions
from tests.accounts.named_aws import named_connection
from tests.cloud import calls
from tests.cloud.aws import lambdas
from training.engine.messages import Outcome

_LIMIT_PICODOLLARS = 5 * 10**10
_MEMORY_MB = 512
_CALLS = 4
_LOG_PATIENCE_S = 120.0
OWNER = Owner("https://tests.starling.invalid", "con_contract0", "contract-tests")


@dataclass(frozen=True)
class Trial:
    """An account with the actor set up in it, and a few calls that ran there."""

    connection: AwsConnection
    steps: tuple[SetUpStep, ...]
    again: tuple[SetUpStep, ...]
    outcomes: dict[str, Outcome]
    began_unix_s: float


@contextmanager
def _account() -> Iterator[tuple[AwsConnection, Any]]:
    """The account that the environment names, with the real package; an emulated one where it names none."""
    named = named_connection()
    if named is None:
        with lambdas.account() as (_, demo):
            yield demo.by_role, lambdas.thin
        return
    yield named, bundle.light


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    with _account() as (connection, packed):
        clients = connection.open()
        began_unix_s = time.time() - 60.0
        steps = tuple(set_up(clients, OWNER, [_MEMORY_MB], packed))
        try:
            again = tuple(set_up(clients, OWNER, [_MEMORY_MB], packed))
            yield Trial(connection, steps, again, _calls(connection), began_unix_s)
        finally:
            gone = list(remove(clients, OWNER, [_MEMORY_MB]))
        wrong = [step for step in gone if step.state == "missing"]
        assert not wrong, f"something of ours may be left in the account: {wrong}"
        assert described(clients.client("lambda"), function_name(connection.prefix, _MEMORY_MB)) is None


def _calls(connection: AwsConnection) -> dict[str, Outcome]:
    """A few rollouts, one after the other and side by side, within five cents."""
    options = LambdaOptions(region=connection.region)
    ledger = MemoryLedger(_LIMIT_PICODOLLARS)
    tariff = options.tariff(PriceBook.load(), _MEMORY_MB)
    platform = MeteredPlatform(options.open(connection), ledger, tariff)
    stamp = int(time.time())
    outcomes: dict[str, Outcome] = {}
    try:
        ref = platform.publish(0, calls.weights())
        for wave in ([0], [1], range(2, _CALLS)):
            for slot in wave:
                name = f"contract-{stamp}-{slot}-a1"
                platform.submit(calls.rollout(name, ref, slot=slot, memory_mb=_MEMORY_MB))
            while (outcome := platform.next(120.0)) is not None:
                outcomes[outcome.call_id] = outcome
    finally:
        platform.close()
    return outcomes


def test_the_policies_that_are_shown_are_enough(trial: Trial) -> None:
    connection = trial.connection
    access = connection.access
    question = AwsQuestion(connection.region, prefix=connection.prefix)
    if isinstance(access, AwsRole):
        question = AwsQuestion(connection.region, access.role_arn, access.external_id, connection.prefix)
    findings = Findings(connection.region)
    check_aws(aws_clients(connection), question, findings)
    report = findings.report()
    assert [check for check in report.checks if check.ok is False and not check.optional] == []
    assert report.account


def test_a_set_up_can_be_repeated_and_then_changes_nothing(trial: Trial) -> None:
    assert [step for step in trial.steps if step.state == "missing"] == []
    assert {step.state for step in trial.again} == {"done"}


def test_the_package_runs_there_and_every_call_comes_back(trial: Trial) -> None:
    assert [outcome.reason for outcome in trial.outcomes.values() if outcome.status != "done"] == []
    assert len(trial.outcomes) == _CALLS
    starts = [outcome.usage.cold_start for outcome in trial.outcomes.values()]
    assert starts[0]
    assert not starts[1]


def test_the_report_line_is_read(trial: Trial) -> None:
    """Otherwise calls are booked at their reservation."""
    for outcome in trial.outcomes.values():
        assert outcome.usage.billed_s is not None
        assert outcome.usage.memory_mb == _MEMORY_MB
        assert 0.0 < outcome.usage.billed_s < 60.0
        assert 0 < (outcome.cost_picodollars or 0) < _LIMIT_PICODOLLARS


def test_each_call_ran_once_and_the_log_says_the_same_as_its_answer(trial: Trial) -> None:
    log = trial.connection.open().client("logs")
    function = function_name(trial.connection.prefix, _MEMORY_MB)
    end_s = time.monotonic() + _LOG_PATIENCE_S
    while True:
        reported = aws_log.reports_of(log, function, list(trial.outcomes), trial.began_unix_s)
        if set(reported) == set(trial.outcomes) or time.monotonic() > end_s:
            break
        time.sleep(5.0)
    assert {call: len(executions) for call, executions in reported.items()} == dict.fromkeys(
        trial.outcomes, 1
    )
    for call, (execution,) in reported.items():
        assert execution.billed_s == trial.outcomes[call].usage.billed_s
