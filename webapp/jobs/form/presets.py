"""Presets: complete specs to start from, one TOML document each in `preset_files/`.

A new file is a new preset. Its table `[preset]` gives title, one line, rank (the first few are shown at
once), the source of its numbers, and the expected result.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from webapp.formatting import format_score
from webapp.jobs.spec import JobSpec

_FOLDER = Path(__file__).parent / "preset_files"
_FIRST_RANKS = 9
_ALGORITHMS = {
    "ppo": "PPO",
    "a2c": "A2C",
    "impala": "IMPALA",
    "impact": "IMPACT",
    "logistic": "Logistic regression",
    "click_through": "Click-through",
    "lenet": "LeNet",
}


class Preset(NamedTuple):
    """A preset. `expected_score` with `expected`: its source, or why there is none. `expected_usd` is the
    forecast's range; None if it depends on another choice. `paper` is its publication, if any."""

    name: str
    title: str
    description: str
    first: bool
    spec: JobSpec
    source: str
    expected: str
    expected_score: float | None = None
    expected_usd: tuple[float, float] | None = None
    paper: str = ""

    @property
    def algorithm(self) -> str:
        kind = self.spec.training.method
        return _ALGORITHMS.get(kind, kind)

    @property
    def score_words(self) -> str:
        if self.expected_score is None:
            return "no score known"
        score = self.spec.training.score
        known = format_score(self.expected_score, decimals=0 if score.higher_is_better else 3)
        return f"about {known}" if score.higher_is_better else f"{score.name} about {known}"

    @property
    def cost_words(self) -> str:
        if self.expected_usd is None:
            return "cost as its scheduler decides"
        low, high = self.expected_usd
        return f"${low:g}–{high:g}" if high else "costs nothing"


@cache
def presets() -> dict[str, Preset]:
    """Return every preset by name, in the order in which forms show them."""
    return {name: _preset(name) for name in preset_names()}


def _preset(name: str) -> Preset:
    offered = _written(name)["preset"]
    first = offered.pop("rank") <= _FIRST_RANKS
    if "expected_usd" in offered:
        offered["expected_usd"] = tuple(offered["expected_usd"])
    return Preset(name=name, first=first, spec=JobSpec.model_validate(preset_document(name)), **offered)


@cache
def preset_names() -> list[str]:
    names = [path.stem for path in _FOLDER.glob("*.toml")]
    return sorted(names, key=lambda name: (_written(name)["preset"]["rank"], name))


def preset_document(name: str) -> dict[str, Any]:
    """Return the spec as written, before validation, so that single values can be changed."""
    document = _written(name)
    del document["preset"]
    return document


def _written(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text())
