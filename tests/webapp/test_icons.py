"""A name that the sprite does not have is drawn as a dot, so a typing error would be seen by no one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

from webapp.templatetags.look import _symbols

_ROOT = Path(settings.BASE_DIR)


def _texts() -> dict[str, str]:
    """By name, the modules of webapp."""
    return {
        ".".join(path.relative_to(_ROOT).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in sorted((_ROOT / "webapp").rglob("*.py"))
    }


def _fields(node: ast.ClassDef) -> list[str]:
    annotated = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
    inherited = ["word", "tone", "icon"] if any(ast.unparse(base) == "Pill" for base in node.bases) else []
    return inherited + [target.id for target in annotated if isinstance(target, ast.Name)]


def _with_icons(trees: dict[str, ast.Module]) -> dict[tuple[str, str], int]:
    """By module and name: the classes with a field `icon`, and its place among their fields."""
    return {
        (module, node.name): _fields(node).index("icon")
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "icon" in _fields(node)
    }


def _named_in_code() -> Iterator[tuple[str, str]]:
    texts = _texts()
    classes = _with_icons(
        {module: ast.parse(text) for module, text in texts.items() if "icon" in text or "(Pill)" in text}
    )
    makes_one = re.compile(rf"\b(?:{'|'.join({name for _, name in classes})})\(")
    for module, text in texts.items():
        if not makes_one.search(text):
            continue
        tree = ast.parse(text)
        here = {name: place for (home, name), place in classes.items() if home == module}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found = {one.name: classes.get((str(node.module), one.name)) for one in node.names}
                here |= {name: place for name, place in found.items() if place is not None}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in here:
                given = node.args[here[node.func.id] :][:1]
                given += [keyword.value for keyword in node.keywords if keyword.arg == "icon"]
                for value in given:
                    if isinstance(value, ast.Constant):
                        yield f"{module}:{node.lineno}", value.value


def _named_in_templates() -> Iterator[tuple[str, str]]:
    for path in sorted((_ROOT / "templates").rglob("*.*")):
        for name in re.findall(r'{% icon "([^"]+)"', path.read_text(encoding="utf-8")):
            yield str(path.relative_to(_ROOT)), name


def test_each_icon_that_is_named_can_be_drawn() -> None:
    named = [*_named_in_code(), *_named_in_templates()]
    assert len(named) > 100
    unknown = [one for one in named if one[1] not in _symbols()]
    assert unknown == [], "names of icons are those of bootstrap-icons (node_modules/bootstrap-icons/icons)"
