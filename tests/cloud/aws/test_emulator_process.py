"""The emulator in a process of its own: its connection values, its desk, and the newer protocol's encoding."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from cloud.accounts.connections import AwsConnection, AwsKeys
from emulator.aws import cbor
from tests.cloud.aws.code import create

ROOT = Path(__file__).resolve().parents[3]


def test_a_process_of_its_own_prints_how_to_connect_and_ends_with_its_input() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "emulator", "aws", "--concurrency", "7"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        values = json.loads(process.stdout.readline())
        keys = AwsKeys(values["access_key_id"], values["secret_access_key"])
        client = AwsConnection(keys, endpoint_url=values["endpoint"]).open().client("lambda", tries=1)
        assert client.get_account_settings()["AccountLimit"]["ConcurrentExecutions"] == 7
        create(client, "starling-parked", values["actor_role"])
        _desk(values["endpoint"], "park", function="starling-parked", seconds=0.01)
        assert client.invoke(FunctionName="starling-parked", Payload=b"{}")["StatusCode"] == 200
        assert _desk(values["endpoint"], "meter")[0]["billed_ms"] == 10
        assert _desk(values["endpoint"], "state") == {"in_flight": 0, "processes": []}
        with pytest.raises(urllib.error.HTTPError) as refused:
            _desk(values["endpoint"], "faults", order={"no such thing": 1})
        refused.value.close()
        assert _desk(values["endpoint"], "faults", order={"throttle": 1})["struck"]["throttle"] == 0
    finally:
        process.stdin.close()
        assert process.wait(60) == 0
        process.stdout.close()


def _desk(endpoint: str, name: str, **given: Any) -> Any:
    request = urllib.request.Request(f"{endpoint}/_emulator/{name}", json.dumps(given).encode())
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize(
    "value",
    [None, True, 0, 23, 24, 255, 65_536, 2**40, -1, -500, "ü" * 30, [1, "a"], {"k": [{"x": None}]}, b"b"],
)
def test_values_travel_in_the_newer_encoding(value: Any) -> None:
    assert cbor.loads(cbor.dumps(value)) == value
    assert cbor.loads(b"\xbf\x61a\x9f\x01\xff\xff") == {"a": [1]}
