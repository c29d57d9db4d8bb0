"""`manage.py emulator`, as a person starts and stops it; and this machine's own configuration of the SDK."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cloud.accounts.connections import AwsConnection, AwsKeys, AwsRole
from emulator.aws.demo import DemoAccount

ROOT = Path(__file__).resolve().parents[3]


def _run_until_ready(data: Path, *arguments: str) -> tuple[subprocess.Popen[str], list[str]]:
    command = [sys.executable, "manage.py", "emulator", *arguments]
    process = subprocess.Popen(command, cwd=ROOT, env=_environment(data), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said: list[str] = []
    while not said or "Ctrl-C" not in said[-1]:
        said.append(process.stdout.readline())
        assert said[-1], said
    return process, said


def _environment(data: Path) -> dict[str, str]:
    return {**os.environ, "STARLING_DATA": str(data), "DJANGO_SETTINGS_MODULE": "webapp.settings"}


def _stop(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    process.send_signal(signal.SIGINT)
    assert process.stdout.read().strip() == "Stopped."
    assert process.wait(60) == 0
    process.stdout.close()


def _values(said: list[str]) -> dict[str, str]:
    return dict(line.split() for line in said if line.startswith("  "))


def test_it_prints_what_to_connect_with_and_is_the_same_account_at_its_next_start(tmp_path: Path) -> None:
    """The page shows a role's id only once the emulator and the site run, and neither has to start again."""
    process, said = _run_until_ready(tmp_path, "aws", "--port", "0", "--external-id", "chosen")
    values = _values(said)
    assert values["external_id"] == "chosen"
    assert values["STARLING_AWS_ENDPOINT"].startswith("http://127.0.0.1:")
    assert not any("Azure" in line for line in said)
    port = values["STARLING_AWS_ENDPOINT"].rpartition(":")[2]
    assert "demands that id" in _set_external_id(tmp_path, port, "shown-by-the-page").stdout
    ours = AwsKeys(values["AWS_ACCESS_KEY_ID"], values["AWS_SECRET_ACCESS_KEY"])
    role = AwsRole(values["role_arn"], "shown-by-the-page", ours)
    by_role = AwsConnection(role, "us-east-1", endpoint_url=values["STARLING_AWS_ENDPOINT"])
    assert by_role.open().client("lambda").get_account_settings()
    _stop(process)

    process, said = _run_until_ready(tmp_path, "aws", "--port", "0")
    again = _values(said)
    _stop(process)
    of_the_address = {"STARLING_AWS_ENDPOINT", "endpoint"}
    kept = {name: value for name, value in values.items() if name not in of_the_address}
    assert {name: again[name] for name in kept} == {**kept, "external_id": "shown-by-the-page"}
    refused = _set_external_id(tmp_path, port, "another")
    assert refused.returncode == 2
    assert "No emulated AWS account answers" in refused.stderr


def _set_external_id(data: Path, port: str, external_id: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "manage.py", "emulator", "--port", port, "--set-external-id", external_id]
    return subprocess.run(
        command, cwd=ROOT, env=_environment(data), capture_output=True, text=True, timeout=300
    )


def test_both_clouds_run_unless_one_is_named(tmp_path: Path) -> None:
    process, said = _run_until_ready(tmp_path, "--port", "0", "--azure-port", "0")
    values = _values(said)
    try:
        keys = AwsKeys(values["access_key_id"], values["secret_access_key"])
        aws = AwsConnection(keys, "us-east-1", endpoint_url=values["STARLING_AWS_ENDPOINT"])
        assert aws.open().client("sts").get_caller_identity()["Account"] == "111122223333"
        assert values["STARLING_AZURE_ENDPOINT"].startswith("https://127.0.0.1:")
        assert Path(values["STARLING_EMULATOR_CA"]).is_file()
        assert values["client_secret"]
    finally:
        _stop(process)


@pytest.mark.parametrize("fault", ["flood=0.1", pytest.param("throttle=much", marks=pytest.mark.slow)])
def test_a_fault_that_cannot_be_is_said(fault: str) -> None:
    command = [sys.executable, "manage.py", "emulator", "aws", "--port", "0", "--fault", fault]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    assert fault.split("=")[0] in done.stderr


def test_this_machines_own_configuration_is_not_used(
    demo: DemoAccount, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Profile, keys and endpoints in a user's variables are not a connection's."""
    (tmp_path / "config").write_text("[profile other]\nregion = eu-north-1\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "other")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAOTHER")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    for connection in (demo.by_keys, demo.by_role):
        client = connection.open().client("sts")
        assert client.meta.region_name == "us-east-1"
        assert client.get_caller_identity()["Account"] == "111122223333"
