"""Files of numbers by name: those that come with Starling, and those measured on this installation."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from cloud.timing.numbers.quantity import ProfileError

Model = TypeVar("Model")


class NumberFiles(Generic[Model]):
    """Models of one kind. `mark` is the key that distinguishes a file of this kind from others in the same folder.

    A file that comes with Starling takes precedence over one of the same name elsewhere.
    """

    def __init__(self, home: Path, what: str, mark: str, read: Callable[[Path], Model]) -> None:
        self._home = home
        self._what = what
        self._mark = mark
        self._read = read
        self._others: list[Path] = []
        self._unlisted: list[Path] = []
        self._loaded: dict[str, tuple[Path, int, Model]] = {}

    def add_folder(self, folder: Path, *, listed: bool = True) -> None:
        """Also use the files of that folder, which need not exist yet. Not `listed`: only for who knows their names."""
        folders = self._others if listed else self._unlisted
        if folder not in folders:
            folders.append(folder)

    def names(self) -> list[str]:
        """Return all names that are listed. Files elsewhere that are not of the kind, or have a fault, are left
        out.
        """
        known = {path.stem for path in self._home.glob("*.toml")}
        for folder in self._others:
            known |= {path.stem for path in folder.glob("*.toml") if self._fits(path)}
        return sorted(known)

    def load(self, name: str) -> Model:
        """Return the model of that name; a changed file is read again. Raises ProfileError if it does not exist or
        has a fault.
        """
        path = self._path(name)
        if path is None:
            raise ProfileError(
                f"there is no {self._what} named {name!r}; there are {', '.join(self.names())}"
            )
        written_ns = path.stat().st_mtime_ns
        known = self._loaded.get(name)
        if known is None or known[:2] != (path, written_ns):
            known = self._loaded[name] = (path, written_ns, self._read(path))
        return known[2]

    def _path(self, name: str) -> Path | None:
        if not name or Path(name).name != name or name.startswith("."):
            return None
        paths = (folder / f"{name}.toml" for folder in (self._home, *self._others, *self._unlisted))
        return next((path for path in paths if path.is_file()), None)

    def _fits(self, path: Path) -> bool:
        try:
            if self._mark not in tomllib.loads(path.read_text("utf-8")):
                return False
            self.load(path.stem)
        except (OSError, ValueError):
            return False
        return True
