"""Whether a run was made by the recipe that is declared now: of another one, it is no evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from research.experiment import Cell, Experiment, recipe_hash
from research.runs.run_file import Row


def has_other_recipe(experiment: Experiment, cell: Cell, rows: Sequence[Row], *, quick: bool = False) -> bool:
    """What an arm takes from other runs, their numbers of actors or their scheduler, is left out: it is theirs."""
    if not rows:
        return False
    arm, declared = experiment.arm(cell.arm), experiment.spec(cell, quick=quick)
    if arm.spends_like is None and arm.scheduler is None:
        return bool(rows[0]["recipe"] != recipe_hash(declared, arm.study))
    wanted = declared.model_dump(mode="json", exclude_unset=True)
    wanted["training"].pop("scaling", None)
    return not _holds(rows[0]["spec"], wanted)


def _holds(value: Any, wanted: Any) -> bool:
    """Whether everything wanted is there; more may be."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(_holds(value.get(key), one) for key, one in wanted.items())
    return bool(value == wanted)
