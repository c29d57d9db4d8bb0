"""What the environment can say wrong, and who leaves no trace in the data folder."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from rig.servers import ROOT, manage


def _manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("STARLING_")}
    inherited.pop("DJANGO_SETTINGS_MODULE", None)
    inherited.pop("SECRET_KEY", None)
    return subprocess.run(
        manage(*arguments),
        cwd=ROOT,
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("STARLING_MAX_LOCAL_ACTORS", "0", "whole number, 1"),
        ("STARLING_SIGNUP", "perhaps", "open or closed"),
        ("DEBUG", "maybe", "true or false"),
        ("STARLING_TRUSTED_PROXIES", "10.0.0.0/8,*", "addresses or networks"),
        ("STARLING_SMTP_URL", "mail.example.org", "a mail server"),
        ("STARLING_DATA", "/dev/null/here", "nothing can be"),
        ("STARLING_DATA", "/proc/here", "nothing can be"),
    ],
)
def test_a_wrong_setting_is_one_sentence(variable: str, value: str, sentence: str, tmp_path: Path) -> None:
    answer = _manage("up", **{"STARLING_DATA": str(tmp_path), variable: value})
    assert answer.returncode == 2
    assert answer.stderr.startswith(f"{variable} is ")
    assert sentence in answer.stderr
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "means"),
    [
        ("smtps://me:p%40ss@mail.example.org", ("mail.example.org", 465, "me", "p@ss", True, False)),
        ("smtp://me:pass@mail.example.org", ("mail.example.org", 587, "me", "pass", False, True)),
        ("smtp+plain://127.0.0.1:2525", ("127.0.0.1", 2525, "", "", False, False)),
    ],
)
def test_a_mail_server_is_one_address(url: str, means: tuple[object, ...]) -> None:
    from webapp.variables import smtp_server

    assert smtp_server(url) == means


def test_training_headless_leaves_the_data_folder_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    changes = ["training.stop.rounds=1", "training.scaling.actors=1", "training.evaluation.episodes=1"]
    arguments = [part for change in changes for part in ("--set", change)]
    answer = _manage("train", "cartpole", "--json", *arguments, STARLING_DATA=str(data))
    assert answer.returncode == 0, answer.stderr
    assert '"kind": "summary"' in answer.stdout.splitlines()[-1]
    assert not data.exists()


def test_bad_input_creates_nothing(tmp_path: Path) -> None:
    data, checkpoints = tmp_path / "data", tmp_path / "checkpoints"
    answer = _manage(
        *("train", "cartpole", "--checkpoints", str(checkpoints), "--set", "budget_usd=0"),
        STARLING_DATA=str(data),
    )
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_every_variable_is_in_the_table() -> None:
    read = set(
        re.findall(
            r'variables\.(?:text|flag|count|choice|words|networks)\(\s*"(\w+)"',
            (ROOT / "webapp/settings.py").read_text(),
        )
    )
    named = set(re.findall(r"`([A-Z_]+)`", (ROOT / "docs/settings.md").read_text()))
    assert len(read) > 20
    assert read - named == set()


def test_a_command_that_does_not_exist_is_wrong_input() -> None:
    done = _manage("dance")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Unknown command: 'dance'" in done.stderr
