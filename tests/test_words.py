"""Outside its rooms no identifier has a word of reinforcement learning: what every kind has is named neutrally."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from rig.servers import ROOT
from tests.test_architecture import ABOUT_REINFORCEMENT

# Rooms beside those of `ABOUT_REINFORCEMENT`.
MORE_ROOMS = {
    "training/functions/bodies.py",  # the table of bodies, those of reinforcement learning among them
    "training/functions/gradient.py",  # the body of a gradient of trajectories
    "training/scaling/learned.py",  # an agent that scales a training is a learned policy itself
    "cloud/accounts/profiling.py",  # what memory sampling takes, beside profiling_runs.py
    "webapp/api/routes/choices.py",  # lists the environments to choose from
    "webapp/management/commands/export.py",  # exports policies and plays them
}
# Names of other things, and names that others gave.
ALLOWED = {
    *(
        "NoReturn",
        "env",
        "return_annotation",
        "return_counts",
        "return_exceptions",
        "return_inverse",
        "return_when",
    ),
    "Rollout",  # the row of a kind of call in the table of kinds
    "EPISODES",  # the client's table of a scheduler's training
    "STARLING_ENVIRONMENT_PACKAGES",  # the operator's setting
    # Numbers of the simulated cloud, whose names stored profiles have.
    *("environment_step_us", "environment_step_fallback_us", "first_environment_s"),
}
# The API repeats figures under their first names for one release, and has those of an evaluation's episodes.
OF_ANSWERS = {
    *("environment", "env_steps", "episode_return_mean", "evaluation_return_mean", "return_mean"),
    *("return_std", "episode_returns"),
}
# No more lines may say such a word than do today. Lower it when fewer do.
MOST = 0

_WORDS = re.compile(r"(episode|return|rollout|env|environment)s?", re.IGNORECASE)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def lines_that_say_words() -> list[str]:
    rooms = {ROOT / room / name for room, names in ABOUT_REINFORCEMENT.items() for name in names}
    rooms |= {ROOT / name for name in MORE_ROOMS}
    return [
        f"{path.relative_to(ROOT)}:{line}"
        for package in ("training", "cloud", "client", "webapp")
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts and not rooms & {path, *path.parents}
        for line in sorted(set(_lines(path)))
    ]


def _lines(path: Path) -> Iterator[int]:
    """An import names a room, so its lines do not count."""
    text = path.read_text(encoding="utf-8")
    if not _WORDS.search(text):
        return
    imports = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    allowed = ALLOWED | OF_ANSWERS if path.is_relative_to(ROOT / "webapp" / "api") else ALLOWED
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        named = token.type == tokenize.NAME and token.string not in {"return", *allowed}
        if (
            named
            and any(map(_WORDS.fullmatch, _PARTS.findall(token.string)))
            and token.start[0] not in imports
        ):
            yield token.start[0]


def test_what_every_kind_has_is_not_named_by_reinforcement_learning():
    assert all((ROOT / name).exists() for name in MORE_ROOMS)
    found = lines_that_say_words()
    assert len(found) <= MOST, f"name these by score, progress, samples, trials or subject: {found}"
