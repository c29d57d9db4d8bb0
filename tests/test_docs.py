"""Documents name files and modules that exist: a path or a dotted name that was left behind by a rename fails here."""

from __future__ import annotations

import ast
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.servers import ROOT

FOLDERS = (
    "training",
    "cloud",
    "emulator",
    "webapp",
    "research",
    "tests",
    "benchmarks",
    "rig",
    "docs",
    "templates",
    "static",
)
# Not the others: `training.seed` is a path in a spec, `cloud` and `tests` are common names of variables.
_PACKAGES = ("webapp", "research", "benchmarks")
ROOMS = ("training", "cloud", "emulator", "client", "webapp", "research")
# Files that a document tells its readers to make.
EXAMPLES = {"training/scaling/halving.py"}
_EXAMPLE_MODULES = {"webapp.somewhere"}
# Tasks keep their names, wherever their functions are.
_TASKS = set(re.findall(r'name="([\w.]+)"', (ROOT / "webapp" / "tasks.py").read_text("utf-8")))
_CODE_OR_LINK = re.compile(r"`([^`\s]+)`|\]\(([^)\s]+)\)")
_DOTTED = re.compile(rf"(?<![\w./-])(?:{'|'.join(_PACKAGES)})(?:\.[a-z_]\w*)+")
_PLACEHOLDER = re.compile(r"[A-Z]{3,}|[*{}<>…]")


def _tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.split("\n") if name]


def _documents() -> list[Path]:
    return [path for path in _tracked("*.md") if path.parent.name != "results"]


def _paths_named(document: Path, text: str) -> Iterator[Path]:
    """Files that links lead to, and those in backticks that begin with one of our folders."""
    for match in _CODE_OR_LINK.finditer(text):
        code, link = match.groups()
        if link and not re.match(r"[a-z]+:|#", link):
            yield document.parent / link.partition("#")[0]
        elif code and code.startswith(tuple(f"{folder}/" for folder in FOLDERS)) and code not in EXAMPLES:
            yield ROOT / code.partition(":")[0]


def _missing_paths(document: Path, text: str) -> list[str]:
    named = {os.path.normpath(path) for path in _paths_named(document, text)}
    return sorted(
        path
        for path in named
        if not _PLACEHOLDER.search(path.removeprefix(str(ROOT))) and not Path(path).exists()
    )


def _missing_modules(text: str) -> list[str]:
    """Dotted names whose module is not there. What follows a module may be anything it holds."""
    return sorted(
        {name for name in _DOTTED.findall(text) if not _is_module_or_of_one(name)} - _EXAMPLE_MODULES - _TASKS
    )


def _is_module_or_of_one(name: str) -> bool:
    folder, parts = ROOT, name.split(".")
    for number, part in enumerate(parts):
        if (folder / f"{part}.py").exists() or part.startswith("__"):
            return True
        if not (folder / part).is_dir():
            # An attribute of a package, such as `webapp.celery_app`, needs a package that holds it.
            return number > 1 and f"{part}" in (folder / "__init__.py").read_text()
        folder = folder / part
    return True


@pytest.mark.parametrize("document", _documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_names_files_that_exist(document: Path) -> None:
    text = document.read_text("utf-8")
    assert (_missing_paths(document, text), _missing_modules(text)) == ([], [])


@pytest.mark.parametrize("room", ROOMS)
def test_every_file_and_folder_says_what_it_is_for(room: str) -> None:
    """The architecture maps no files: their first lines do."""
    silent = [
        path.relative_to(ROOT)
        for path in (ROOT / room).rglob("*.py")
        if "migrations" not in path.parts and ast.get_docstring(ast.parse(path.read_text("utf-8"))) is None
    ]
    assert not silent


@pytest.mark.parametrize("room", ROOMS)
def test_a_folder_names_files_and_folders_that_it_has(room: str) -> None:
    missing = {
        str(package.relative_to(ROOT)): names
        for package in (ROOT / room).rglob("__init__.py")
        if (
            names := _missing_parts(
                package.parent, ast.get_docstring(ast.parse(package.read_text("utf-8"))) or ""
            )
        )
    }
    assert not missing


def _missing_parts(folder: Path, text: str) -> list[str]:
    """Names in backticks, such as `parts/`, `file.py`, `file` and `file.Class`, that lead nowhere."""
    named = re.findall(r"`([a-z_]+(?:[./][\w./]+)?/?)`", text)
    return [name for name in named if not any(_leads_somewhere(base, name) for base in (folder, ROOT))]


def _leads_somewhere(base: Path, name: str) -> bool:
    """A file or folder, or something in a module, as `parts.module.Class`."""
    parts = name.split(".")
    modules = ("/".join(parts[: count + 1]) for count in range(len(parts)))
    return any((base / path).exists() for path in (name, "/".join(parts), *(f"{one}.py" for one in modules)))


def test_code_and_settings_name_modules_that_exist() -> None:
    """In imports, in strings for patches and tasks, in comments and in the tools' settings."""
    sources = _tracked("*.py", "*.toml", "*.html", "Makefile")
    found = {
        path: _missing_modules(path.read_text("utf-8"))
        for path in sources
        if path != Path(__file__).resolve()
    }
    assert {str(path.relative_to(ROOT)): names for path, names in found.items() if names} == {}


def test_what_is_not_there_is_found() -> None:
    text = "See `webapp/nowhere.py`, [this](nowhere.md) and `docs/NAME.md`; webapp.nowhere.thing, training.engine.train"
    assert _missing_paths(ROOT / "README.md", text) == [
        str(ROOT / "nowhere.md"),
        str(ROOT / "webapp/nowhere.py"),
    ]
    assert _missing_modules(text) == ["webapp.nowhere.thing"]
