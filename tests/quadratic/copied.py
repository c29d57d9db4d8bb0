"""A copy of the code that knows one more kind of training: its files, and a row for each in the tables."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_HERE = Path(__file__).resolve().parent
_ROOMS = ("training", "cloud", "emulator", "client", "webapp", "research", "templates", "static", "tests")
_ROWS = {
    "training/calls/__init__.py": [
        (
            "        Update(),\n",
            "        Update(),\n        Slope(),\n        Descend(),\n        Appraise(),\n",
        ),
        (
            "from training.calls.rollout import",
            "from training.calls.quadratic import Appraise, Descend, Slope\nfrom training.calls.rollout import",
        ),
    ],
    "training/tasks/kinds.py": [
        (
            "(ReinforcementLearning, SupervisedLearning)",
            "(ReinforcementLearning, SupervisedLearning, QuadraticTask)",
        ),
        (
            "from training.tasks.reinforcement import",
            "from training.tasks.quadratic import Quadratic, QuadraticTask\nfrom training.tasks.reinforcement import",
        ),
        (
            'Annotated[Supervised, Tag("supervised")],',
            'Annotated[Supervised, Tag("supervised")] | Annotated[Quadratic, Tag("quadratic")],',
        ),
    ],
}


def copy_with_quadratics(to: Path) -> None:
    """Copy the code to the folder `to`, with the files and rows of quadratics."""
    files = {
        _HERE / "calls.py": "training/calls/quadratic.py",
        _HERE / "task.py": "training/tasks/quadratic.py",
    }
    copy_with(to, files, _ROWS)


def copy_with(to: Path, files: Mapping[Path, str], rows: Mapping[str, Iterable[tuple[str, str]]]) -> None:
    """Copy the code to the folder `to`, with these files at these places, and texts of other files replaced."""
    # With what is compiled, which saves seconds, but for what other processes are writing.
    for room in _ROOMS:
        shutil.copytree(ROOT / room, to / room, ignore=shutil.ignore_patterns("*.pyc.*"))
    for file in ("pyproject.toml", "manage.py"):
        shutil.copy(ROOT / file, to / file)
    for source, place in files.items():
        shutil.copy(source, to / place)
    for name, changes in rows.items():
        text = (to / name).read_text()
        for old, new in changes:
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new, 1)
        (to / name).write_text(text)
