"""A program in place of the one that draws films, which takes seconds to start."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

_PROGRAM = """#!{python} -IS
import json, os, pathlib, sys
arguments = sys.argv[sys.argv.index("training.rl.policies.film") + 1:]
wanted = json.loads(sys.stdin.readline()) if arguments == ["--serve"] else dict(zip(("checkpoint", "file"), arguments))
checkpoint, film = pathlib.Path(wanted["checkpoint"]), pathlib.Path(wanted["file"])
"""
_PYTHON = sys.executable
KILLED = "os.kill(os.getpid(), 11)"


def answers(facts: dict[str, object]) -> str:
    """What a program does that answers with this and draws nothing."""
    return f"print(json.dumps({facts!r}), flush=True)"


def draws(picture: bytes, facts: dict[str, object]) -> str:
    """What a program does that makes this picture of a checkpoint, and answers with `facts`."""
    return f"""
assert checkpoint.is_file()
film.parent.mkdir(parents=True, exist_ok=True)
for file in (film, film.with_stem(film.stem + "-still")):
    file.write_bytes({picture!r})
{answers(facts)}"""


def draw_by(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on `program` draws films."""
    file = folder / "draw"
    file.write_text(_PROGRAM.format(python=_PYTHON) + program, encoding="utf-8")
    file.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(file))
