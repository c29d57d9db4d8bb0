"""Tables that must be refused: how they are made, and the sentence that refuses them."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.data.manifest import Manifest
from training.data.readers.choice import Choice
from training.data.readers.opening import open_table
from training.data.readers.preparing import prepare
from training.data.readers.survey import survey
from training.data.readers.tables import TableRefused
from training.data.store import MemoryStore

BODY = "a,b,colour,y\n" + "".join(
    f"{at},{at % 7 / 2},{'red' if at % 3 else 'blue'},{at % 2}\n" for at in range(100)
)


def refusal(path: Path, content: str | bytes, name: str = "t.csv") -> str:
    file = path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(TableRefused) as refused:
        survey(open_table(file))
    return str(refused.value)


def archive(**files: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in files.items():
            packed.writestr(name, content)
    return out.getvalue()


def npy(array: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array, **options)
    return out.getvalue()


def header(shape: str, descr: str = "'<f8'") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


GOOD = npy(np.arange(20.0))


def prepared(path: Path, choice: Choice, store: MemoryStore | None = None) -> Manifest:
    """The data set that is made of the table, with scratch files beside it. Raises TableRefused."""
    return prepare(
        open_table(path),
        survey(open_table(path)),
        choice,
        MemoryStore() if store is None else store,
        name="t",
        source="",
        scratch_folder=path.parent,
    )
