"""Lambda's own ways: lost replies, throttling, rights, limits, memory, weights by address, what is kept ready."""

from __future__ import annotations

import base64
import os
import signal
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cloud.accounts.connections import AwsConnection
from cloud.money.billing.price_book import PriceBook
from cloud.platforms.aws.concurrency_limit import AccountLimits, ConcurrencyLimit
from cloud.platforms.aws.functions import deploy, function_name, remove
from cloud.platforms.aws.request_body import Pieces
from cloud.platforms.aws_lambda import LambdaOptions, LambdaPlatform
from emulator.faults import AwsFault
from rig.servers import wait_until
from tests.cloud import calls
from tests.cloud.aws import lambdas
from tests.cloud.aws.code import zipped
from tests.cloud.emulated_bills import executions
from tests.cloud.test_platform_contract import gather
from training.engine.messages import Outcome

NAME = function_name("starling", lambdas.MEMORY_MB)


def test_a_body_in_pieces_reads_like_one() -> None:
    whole = b"".join(pieces := [b"abc", b"", b"defgh", b"i"])
    body = Pieces(pieces)
    assert (len(body), body.read(), body.read()) == (9, whole, b"")
    for size in (1, 2, 3, 4, 100):
        assert body.seek(0) == 0
        assert b"".join(iter(lambda size=size: body.read(size), b"")) == whole  # type: ignore[misc]
    assert body.seek(0, 2) == 9
    body.seek(4)
    assert body.read(2) == b"ef"


def _one(platform: LambdaPlatform, name: str = "c", **changes: Any) -> Outcome:
    platform.submit(calls.rollout(name, platform.publish(0, calls.weights()), **changes))
    return gather(platform, 1)[name]


def test_usage_is_what_the_provider_bills() -> None:
    with lambdas.opened() as (platform, aws):
        first, second = _one(platform, "a"), _one(platform, "b")
        billed = [one.billed_ms / 1000 for one in aws.meter.invocations]
        assert [first.usage.billed_s, second.usage.billed_s] == billed
        assert (first.usage.cold_start, second.usage.cold_start) == (True, False)
        assert first.usage.startup_s > second.usage.startup_s
        assert executions(aws.meter) == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    ("kind", "executed", "billed_s"),
    [
        ("lost_reply", 1, None),
        ("error_after", 1, None),
        ("service_error", 0, None),
        ("lost_request", 0, None),
    ],
)
def test_what_may_have_run_is_not_sent_again_and_its_price_is_unknown(
    kind: AwsFault, executed: int, billed_s: float | None
) -> None:
    with lambdas.opened() as (platform, aws):
        aws.faults.order(kind)
        outcome = _one(platform)
        assert (outcome.status, outcome.reason_code) == ("failed", "function_failed")
        assert "may have run" in outcome.reason
        assert outcome.usage.billed_s == billed_s
        assert executions(aws.meter).get("c", 0) == executed
        assert _one(platform, "after").status == "done"


def test_what_was_throttled_is_sent_again_and_runs_once() -> None:
    with lambdas.opened(at_once=3) as (platform, aws):
        aws.faults.order("throttle", 5)
        ref = platform.publish(0, calls.weights())
        for number in range(6):
            platform.submit(calls.rollout(f"c{number}", ref, slot=number))
        outcomes = gather(platform, 6)
        assert {one.status for one in outcomes.values()} == {"done"}
        assert set(executions(aws.meter).values()) == {1}
        assert aws.meter.refused["throttle"] == 5


def test_a_new_accounts_ten_are_respected() -> None:
    with lambdas.opened(at_once=10) as (platform, aws):
        assert platform.limits == AccountLimits(10, 10)
        aws.account.concurrency = 1
        ref = platform.publish(0, calls.weights())
        for number in range(6):
            platform.submit(calls.rollout(f"c{number}", ref, slot=number))
        assert {one.status for one in gather(platform, 6).values()} == {"done"}
        assert platform.at_once <= 10


def test_the_limit_halves_when_it_is_reported_to_and_opens_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "cloud.platforms.aws.concurrency_limit.time", SimpleNamespace(monotonic=lambda: 1000.0)
    )
    gate = ConcurrencyLimit(8)
    assert gate.enter()
    gate.leave(throttled=True)
    assert gate.allowed == 4
    assert gate.enter()
    gate.leave(throttled=True)
    assert gate.allowed == 4, "a storm of refusals at one moment counts once"
    for _ in range(9):
        assert gate.enter()
        gate.leave(throttled=False)
    assert gate.allowed == 8
    gate.close()
    assert not gate.enter()


def test_the_sdk_asks_once_and_waits_longer_than_the_function_may_take() -> None:
    with lambdas.opened() as (platform, _):
        config = platform._client.meta.config
        assert config.retries["total_max_attempts"] == 1
        assert config.read_timeout > 120
        assert config.max_pool_connections >= platform.limits.concurrent


@pytest.mark.parametrize("code", ["credentials", "function_missing", "bundle"])
def test_a_connection_that_does_not_work_is_an_outcome(code: str) -> None:
    with lambdas.opened() as (platform, aws):
        if code == "credentials":
            aws.account.expire_sessions()
        elif code == "function_missing":
            aws.inside(lambda: setattr(aws.functions.get(NAME), "gone_s", 0.0))
        else:
            latest = aws.functions.get(NAME).latest
            aws.functions.get(NAME).latest = replace(latest, handler="cloud.actor.nothing.handler")
        outcome = _one(platform)
        assert (outcome.status, outcome.reason_code) == ("failed", code)
        assert outcome.usage.billed_s is not None


def test_the_deadline_is_enforced_where_the_call_runs() -> None:
    with lambdas.opened() as (platform, aws):
        outcome = _one(platform, steps=1_000_000, deadline_s=1.0)
        assert (outcome.status, outcome.reason_code) == ("failed", "deadline")
        (billed,) = aws.meter.invocations
        assert outcome.usage.billed_s == billed.billed_ms / 1000
        assert 1.0 <= (billed.billed_ms - billed.init_ms) / 1000 < 20.0, "the steps take longer"


def test_on_a_slower_function_the_deadline_is_that_of_its_clock() -> None:
    """Half a core reports and is billed twice the time, and no bill is above the worst case."""
    with lambdas.opened(memory_mb=884) as (platform, aws):
        outcome = _one(platform, steps=1_000_000, deadline_s=2.0, memory_mb=884)
        assert (outcome.status, outcome.reason_code) == ("failed", "deadline"), outcome.reason
        (billed,) = aws.meter.invocations
        assert outcome.usage.billed_s == billed.billed_ms / 1000
        assert 4.0 <= (billed.billed_ms - billed.init_ms) / 1000 < 4.5


def test_a_call_that_arrives_too_late_is_not_run() -> None:
    with lambdas.opened() as (platform, aws):
        platform._invoker._start_cap_s = 0.5
        aws.faults.slow_start_s = 1.0
        aws.faults.order("slow_start")
        outcome = _one(platform)
        assert (outcome.status, outcome.reason_code) == ("failed", "expired")
        assert outcome.usage.billed_s is not None
        assert outcome.usage.steps == 0


def test_a_function_that_is_killed_says_for_what() -> None:
    with lambdas.opened() as (platform, aws):
        aws.faults.order("crash")
        outcome = _one(platform, steps=50_000)
        assert (outcome.status, outcome.reason_code) == ("failed", "function_failed")
        assert "1769 MB" in outcome.reason
        assert outcome.usage.billed_s is not None


_HOSTILE = """
import base64, json
answers = iter({answers!r})
def handler(event, context):
    return next(answers)
"""


def test_answers_that_are_not_ours_are_refused_and_the_job_goes_on() -> None:
    """The owner of the account can run any code under the function's name."""
    odd = ["no json of ours", {"call": "c", "body": "!"}, {"call": "c", "body": ""}, {"call": "c"}, None]
    with lambdas.opened(at_once=1) as (platform, aws):
        function = aws.functions.get(NAME)
        good = function.latest
        code = {"ZipFile": base64.b64encode(zipped(_HOSTILE.format(answers=odd))).decode()}
        function.latest = replace(aws.functions.coded(good, code), handler="main.handler")
        for number in range(len(odd)):
            outcome = _one(platform, f"c{number}")
            assert outcome.status == "failed"
            assert outcome.reason_code.startswith("refused_"), outcome
            assert outcome.usage.billed_s is not None
        function.latest = good
        assert _one(platform, "after").status == "done"


def test_large_weights_go_by_an_address_and_are_read_once_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.platforms.aws.weights.AwsWeights.__init__.__defaults__", (100,))
    with lambdas.opened(at_once=1) as (platform, aws):
        for name in "abc":
            outcome = _one(platform, name)
            assert outcome.status == "done", outcome.reason
        assert aws.storage.reads == 1
        (bucket,) = aws.storage.buckets.values()
        assert len(bucket) == 1
        platform.close()
        assert bucket == {}


def test_a_call_larger_than_a_function_takes_says_what_to_do() -> None:
    def without_bucket(connection: AwsConnection) -> AwsConnection:
        return replace(connection, bucket=None)

    with lambdas.opened(connection=without_bucket) as (platform, aws):
        ref = platform.publish(0, os.urandom(6 * 2**20))
        platform.submit(calls.rollout("c", ref))
        outcome = gather(platform, 1)["c"]
        assert outcome.reason_code == "request_too_large"
        assert "bucket" in outcome.reason
        assert outcome.usage.billed_s == 0.0
        assert aws.meter.invocations == []


def test_cancelled_calls_cost_what_they_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.platforms.aws_lambda._CANCEL_PATIENCE_S", 120.0)
    with lambdas.opened(at_once=1) as (platform, aws):
        ref = platform.publish(0, calls.weights())
        platform.submit(calls.rollout("runs", ref, steps=10_000_000))
        platform.submit(calls.rollout("waits", ref))
        wait_until(aws.environments.busy_pids, within_s=60.0, what="the first runs")
        platform.cancel("runs")
        platform.cancel("waits")
        # Long before its deadline, so that it is certain to have run until here.
        for pid in aws.environments.busy_pids():
            os.kill(pid, signal.SIGKILL)
        outcomes = gather(platform, 2)
        assert {one.status for one in outcomes.values()} == {"cancelled"}
        assert outcomes["waits"].usage.billed_s == 0.0
        billed_s = outcomes["runs"].usage.billed_s
        assert billed_s is not None
        assert billed_s * 1000 == aws.meter.invocations[0].billed_ms


def test_no_answer_is_awaited_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloud.platforms.aws_lambda._GIVE_UP_MARGIN_S", -34.0)
    with lambdas.opened() as (platform, aws):
        aws.faults.slow_start_s = 60.0
        aws.faults.order("slow_start")
        outcome = _one(platform, deadline_s=5.0)
        assert (outcome.status, outcome.usage.billed_s) == ("failed", None)
        assert "no answer came" in outcome.reason
        monkeypatch.undo()
        assert _one(platform, "after").status == "done"


def test_functions_kept_ready_serve_the_job_and_are_given_back() -> None:
    with lambdas.opened(at_once=102, provisioned=1) as (platform, aws):
        first = _one(platform, "first")
        assert first.status == "done"
        end_s = time.monotonic() + 60
        number = 0
        while not _one(platform, f"c{number}").usage.provisioned:
            assert time.monotonic() < end_s
            number += 1
        assert aws.meter.invocations[-1].provisioned
        platform.close()
        assert [span.to_s is not None for span in aws.meter.provisioned] == [True]
    tariff = LambdaOptions(provisioned=1).tariff(PriceBook.load(), 1769)
    assert [one.resource for one in tariff.rents] == ["provisioned"]


def test_setting_up_twice_changes_nothing_and_removing_takes_all_away() -> None:
    with lambdas.account() as (aws, demo):
        lambdas.set_up(demo)
        revision = aws.functions.get(NAME).latest.revision
        lambdas.set_up(demo)
        assert aws.functions.get(NAME).latest.revision == revision
        assert aws.logs.groups[f"/aws/lambda/{NAME}"].retention_days == 7
        clients = demo.by_role.open()
        changed = replace(lambdas.thin(), python="3.12")
        deploy(clients.client("lambda"), NAME, changed, demo.actor_role, lambdas.MEMORY_MB)
        assert aws.functions.get(NAME).latest.runtime == "python3.12"
        for _ in range(2):
            remove(clients.client("lambda"), NAME, clients.client("logs"))
        assert aws.functions.alive() == []
        assert aws.logs.groups == {}
