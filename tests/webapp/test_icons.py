"""A name that the sprite does not have is drawn as a dot, so a typing error would be seen by nobody."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from webapp.templatetags.look import _symbols

_ROOT = Path(settings.BASE_DIR)
_TREES = {
    path.relative_to(_ROOT): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted((_ROOT / "webapp").rglob("*.py"))
}


def _fields_of_icons() -> dict[str, int]:
    """The classes with a field `icon`, and its place among their fields."""
    found = {}
    for tree in _TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                fields = [
                    one.target.id
                    for one in node.body
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
                ]
                if "icon" in fields:
                    found[node.name] = fields.index("icon")
    return found


def _named_in_code() -> Iterator[tuple[str, str]]:
    places = _fields_of_icons() | {"Look": _fields_of_icons()["Pill"]}
    for path, tree in _TREES.items():
        for node in ast.walk(tree):
            if not (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in places
            ):
                continue
            given = [
                *node.args[places[node.func.id] :][:1],
                *(k.value for k in node.keywords if k.arg == "icon"),
            ]
            for value in given:
                if isinstance(value, ast.Constant):
                    yield f"{path}:{node.lineno}", value.value


def _named_in_templates() -> Iterator[tuple[str, str]]:
    for path in sorted((_ROOT / "templates").rglob("*.*")):
        for name in re.findall(r'{% icon "([^"]+)"', path.read_text(encoding="utf-8")):
            yield str(path.relative_to(_ROOT)), name


def test_each_icon_that_is_named_can_be_drawn() -> None:
    named = [*_named_in_code(), *_named_in_templates()]
    assert len(named) > 100
    assert [one for one in named if one[1] not in _symbols()] == []
