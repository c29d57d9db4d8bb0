"""What emulated functions and containers run in: a Python with the packages that clouds get, and no others.

The packages are this machine's own copies, by links, so nothing is fetched or copied.
"""

from __future__ import annotations

import importlib.metadata
import sysconfig
import venv
from functools import cached_property
from pathlib import Path

from cloud.actor.bundle import PACKAGES, RUNTIME_PACKAGES, copy_sources


class Image:
    """Its parts are made when they are first used, below `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def python(self) -> str:
        """The program of a virtual environment with the packages. Processes that it starts see no others either."""
        place = self._folder / "python"
        venv.EnvBuilder(symlinks=True).create(place)
        where = {"base": str(place), "platbase": str(place)}
        site = Path(sysconfig.get_path("purelib", "venv", vars=where))
        for name in (*PACKAGES, *RUNTIME_PACKAGES):
            _link(importlib.metadata.distribution(name), site)
        return str(Path(sysconfig.get_path("scripts", "venv", vars=where)) / "python")

    @cached_property
    def sources(self) -> Path:
        """A folder with our own modules, as an image has them."""
        place = self._folder / "sources"
        copy_sources(place)
        return place


def _link(distribution: importlib.metadata.Distribution, site: Path) -> None:
    """Link the modules and folders of a distribution into `site`. Its programs, which lie elsewhere, are left out."""
    names = {file.parts[0] for file in distribution.files or ()}
    for name in names - {"..", "__pycache__"}:
        (site / name).symlink_to(str(distribution.locate_file(name)))
