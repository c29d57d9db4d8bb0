"""A puller's process: how it gets its work, and each way in which it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from cloud.actor.connection import GatewayConnection, GatewayUnreachable, RequestRefused
from cloud.platforms.gateway.asgi import Receive, Scope, Send
from cloud.platforms.pulled import Patience, PulledCalls
from emulator.azure import certificates
from rig.servers import ROOT, printed_by, wait_until
from tests.cloud import calls, pullers
from tests.cloud.gateway_server import Application, served
from tests.cloud.memory_mailbox import MemoryMailbox

TOKEN = "x" * 43


def _ended(process: subprocess.Popen[bytes], within_s: float = 60.0) -> int:
    return process.wait(timeout=within_s)


def _until_called(platform: PulledCalls, count: int = 1) -> None:
    wait_until(lambda: len(platform.pullers()) >= count, within_s=60.0, what="the puller calls")


def test_it_ends_when_it_is_dismissed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pullers.opened(0) as (platform, machines):
        process = machines.join(log=log)
        _until_called(platform)
        platform.dismiss([platform.pullers()[0].name])
        assert _ended(process) == 0
    assert "no more work" in log.read_text()


def test_it_ends_when_its_time_is_not_renewed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pullers.opened(0, Patience(stay_s=3.0)) as (platform, machines):
        process = machines.join(log=log)
        # Renewed while Python starts, and not any more after that, as if the coordinator had died.
        wait_until(
            lambda: machines.mailbox.stay(3.0) or platform.pullers(), within_s=60.0, what="the puller calls"
        )
        assert _ended(process) == 0
    assert "was not renewed" in log.read_text()


@pytest.mark.slow
def test_it_ends_in_the_middle_of_a_call_when_its_time_is_over() -> None:
    with pullers.opened(0, Patience(lease_s=2.0, stay_s=6.0)) as (platform, machines):
        process = machines.join()
        platform.submit(calls.rollout("c", platform.publish(0, calls.weights()), steps=10_000_000))
        end_s = time.monotonic() + 60.0
        while not any(one.call_id for one in platform.pullers()):
            platform.next(0.05)
            assert time.monotonic() < end_s
        assert _ended(process) == 0


def test_it_ends_when_it_has_nothing_to_do_for_long() -> None:
    with pullers.opened(0, Patience(stay_s=8.0)) as (platform, machines):
        process = machines.join("--idle", "1")
        end_s = time.monotonic() + 60.0
        while process.poll() is None and time.monotonic() < end_s:
            platform.submit(calls.rollout("c", None))
            platform.cancel("c")
            platform.next(0.1)
        assert process.poll() == 0


def test_it_ends_when_the_gateway_is_gone(tmp_path: Path) -> None:
    log = tmp_path / "log"
    mailbox = MemoryMailbox()
    mailbox.stay(600.0)
    with served(mailbox) as address:
        process = pullers.start(address, mailbox.new_token(), "--unreachable", "2", log=log)
        wait_until(lambda: mailbox.pullers(), within_s=60.0, what="the puller calls")
    try:
        assert _ended(process) == 3
    finally:
        pullers.stop([process])
    assert "for 2 s" in log.read_text()


def test_sigterm_ends_it_and_gives_its_call_to_another_at_once() -> None:
    under_way = threading.Event()

    def holding_the_first(door: Application) -> Application:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"].startswith("/actor/v1/weights/") and not under_way.is_set():
                under_way.set()
                while (await receive())["type"] != "http.disconnect":
                    pass
                return
            await door(scope, receive, send)

        return application

    patience = Patience(begin_s=600.0, lease_s=600.0)
    with pullers.opened(0, patience, around=holding_the_first) as (platform, machines):
        first = machines.join()
        platform.submit(calls.rollout("c", platform.publish(0, calls.weights()), steps=20_000))
        wait_until(
            lambda: platform.next(0.05) or under_way.is_set(),
            within_s=60.0,
            what="it is at the call's weights",
        )
        first.send_signal(signal.SIGTERM)
        assert _ended(first) == 0
        assert [one.leaving for one in platform.pullers()] == [True]
        machines.join()
        # Long before its lease of ten minutes is over.
        outcome = platform.next(60.0)
        assert outcome is not None
        assert outcome.status == "done"
        assert platform.starts == 2


def test_a_wrong_token_is_said_and_opens_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pullers.opened(0) as (platform, machines):
        process = pullers.start(machines.address, TOKEN, log=log)
        assert _ended(process) == 2
        assert platform.pullers() == []
    assert "refuses this token" in log.read_text()
    assert TOKEN not in log.read_text()


def test_a_token_may_lie_in_a_file_and_one_command_starts_several(tmp_path: Path) -> None:
    with pullers.opened(0) as (platform, machines):
        token = tmp_path / "token"
        token.write_text(machines.token + "\n")
        command = [sys.executable, "-m", "cloud.actor.puller", "--gateway", machines.address]
        command += ["--token-file", str(token), "--processes", "2", "--unit", "my machine"]
        parent = subprocess.Popen(command, cwd=ROOT, env={"PATH": "/usr/bin"}, stderr=subprocess.DEVNULL)
        try:
            _until_called(platform, 2)
            assert {one.unit for one in platform.pullers()} == {"my-machine"}
            parent.send_signal(signal.SIGTERM)
            assert _ended(parent) == 0
            assert all(one.leaving for one in platform.pullers())
        finally:
            pullers.stop([parent])


SIGNALLED_AT_THE_SECOND = """
import os, signal, subprocess, sys
from cloud.actor import puller

real, started = subprocess.Popen, []

def start(command, env):
    started.append(real([sys.executable, "-c", "import time; time.sleep(3600)"]))
    if len(started) == 2:
        os.kill(os.getpid(), signal.SIGTERM)
    return started[-1]

subprocess.Popen = start
code = puller.main(["--gateway", "http://127.0.0.1:1", "--processes", "5"])
print(code, [one.poll() for one in started])
"""


def test_a_signal_while_it_starts_several_ends_those_that_it_started() -> None:
    printed = printed_by(SIGNALLED_AT_THE_SECOND, STARLING_RUN_TOKEN="t" * 30, PATH="/usr/bin:/bin")
    assert printed == "-15 [-15, -15]"


@pytest.mark.parametrize(
    "address",
    ["http://starling.example.org", "ftp://127.0.0.1", "127.0.0.1:8000", "https://me:secret@example.org"],
)
def test_only_https_leaves_this_machine(address: str) -> None:
    with pytest.raises(ValueError):
        GatewayConnection(address, TOKEN)


def test_a_redirect_is_not_followed() -> None:
    seen: list[str] = []

    def elsewhere(door: Application) -> Application:
        async def application(scope: Scope, receive: Receive, send: Send) -> None:
            seen.append(scope["path"])
            headers = [(b"location", b"/elsewhere"), (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": 307, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

        return application

    with (
        served(MemoryMailbox(), around=elsewhere) as address,
        closing(GatewayConnection(address, TOKEN)) as line,
        pytest.raises(RequestRefused, match="307"),
    ):
        line.request("POST", "/actor/v1/lease", b"{}", timeout_s=30.0)
    assert seen == ["/actor/v1/lease"]


def test_an_answer_larger_than_expected_is_not_read() -> None:
    mailbox = MemoryMailbox()
    token = mailbox.new_token()
    mailbox.publish("ab" * 32, bytes(100_000))
    with served(mailbox) as address:
        line = GatewayConnection(address, token)
        path = f"/actor/v1/weights/{'ab' * 32}"
        assert line.request("GET", path, timeout_s=30.0, most_bytes=100_000) == bytes(100_000)
        with pytest.raises(GatewayUnreachable, match="too large"):
            line.request("GET", path, timeout_s=30.0, most_bytes=99_999)


def test_over_tls_only_the_authority_it_was_given_is_trusted(tmp_path: Path) -> None:
    made = certificates.create(tmp_path / "tls")
    mailbox = MemoryMailbox()
    token = mailbox.new_token()
    mailbox.publish("ab" * 32, b"numbers")
    path = f"/actor/v1/weights/{'ab' * 32}"
    with served(mailbox, tls=made.server) as address:
        with closing(GatewayConnection(address, token, str(made.ca))) as trusting:
            assert trusting.request("GET", path, timeout_s=30.0) == b"numbers"
        with pytest.raises(GatewayUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
            GatewayConnection(address, token).request("GET", path, timeout_s=30.0)


def test_it_loads_numpy_and_nothing_of_the_window_or_the_learner() -> None:
    program = (
        "import sys, cloud.actor.puller;"
        "heavy = {'torch', 'django', 'boto3', 'azure', 'redis', 'uvicorn', 'webapp'} & set(sys.modules);"
        "print(sorted(heavy), 'numpy' in sys.modules)"
    )
    assert printed_by(program) == "[] True"


def test_what_it_starts_does_not_get_the_token() -> None:
    program = (
        "import os, cloud.actor.puller as puller;"
        "options = puller._options(['--gateway', 'https://example.org']);"
        "print(puller._token(options), os.environ.get('STARLING_RUN_TOKEN'))"
    )
    environment = {"STARLING_RUN_TOKEN": TOKEN}
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert answer.stdout == f"{TOKEN} None\n"
