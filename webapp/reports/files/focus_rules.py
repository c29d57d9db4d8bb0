"""FOCUS 1.2's rules for our columns, read from the file beside this one."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from training.base_model import FrozenModel

_FILE = Path(__file__).with_name("focus_1_2.toml")


class FocusColumn(FrozenModel):
    """One column; the file of rules explains the fields."""

    name: str
    kind: Literal["text", "decimal", "moment", "currency", "json"]
    level: Literal["mandatory", "conditional", "recommended", "carried"]
    nullable: bool
    values: tuple[str, ...] = ()
    filled_for_usage: bool = False
    pair: str = ""
    needs: str = ""


class FocusRules(FrozenModel):
    column: tuple[FocusColumn, ...] = Field(min_length=1)
    subcategories: dict[str, tuple[str, ...]]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.column]


@cache
def rules() -> FocusRules:
    return FocusRules.model_validate(tomllib.loads(_FILE.read_text(encoding="utf-8")))
