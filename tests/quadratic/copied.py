"""A copy of the code that knows one more kind of training: its files, and a row for each in the tables."""

from __future__ import annotations

from pathlib import Path

from tests.copied_code import copy_with

_HERE = Path(__file__).resolve().parent
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
    "training/functions/bodies.py": [
        (
            '    "rollout": ',
            '    "slope": Slope().run,\n    "descend": Descend().run,\n    "appraise": Appraise().run,\n'
            '    "rollout": ',
        ),
        (
            "from training.engine.messages import",
            "from training.calls.quadratic import Appraise, Descend, Slope\nfrom training.engine.messages import",
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
