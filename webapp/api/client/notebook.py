"""Where a run is watched: a notebook's cell, whose picture is replaced in place, or a terminal's line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, Protocol

_WIDEST = 160


class Display(Protocol):
    """Shows a run as it is now. `picture` is called only where pictures can be seen."""

    def __enter__(self) -> Display: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, line: str, picture: Callable[[], str]) -> None: ...

    def tell(self, sentence: str) -> None: ...


def open_display() -> Display:
    """The display that this process has: a notebook's if it runs in a kernel."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return _Cell() if getattr(shell, "kernel", None) is not None else _Line()


class _Cell:
    """The output of a notebook's cell."""

    def __init__(self) -> None:
        self._library: Any = importlib.import_module("IPython.display")
        self._handle: Any = None

    def __enter__(self) -> _Cell:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, line: str, picture: Callable[[], str]) -> None:
        content = self._library.HTML(picture())
        if self._handle is None:
            self._handle = self._library.display(content, display_id=True)
        else:
            self._handle.update(content)

    def tell(self, sentence: str) -> None:
        print(sentence)


class _Line:
    """One line of a terminal, written over; into a file or a pipe, a line for each change."""

    def __init__(self) -> None:
        self._in_place = sys.stdout.isatty()
        self._shown = ""

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *_: object) -> None:
        if self._in_place and self._shown:
            print()

    def show(self, line: str, picture: Callable[[], str]) -> None:
        line = line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"
        if line == self._shown:
            return
        if self._in_place:
            print(f"\r{line:<{len(self._shown)}}", end="", flush=True)
        else:
            print(line, flush=True)
        self._shown = line

    def tell(self, sentence: str) -> None:
        print(f"\n{sentence}" if self._in_place and self._shown else sentence)
