"""Lambda's two planes, used by the real SDK; handlers run under AWS's own runtime client."""

from __future__ import annotations

import base64
import json
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from emulator.aws.demo import DemoAccount
from emulator.aws.server import AwsEmulator
from emulator.faults import AwsFault
from rig.servers import wait_until
from tests.cloud.aws.code import ALL_KINDS, WAITER, create, zipped

NAME = "starling-test"


@pytest.fixture
def client(demo: DemoAccount) -> Any:
    return demo.by_keys.open().client("lambda", tries=1, connections=20)


def _invoke(client: Any, event: dict[str, Any], name: str = NAME, **more: Any) -> tuple[Any, str, str]:
    """The answer, its error if any, and the log."""
    answer = client.invoke(FunctionName=name, Payload=json.dumps(event).encode(), LogType="Tail", **more)
    log = base64.b64decode(answer["LogResult"]).decode()
    return json.loads(answer["Payload"].read()), answer.get("FunctionError", ""), log


def _code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_a_function_runs_cold_then_warm(client: Any, demo: DemoAccount, aws: AwsEmulator) -> None:
    create(client, NAME, demo.actor_role, Timeout=120)
    client.get_waiter("function_active_v2").wait(FunctionName=NAME)
    said, error, log = _invoke(client, {"s": 0.05})
    assert (said["said"], error) == ({"s": 0.05}, "")
    assert 60_000 < said["left_ms"] <= 119_950, "two minutes, less what it slept"
    report = dict(re.findall(r"([A-Z][A-Za-z ]+): ([\d.]+) m?s?", log.splitlines()[-1]))
    assert float(report["Duration"]) >= 50
    assert float(report["Billed Duration"]) >= float(report["Duration"]) + float(report["Init Duration"]) - 1
    _, _, again = _invoke(client, {})
    assert "Init Duration" not in again
    assert [one.billed_ms > 0 for one in aws.meter.invocations] == [True, True]
    assert len(aws.environments.pids()) == 1


@pytest.mark.parametrize(
    ("what", "kind", "words"),
    [
        ("raise", "ValueError", "no such luck"),
        ("exit", "Runtime.ExitError", "exit status 7"),
        ("large", "Function.ResponseSizeTooLarge", "6291556"),
        ("memory", "Runtime.ExitError", "signal: killed"),
    ],
)
def test_what_goes_wrong_inside_is_a_function_error(
    what: str, kind: str, words: str, client: Any, demo: DemoAccount
) -> None:
    create(client, NAME, demo.actor_role, ALL_KINDS, MemorySize=256, Timeout=120)
    said, error, log = _invoke(client, {"do": what})
    assert error == "Unhandled"
    assert said["errorType"] == kind
    assert words in said["errorMessage"]
    assert "Billed Duration" in log
    assert _invoke(client, {"do": "print"})[1] == ""


def test_a_function_that_takes_too_long_is_ended(client: Any, demo: DemoAccount, aws: AwsEmulator) -> None:
    create(client, NAME, demo.actor_role, Timeout=1)
    said, error, _ = _invoke(client, {"s": 30})
    assert (said["errorType"], error) == ("Sandbox.Timedout", "Unhandled")
    assert "after 1.00 seconds" in said["errorMessage"]
    assert aws.meter.invocations[-1].billed_ms >= 1000
    assert aws.environments.pids() == []


def test_code_that_cannot_be_imported_says_so(client: Any, demo: DemoAccount) -> None:
    create(client, NAME, demo.actor_role, "import no_such_thing")
    said, error, _ = _invoke(client, {})
    assert error == "Unhandled"
    assert said["errorType"] == "Runtime.ImportModuleError"
    assert "no_such_thing" in said["errorMessage"]


def test_nothing_of_ours_is_in_the_functions_environment(client: Any, demo: DemoAccount) -> None:
    create(client, NAME, demo.actor_role, ALL_KINDS, Environment={"Variables": {"OMP_NUM_THREADS": "1"}})
    seen, _, log = _invoke(client, {"do": "environment"})
    assert seen["OMP_NUM_THREADS"] == "1"
    assert "VIRTUAL_ENV" not in seen
    assert not [name for name in seen if "SECRET" in name or "KEY" in name]
    assert "said aloud" in _invoke(client, {"do": "print"})[2]
    assert "said aloud" not in log


def test_less_memory_is_slower_as_reported_and_billed(
    client: Any, demo: DemoAccount, aws: AwsEmulator
) -> None:
    create(client, NAME, demo.actor_role, MemorySize=884)
    _invoke(client, {})
    began_s = time.monotonic()
    _invoke(client, {"s": 0.1})
    took_ms = 1000 * (time.monotonic() - began_s)
    # Twice as long on half a core: no less than twice what it slept, no more than twice what we waited.
    assert 200 <= aws.meter.invocations[-1].billed_ms <= took_ms * 1769 / 884 + 1


def test_as_many_at_once_as_the_account_may(
    client: Any, demo: DemoAccount, aws: AwsEmulator, tmp_path: Path
) -> None:
    aws.account.concurrency = 2
    create(client, NAME, demo.actor_role, WAITER, Timeout=120)
    event = {"until": str(tmp_path / "the third was refused")}
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda: answers.append(_invoke(client, event)[0])) for _ in range(2)]
    for thread in threads:
        thread.start()
    wait_until(lambda: aws.invocations.in_flight == 2, within_s=60, what="both run")
    with pytest.raises(ClientError) as error:
        _invoke(client, event)
    assert error.value.response["Reason"] == "ConcurrentInvocationLimitExceeded"
    Path(event["until"]).touch()
    for thread in threads:
        thread.join()
    assert answers == ["done", "done"]
    assert client.get_account_settings()["AccountLimit"]["ConcurrentExecutions"] == 2


def test_reserved_concurrency_has_its_own_reason(client: Any, demo: DemoAccount, aws: AwsEmulator) -> None:
    create(client, NAME, demo.actor_role)
    function = aws.functions.get(NAME)
    function.reserved = 0
    with pytest.raises(ClientError) as error:
        _invoke(client, {})
    assert error.value.response["Reason"] == "ReservedFunctionConcurrentInvocationLimitExceeded"


def test_a_request_may_have_six_megabytes(client: Any, demo: DemoAccount) -> None:
    create(client, NAME, demo.actor_role)
    with pytest.raises(ClientError) as error:
        client.invoke(FunctionName=NAME, Payload=b'"' + b"x" * 7_000_000 + b'"')
    assert _code(error) == "RequestTooLargeException"
    assert client.invoke(FunctionName=NAME, InvocationType="DryRun")["StatusCode"] == 204


def test_new_code_and_configuration_reach_the_next_call(client: Any, demo: DemoAccount) -> None:
    create(client, NAME, demo.actor_role)
    _invoke(client, {})
    client.update_function_code(FunctionName=NAME, ZipFile=zipped("def handler(e, c): return 'newer'"))
    client.get_waiter("function_updated_v2").wait(FunctionName=NAME)
    assert _invoke(client, {})[0] == "newer"
    client.update_function_configuration(FunctionName=NAME, MemorySize=3008)
    assert client.get_function_configuration(FunctionName=NAME)["MemorySize"] == 3008
    assert "Memory Size: 3008 MB" in _invoke(client, {})[2]


def test_provisioned_instances_are_ready_before_they_are_invoked(
    client: Any, demo: DemoAccount, aws: AwsEmulator
) -> None:
    create(client, NAME, demo.actor_role)
    version = client.publish_version(FunctionName=NAME)["Version"]
    where = {"FunctionName": NAME, "Qualifier": version}
    client.put_provisioned_concurrency_config(**where, ProvisionedConcurrentExecutions=1)
    deadline_s = time.monotonic() + 60
    while client.get_provisioned_concurrency_config(**where)["Status"] != "READY":
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    assert "Init Duration" not in _invoke(client, {}, Qualifier=version)[2]
    assert aws.meter.invocations[-1].provisioned
    client.delete_provisioned_concurrency_config(**where)
    assert aws.environments.pids() == []
    assert aws.meter.provisioned[0].to_s is not None
    with pytest.raises(ClientError) as error:
        client.get_provisioned_concurrency_config(**where)
    assert _code(error) == "ProvisionedConcurrencyConfigNotFoundException"


def test_tags_logs_and_deletion(client: Any, demo: DemoAccount, aws: AwsEmulator) -> None:
    arn = create(client, NAME, demo.actor_role, Tags={"app": "starling", "run": "r1"})["FunctionArn"]
    client.tag_resource(Resource=arn, Tags={"expires": "soon"})
    assert client.list_tags(Resource=arn)["Tags"] == {"app": "starling", "run": "r1", "expires": "soon"}
    clients = demo.by_keys.open()
    tagging = clients.client("resourcegroupstaggingapi")
    mine = [{"Key": "app", "Values": ["starling"]}]
    found = tagging.get_resources(TagFilters=mine)["ResourceTagMappingList"]
    assert [one["ResourceARN"] for one in found] == [arn]
    _invoke(client, {})
    logs = clients.client("logs")
    group = f"/aws/lambda/{NAME}"
    logs.put_retention_policy(logGroupName=group, retentionInDays=3)
    reports = logs.filter_log_events(logGroupName=group, filterPattern='"REPORT RequestId"')["events"]
    assert len(reports) == 1
    client.delete_function(FunctionName=NAME)
    assert tagging.get_resources(TagFilters=mine)["ResourceTagMappingList"] == []
    assert aws.environments.pids() == []
    with pytest.raises(ClientError) as error:
        _invoke(client, {})
    assert _code(error) == "ResourceNotFoundException"


def test_a_role_that_lambda_cannot_take_on(client: Any, demo: DemoAccount) -> None:
    with pytest.raises(ClientError) as error:
        create(client, NAME, demo.actor_role.replace("actor", "other"))
    assert _code(error) in {"InvalidParameterValueException", "AccessDeniedException"}


@pytest.mark.parametrize(
    ("kind", "executed"),
    [("throttle", 0), ("service_error", 0), ("lost_request", 0), ("lost_reply", 1), ("error_after", 1)],
)
def test_faults_on_demand(
    kind: AwsFault, executed: int, client: Any, demo: DemoAccount, aws: AwsEmulator
) -> None:
    create(client, NAME, demo.actor_role)
    aws.faults.order(kind)
    with pytest.raises((ClientError, ConnectionClosedError)):
        _invoke(client, {})
    assert len(aws.meter.invocations) == executed
    assert _invoke(client, {})[1] == ""


def test_a_crash_in_the_middle_is_billed(client: Any, demo: DemoAccount, aws: AwsEmulator) -> None:
    create(client, NAME, demo.actor_role)
    aws.faults.order("crash")
    said, error, _ = _invoke(client, {"s": 5})
    assert (said["errorType"], error) == ("Runtime.ExitError", "Unhandled")
    assert len(aws.meter.invocations) == 1


def test_changes_are_seen_late_and_zombies_stay(client: Any, demo: DemoAccount, aws: AwsEmulator) -> None:
    aws.faults.visibility_delay_s = 60.0
    create(client, NAME, demo.actor_role)
    with pytest.raises(ClientError):
        client.get_function(FunctionName=NAME)
    (function,) = aws.functions.alive()
    assert function.visible_s > time.monotonic() + 1.0
    aws.inside(lambda: setattr(function, "visible_s", time.monotonic()))  # as if a minute had passed
    assert client.get_function(FunctionName=NAME)
    client.delete_function(FunctionName=NAME)
    assert client.get_function(FunctionName=NAME)
    assert function.gone_s is not None
    assert function.gone_s > time.monotonic() + 1.0
    aws.inside(lambda: setattr(function, "gone_s", time.monotonic()))
    with pytest.raises(ClientError):
        client.get_function(FunctionName=NAME)
    aws.faults.end()
    create(client, "starling-undead", demo.actor_role)
    aws.faults.order("zombie_delete")
    client.delete_function(FunctionName="starling-undead")
    assert client.get_function(FunctionName="starling-undead")
    client.delete_function(FunctionName="starling-undead")
    assert aws.functions.alive() == []


def test_nothing_is_left_when_it_stops(demo: DemoAccount, aws: AwsEmulator, client: Any) -> None:
    create(client, NAME, demo.actor_role)
    _invoke(client, {})
    (pid,) = aws.environments.pids()
    aws.stop()
    assert not Path(f"/proc/{pid}").exists()
