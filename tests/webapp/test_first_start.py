"""A first start that is slow, or that is killed: it is waited for, and its owner gets in."""

from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from tests.figures import figures_in
from tests.webapp.spoiled_database import failing_at
from webapp.accounts.models import User
from webapp.jobs.models import Job
from webapp.management.commands.prepare import DEMO_SIGN_IN
from webapp.processes.startup_patience import StartupPatience, Waiting

pytestmark = pytest.mark.django_db


def _prepare(*arguments: str) -> list[str]:
    """The sign-in paths that a start prints."""
    out = StringIO()
    call_command("prepare", *arguments, stdout=out)
    lines = out.getvalue().splitlines()
    return [line.removeprefix(DEMO_SIGN_IN) for line in lines if line.startswith(DEMO_SIGN_IN)]


def test_each_start_prints_a_link_until_someone_has_signed_in() -> None:
    (first,), (second,), (third,) = _prepare("--demo"), _prepare("--demo"), _prepare()
    assert len({first, second, third}) == 3
    person = User.objects.get()
    assert Job.objects.count() == 1
    Client().force_login(person)
    assert _prepare("--demo") == []


def test_a_link_that_was_printed_but_not_used_signs_in() -> None:
    from webapp.accounts.services import redeem_sign_in_link

    _prepare("--demo")
    (path,) = _prepare("--demo")
    assert redeem_sign_in_link(path.rstrip("/").rpartition("/")[2]) == User.objects.get()


def test_without_a_demo_no_link_is_printed() -> None:
    assert _prepare() == []
    assert not User.objects.exists()


def test_a_start_that_is_killed_while_it_makes_the_demo_leaves_nothing_half_made() -> None:
    with failing_at('INSERT INTO "jobs_job"', KeyboardInterrupt()), pytest.raises(KeyboardInterrupt):
        _prepare("--demo")
    assert not User.objects.exists()
    assert len(_prepare("--demo")) == 1
    assert Job.objects.count() == 1


def test_a_key_file_left_by_a_killed_start_does_not_end_the_next(tmp_path: Any) -> None:
    import os

    from webapp.variables import generated_secret_key

    (tmp_path / f"secret_key.{os.getpid()}").write_text("half a k")
    assert len(generated_secret_key(tmp_path / "secret_key")) > 60


# How long a start is waited for


@dataclass
class _Starting:
    """A service that starts on a machine where everything takes long."""

    name: str = "web"
    pid: int | None = None
    heard: int = 0
    lines: list[str] = field(default_factory=list)

    def write(self, line: str) -> None:
        self.heard += 1
        self.lines.append(line)


class _Start:
    """The wait for it, by a clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.said: list[str] = []
        self.service = _Starting()
        self._waiting = Waiting(
            lambda _, line: self.said.append(line), "ready", StartupPatience(60.0, 900.0), lambda: self.now_s
        )

    def after(self, seconds: float) -> str:
        self.now_s += seconds
        return self._waiting.given_up([self.service])


def test_a_start_is_waited_for_as_long_as_it_gets_on() -> None:
    start = _Start()
    for number in range(12):
        start.service.write(f"step {number}")
        assert start.after(50.0) == ""
    assert figures_in(start.said[0]) == ["50"]


def test_a_start_that_is_stuck_is_given_up_with_its_last_lines() -> None:
    start = _Start()
    start.service.write("database is late")
    assert start.after(59.0) == ""
    assert start.after(59.0) == ""
    given_up = start.after(2.0)
    assert figures_in(given_up) == ["120", "61"]
    assert given_up.endswith(":\n  database is late")


def test_a_start_that_never_ends_is_given_up_at_last() -> None:
    start = _Start()
    given_up = ""
    while not given_up:
        start.service.write("connecting")
        given_up = start.after(30.0)
    assert figures_in(given_up)[0] == "930"
    assert "web:\n  connecting" in given_up


def test_processor_time_is_getting_on_as_well() -> None:
    """A server prints nothing while it imports."""
    import os

    start = _Start()
    start.service.pid = os.getpid()
    began_s = sum(os.times()[:2])
    assert start.after(0.0) == ""
    while sum(os.times()[:2]) < began_s + 1.0:
        pass
    assert start.after(59.0) == ""
    assert start.after(59.0) == ""
    assert "happened for 61 s" in start.after(2.0)
