"""What requests carry: a spec of a file with changes by path, such as training.seed=7, and a file as a form."""

from __future__ import annotations

import importlib
import json
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .starling import StarlingError


def wrong(why: str, fix: str) -> StarlingError:
    """An error before anything was sent."""
    return StarlingError("Nothing was sent.", why, fix, status=400)


def put(document: dict[str, Any], path: str, value: Any) -> None:
    """Set the field at the path. Raises StarlingError if the path leads through a value."""
    *tables, name = path.split(".")
    here = document
    for table in tables:
        inner = here.setdefault(table, {})
        if not isinstance(inner, dict):
            raise wrong(f"{table} in {path} is no table of fields.", "See the spec with `jobs spec`.")
        here = inner
    here[name] = value


SPEC_FILES = (".json", ".toml", ".yaml", ".yml")


def read_spec(path: str) -> Any:
    """What a file of one of these languages holds. Raises StarlingError."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        raise wrong(f"{path} cannot be read: {error.strerror}.", "Name a file, or a preset.") from None
    except ValueError:
        raise wrong(f"{path} is no text in UTF-8.", "Save it as UTF-8.") from None
    return parse(text, path)


def parse(text: str, name: str) -> Any:
    """The document, in the language that the name ends with: JSON without an ending. Raises StarlingError."""
    faults: tuple[type[Exception], ...] = (ValueError, TypeError, RecursionError)
    if name.endswith(".toml"):
        load, language = _tomllib().loads, "TOML"
    elif name.endswith((".yaml", ".yml")):
        yaml = _yaml()
        load, language, faults = yaml.safe_load, "YAML", (*faults, yaml.YAMLError)
    else:
        load, language = json.loads, "JSON"
    try:
        document = load(text)
        json.dumps(document)  # a date of TOML or YAML has no JSON
    except faults as error:
        why = f"{name} is no {language}: {' '.join(str(error).split())}."
        raise wrong(why, "Correct it, and try again.") from None
    return document


def _tomllib() -> Any:
    try:
        return importlib.import_module("tomllib")
    except ImportError:
        raise wrong("TOML needs Python 3.11 or later.", "Use it, or write the spec as JSON.") from None


def _yaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError:
        raise wrong(
            "YAML needs the package PyYAML.", "pip install pyyaml, or write the spec as JSON or TOML."
        ) from None


_PIECE_BYTES = 2**20


class FileForm:
    """A multipart form with text fields and one file, as `file`. `headers` are those of its request."""

    def __init__(self, path: Path, fields: dict[str, str]) -> None:
        boundary = uuid.uuid4().hex
        name = path.name.replace("\\", "_").replace('"', "_")
        parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value
                 in fields.items()]  # fmt: skip
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
        )
        self._path = path
        self._head, self._tail = "".join(parts).encode(), f"\r\n--{boundary}--\r\n".encode()
        size = len(self._head) + path.stat().st_size + len(self._tail)
        self.headers = {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(size),
        }

    def __iter__(self) -> Iterator[bytes]:
        """The form in pieces. On a terminal, standard error says how much of the file has gone out."""
        size, sent = self._path.stat().st_size, 0
        yield self._head
        with self._path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece
                sent += len(piece)
                if sys.stderr.isatty():
                    said = f"{self._path.name}: {_megabytes(sent)} of {_megabytes(size)} MB"
                    print(f"\r\x1b[K{said}", end="" if sent < size else "\n", file=sys.stderr, flush=True)
        yield self._tail


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f}"
