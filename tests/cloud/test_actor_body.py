"""One call in, one answer out: warm reuse, weights, deadlines and calls that come too late."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud.actor import watchdog, wire
from cloud.actor import weights as actor_weights
from cloud.actor.blobs import BlobShelf
from cloud.actor.body import ActorMemory
from cloud.actor.watchdog import DeadlineExceeded, Watchdog
from cloud.actor.wire import ActorAnswer, ActorRequest
from tests.cloud import calls
from training.engine.codec import decode
from training.engine.messages import Call

ROOT = Path(__file__).resolve().parents[2]


def _ask(actor: ActorMemory, call: Call, **changes: Any) -> ActorAnswer:
    given: dict[str, Any] = {"not_after_unix_s": time.time() + 60, "weights": calls.weights()}
    limits = {name: changes.pop(name) for name in ("within_s", "most_bytes") if name in changes}
    request = ActorRequest(run="r", call=call, **{**given, **changes})
    return wire.read_answer(actor.answer(wire.pack_request(request), **limits))


def _rollout(name: str, **changes: Any) -> Call:
    return calls.rollout(name, BlobShelf().publish(0, calls.weights()), **changes)


def test_the_second_call_finds_everything_warm_and_gives_the_same() -> None:
    actor = ActorMemory()
    first = _ask(actor, _rollout("a"))
    warm = _ask(actor, _rollout("b", slot_state=first.slot_state))
    cold = _ask(ActorMemory(), _rollout("b", slot_state=first.slot_state))
    assert (first.calls_before, warm.calls_before) == (0, 1)
    assert warm.payload == cold.payload


def test_weights_by_address_are_fetched_once_a_version() -> None:
    requested: list[str] = []

    def fetch(url: str, byte_count: int) -> bytes:
        requested.append(url)
        return calls.weights()

    actor = ActorMemory(fetch=fetch)
    for name in "abc":
        answer = _ask(actor, _rollout(name), weights=None, weights_url="https://there/v0")
        assert answer.status == "done", answer.reason
    assert requested == ["https://there/v0"]


@pytest.mark.parametrize(
    "changes",
    [
        {"weights": calls.weights(1)},
        {"weights": b""},
        {"weights": None},
        {"weights": None, "weights_url": "http://example.org/weights"},
        {"weights": None, "weights_url": "file:///etc/passwd"},
    ],
)
def test_weights_that_are_not_the_published_ones_are_not_used(changes: dict[str, Any]) -> None:
    answer = _ask(ActorMemory(), _rollout("a"), **changes)
    assert (answer.status, answer.reason_code) == ("failed", "weights")
    assert "version 0" in answer.reason


@pytest.fixture
def weights_server() -> Iterator[tuple[str, list[int]]]:
    """Serves weights after one failure, and an endless file."""
    codes: list[int] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code = 503 if not codes else 200
            codes.append(code)
            self.send_response(302 if self.path == "/moved" else code)
            self.send_header("Location", "/weights")
            self.end_headers()
            if code == 200:
                with contextlib.suppress(OSError):  # who has read enough leaves before the end
                    self.wfile.write(calls.weights() if self.path == "/weights" else bytes(10**7))

        def log_message(self, *arguments: object) -> None:
            pass

        def finish(self) -> None:
            with contextlib.suppress(OSError):
                super().finish()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", codes
    server.shutdown()
    server.server_close()


def test_fetching_tries_again_and_reads_no_more_than_announced(
    weights_server: tuple[str, list[int]],
) -> None:
    url, codes = weights_server
    assert actor_weights.fetched(f"{url}/weights", 10**6) == calls.weights()
    assert codes == [503, 200]
    assert len(actor_weights.fetched(f"{url}/endless", 1000)) == 1001
    with pytest.raises(OSError):
        actor_weights.fetched(f"{url}/moved", 1000)


def test_a_call_that_comes_too_late_is_refused_without_running() -> None:
    answer = _ask(ActorMemory(now_unix_s=lambda: 1005.0), _rollout("a"), not_after_unix_s=1000.0)
    assert (answer.status, answer.reason_code) == ("refused", "expired")
    assert answer.reason.startswith("arrived 5.0 s")


def test_a_call_that_was_answered_is_not_run_again() -> None:
    actor = ActorMemory()
    first = _ask(actor, _rollout("a"))
    again = _ask(actor, _rollout("a"))
    assert again == first
    assert _ask(actor, _rollout("b")).calls_before == 1


@pytest.fixture
def patient_watchdog(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that pauses this process for seconds does not end it: the alarm comes first."""
    monkeypatch.setitem(Watchdog.__init__.__kwdefaults__, "grace_s", 60.0)


def test_the_deadline_ends_the_call_with_a_reason(patient_watchdog: None) -> None:
    # Not more steps: their noise is drawn in one go, deaf to the alarm, and a busy machine may draw for seconds.
    actor = ActorMemory()
    began_s = time.monotonic()
    answer = _ask(actor, _rollout("a", steps=1_000_000, deadline_s=0.5))
    assert time.monotonic() - began_s < 20.0, "the steps take longer"
    assert (answer.status, answer.reason_code) == ("failed", "deadline")
    assert "0.5 s" in answer.reason
    assert _ask(actor, _rollout("b")).status == "done"


def test_the_machines_own_limit_counts_too(patient_watchdog: None) -> None:
    answer = _ask(ActorMemory(), _rollout("a", steps=1_000_000, deadline_s=600.0), within_s=0.3)
    assert answer.reason_code == "deadline"


def test_a_result_that_cannot_be_sent_back_says_so() -> None:
    answer = _ask(ActorMemory(), _rollout("a", steps=256), most_bytes=2000)
    assert (answer.status, answer.reason_code) == ("failed", "result_too_large")
    assert "fewer steps" in answer.reason


def test_a_body_that_raises_tells_where() -> None:
    nonsense = b"not weights"
    shelf = BlobShelf()
    answer = _ask(ActorMemory(), calls.rollout("a", shelf.publish(0, nonsense)), weights=nonsense)
    assert (answer.status, answer.reason_code) == ("failed", "error")
    assert "training/engine/codec.py:" in answer.reason.splitlines()[0]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_alarm_that_rings_in_a_destructor_rings_again() -> None:
    """The interpreter drops what is raised there, so that one alarm alone would be lost."""
    rung = threading.Event()

    class Deaf:
        def __del__(self) -> None:
            try:
                while True:
                    pass
            finally:
                rung.set()

    with pytest.raises(DeadlineExceeded), Watchdog(0.05, grace_s=60.0):
        Deaf()
        assert rung.is_set()
        while True:
            pass


def test_no_environment_can_keep_the_deadline_from_a_call() -> None:
    with pytest.raises(DeadlineExceeded), Watchdog(0.05, grace_s=60.0):
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                pass


def test_the_alarm_leaves_time_to_clean_up_and_is_silent_afterwards() -> None:
    cleaned, ended_s = False, 0.0
    with pytest.raises(DeadlineExceeded), Watchdog(0.05, grace_s=60.0):
        try:
            while True:
                pass
        finally:
            ended_s = time.monotonic() + 3 * watchdog._AGAIN_S
            while time.monotonic() < ended_s:
                pass
            cleaned = True
    assert cleaned
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_body_stuck_in_foreign_code_ends_its_process() -> None:
    """An inner loop of C that holds the interpreter's lock hears no alarm; the log names where it was."""
    program = (
        "from cloud.actor.watchdog import Watchdog\n"
        "def stuck():\n    return sum(range(10**14))\n"
        "with Watchdog(0.2, grace_s=0.3):\n    stuck()\n"
    )
    began_s = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert time.monotonic() - began_s < 60.0
    assert ended.returncode == 1
    assert "Timeout (" in ended.stderr
    assert "in stuck" in ended.stderr


def test_a_hash_is_that_of_the_bytes() -> None:
    """A shelf's reference names what an actor accepts."""
    ref = BlobShelf().publish(0, calls.weights())
    assert ref.sha256 == hashlib.sha256(calls.weights()).hexdigest()
    assert decode(_ask(ActorMemory(), calls.rollout("x", ref)).payload)["version"] == 0


class _BreaksOff(http.server.BaseHTTPRequestHandler):
    """Refuses, and ends before it has said why."""

    def do_GET(self) -> None:
        self.send_response(403)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def log_message(self, *given: object) -> None:
        """Tests print nothing."""


def test_a_store_that_breaks_its_refusal_off_is_named_as_what_refused() -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), _BreaksOff) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/weights"
        answer = _ask(ActorMemory(), _rollout("c-a1"), weights=None, weights_url=url)
        server.shutdown()
    assert answer.reason_code == "weights"
    assert answer.reason.endswith(": HTTPError 403")
