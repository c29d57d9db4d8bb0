"""`manage.py train` on a terminal and elsewhere, and the line that tells how far it is."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from client.request_bodies import FileForm
from tests.factories import make_spec, round_finished
from webapp.management.training_progress import ProgressLine

USD = 10**12
SHORT = ["--set", "training.stop.rounds=4", "--set", "training.scaling.actors=1"]


def _spec(budget_usd: str = "1", **stop: Any) -> Any:
    rules = {"env_steps": None, "rounds": None, **stop}
    return make_spec(budget_usd=budget_usd, training__stop=rules)


def _line(spec: Any, round_no: int, spent: int = 0, **at: float) -> str:
    progress = ProgressLine(spec)
    progress.begin(now_s=0.0)
    return progress.line(round_finished(round_no, spent=spent).report, now_s=at.get("now_s", 30.0))


def test_percent_and_time_left_are_towards_the_end_that_comes_first() -> None:
    line = _line(_spec(rounds=4, env_steps=10**9), 1, spent=USD // 10)
    assert line.startswith("25 % · round 1 · ")
    assert "about 1 min left" in line
    assert "$0.100 of $1.00" in line


def test_money_that_runs_out_first_is_the_end() -> None:
    line = _line(_spec(rounds=100), 1, spent=USD // 2)
    assert line.startswith("50 %")
    assert "about 30 s left" in line


def test_a_resumed_run_is_timed_from_where_it_goes_on() -> None:
    progress = ProgressLine(_spec(rounds=100))
    assert "left" not in progress.line(round_finished(80).report, now_s=0.0)
    assert "about 10 s left" in progress.line(round_finished(90).report, now_s=10.0)


def _command(*words: str) -> list[str]:
    return [
        sys.executable,
        "manage.py",
        "train",
        "cartpole",
        *SHORT,
        "--set",
        "platform.kind=simulated",
        *words,
    ]


@pytest.mark.slow
class TestRunning:
    def test_a_terminal_gets_one_line_that_is_replaced(self, tmp_path: Path) -> None:
        leader, follower = pty.openpty()
        with os.fdopen(leader, "rb", buffering=0) as terminal:
            child = subprocess.Popen(
                _command(), cwd=settings.BASE_DIR, stdout=follower, stderr=follower, stdin=subprocess.DEVNULL
            )
            os.close(follower)
            written = b""
            try:
                while piece := terminal.read(65536):
                    written += piece
            except OSError:  # Linux: the last writer has closed it
                pass
            assert child.wait(60) == 0
        text = written.decode()
        assert "\r\x1b[K" in text
        assert " of $" in text
        assert " % · round " in text
        assert "\nround 1:" not in text
        assert text.rstrip().splitlines()[-1].rpartition("\x1b[K")[2].startswith("Over: ")

    def test_a_pipe_gets_plain_lines(self) -> None:
        done = subprocess.run(_command(), cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
        assert "\x1b" not in done.stdout
        assert "\r" not in done.stdout
        assert [line for line in done.stdout.splitlines() if line.startswith("round 4: ")]


def test_an_upload_says_on_a_terminal_how_much_has_gone_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"x" * 2_500_000)
    leader, follower = pty.openpty()
    with os.fdopen(leader, "rb", buffering=0) as terminal, os.fdopen(follower, "w") as standard_error:
        monkeypatch.setattr(sys, "stderr", standard_error)
        sent = b"".join(FileForm(file, {}))
        written = terminal.read(65536).decode()
    assert sent.count(b"x" * 2_500_000) == 1
    lines = [line.strip() for line in written.split("\r\x1b[K")[1:]]
    assert lines == [f"rows.csv: {done} of 2.5 MB" for done in ("1.0", "2.1", "2.5")]


def test_an_upload_from_a_script_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(b"x")
    assert b"".join(FileForm(file, {}))
    assert capsys.readouterr() == ("", "")
