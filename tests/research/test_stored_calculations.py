"""Stored calculations are of the profiles and prices of today: computed again, each gives the figures on its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from research import calculation
from tests.research.stored_rows import stored

_LONG = {"nitro_scalability", "siren_agent", "stellaris_turns"}
_NAMES = [name for name in calculation.names() if not calculation.find(name).measures]


def alike(now: Any, then: Any) -> bool:
    """Numbers to nine digits: the last ones are the processor's."""
    if isinstance(now, dict):
        return now.keys() == then.keys() and all(alike(now[name], then[name]) for name in now)
    if isinstance(now, list):
        return len(now) == len(then) and all(map(alike, now, then))
    return bool(now == (pytest.approx(then, rel=1e-9) if isinstance(now, float) else then))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in _LONG else []) for name in _NAMES]
)
def test_computed_again_it_gives_what_is_stored(name: str, tmp_path: Path) -> None:
    now = json.loads(json.dumps(calculation.write(name, tmp_path, tmp_path)))
    then = stored(name)
    for part in ("title", "question", "oracle", "can_claim", "beside", "verdicts", "tables"):
        assert alike(now[part], then[part]), f"{part} is old: run `manage.py papers report {name}`"


def test_only_what_is_measured_here_may_differ() -> None:
    assert set(calculation.names()) - set(_NAMES) == {"nitro_overhead"}
