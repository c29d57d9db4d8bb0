"""Presets: whole specs to start from, one TOML document each in `preset_files/`.

A preset is found by being there. Its table `[preset]` says how it is offered: title, one line, and a rank; the first
few ranks are shown at once, the others on demand.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from webapp.jobs.spec import JobSpec

_FOLDER = Path(__file__).parent / "preset_files"
_FIRST_RANKS = 9


class Preset(NamedTuple):
    name: str
    title: str
    description: str
    first: bool
    spec: JobSpec


@cache
def presets() -> dict[str, Preset]:
    """Every preset by its name, in the order in which forms offer them."""
    return {
        name: Preset(
            name,
            _written(name)["preset"]["title"],
            _written(name)["preset"]["description"],
            _written(name)["preset"]["rank"] <= _FIRST_RANKS,
            JobSpec.model_validate(preset_document(name)),
        )
        for name in preset_names()
    }


@cache
def preset_names() -> list[str]:
    names = [path.stem for path in _FOLDER.glob("*.toml")]
    return sorted(names, key=lambda name: (_written(name)["preset"]["rank"], name))


def preset_document(name: str) -> dict[str, Any]:
    """The spec as it is written, before validation, for changing single values."""
    document = _written(name)
    del document["preset"]
    return document


def _written(name: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text())
