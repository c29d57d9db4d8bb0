"""Presets: whole specs to start from, one TOML document each in `preset_files/`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from webapp.jobs.spec import JobSpec

_FOLDER = Path(__file__).parent / "preset_files"

# In the order in which the form offers them.
_LINES = {
    "cartpole": ("Cart pole", "Balance a pole on this machine; solved in under a minute."),
    "hopper": ("Hopper", "Make one leg hop, on this machine: a million steps in some minutes."),
    "hopper-simulated": (
        "Hopper, simulated cloud",
        "The same on simulated functions, with their time and their bill.",
    ),
}


class Preset(NamedTuple):
    name: str
    title: str
    description: str
    spec: JobSpec


@cache
def presets() -> dict[str, Preset]:
    """Every preset by its name."""
    return {
        name: Preset(name, title, description, JobSpec.model_validate(preset_document(name)))
        for name, (title, description) in _LINES.items()
    }


def preset_names() -> list[str]:
    return list(_LINES)


def preset_document(name: str) -> dict[str, Any]:
    """The preset as it is written, before validation, for changing single values."""
    return tomllib.loads((_FOLDER / f"{name}.toml").read_text())
