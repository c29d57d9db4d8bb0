"""Files in known formats (`training.data.formats`), recognised by their contents: alone, or several packed into one."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO

from training.data.dataset import BadTable, write_dataset
from training.data.formats import FORMATS
from training.data.formats.opening import LINE_LIMIT_BYTES, UNREADABLE, decoded, opened
from training.data.manifest import Manifest
from training.data.readers.tables import MOST_UNPACKED_BYTES, TableRefused
from training.data.store import WritableDataStore

MOST_FILES = 8
_IDX = (b"\x00\x00\x08\x01", b"\x00\x00\x08\x03")
_ZIP, _TAR, _TAR_AT = b"PK\x03\x04", b"ustar", 257
_CELLS_OF_A_CLICK = 40
_REVIEW = re.compile(r"(?:^|/)(pos|neg)/[^/]+\.txt$")
_CHUNK = 2**20


def known_format(path: Path) -> str | None:
    """Return the key of the format that the file is in; None for any other table. Raises TableRefused."""
    try:
        with opened(path) as file:
            head = file.read(_TAR_AT + len(_TAR))
            line = decoded(head + file.readline(LINE_LIMIT_BYTES)).partition("\n")[0]
        if head[:4] in _IDX:
            return "mnist"
        if head[:4] == _ZIP or head[_TAR_AT:] == _TAR:
            return _format_of(path)
    except UNREADABLE:
        return None  # the reader of tables says what is wrong
    cells = line.split("\t")
    if len(cells) == _CELLS_OF_A_CLICK and cells[0] in ("0", "1"):
        return "click_log"
    return "reviews" if line.startswith("__label__") else None


def _format_of(path: Path) -> str | None:
    """Return what an archive holds, by its first files."""
    for number, (name, file) in enumerate(_members(path)):
        first = file.read(4)
        if first in _IDX or (first[:2] == b"\x1f\x8b" and "idx" in name):
            return "mnist"
        if _REVIEW.search(name) or _says_side(name):
            return "reviews"
        if number + 1 >= MOST_FILES:
            break
    return None


def store_known(
    path: Path, key: str, store: WritableDataStore, *, name: str, file_name: str, folder: Path
) -> Manifest:
    """Store the data set that the file holds and return its manifest. `folder` is for what is unpacked; the caller
    removes it. Raises TableRefused.
    """
    try:
        files = _files(path, key, file_name, folder)
    except TableRefused:
        raise
    except UNREADABLE as error:
        raise TableRefused(f"The archive is damaged: {str(error) or type(error).__name__}.") from None
    try:
        return write_dataset(replace(FORMATS[key].read(files), name=name), store)
    except BadTable as error:
        raise TableRefused(str(error)) from None


def _files(path: Path, key: str, file_name: str, folder: Path) -> list[Path]:
    """Return the files to read, under the names that the person gave them."""
    if _packs_files(path) and not (key == "reviews" and _holds_reviews(path)):
        return list(_unpacked(path, folder))
    alone = folder / _plain(file_name)
    alone.hardlink_to(path)
    return [alone]


def _packs_files(path: Path) -> bool:
    with opened(path) as file:
        head = file.read(_TAR_AT + len(_TAR))
    return head[:4] == _ZIP or head[_TAR_AT:] == _TAR


def _holds_reviews(path: Path) -> bool:
    """Whether it is an archive of one file a review, which is read without being unpacked."""
    return any(_REVIEW.search(name) for name, _ in islice(_members(path), MOST_FILES))


def _unpacked(path: Path, folder: Path) -> Iterator[Path]:
    byte_count = 0
    for number, (name, file) in enumerate(_members(path)):
        if number >= MOST_FILES:
            raise TableRefused(
                f"The archive has more than {MOST_FILES} files. Pack only those of the data set."
            )
        target = folder / f"{number}-{_plain(name)}"
        with target.open("wb") as out:
            while piece := file.read(_CHUNK):
                byte_count += len(piece)
                if byte_count > MOST_UNPACKED_BYTES:
                    limit = MOST_UNPACKED_BYTES // 10**9
                    raise TableRefused(
                        f"The archive unpacks to more than {limit} GB. Upload a part of its rows."
                    )
                out.write(piece)
        yield target


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield name and contents of each plain file in the archive. It and reading those raises UNREADABLE."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if not entry.is_dir() and not entry.flag_bits & 1:
                    with archive.open(entry) as file:
                        yield entry.filename, file
        return
    with tarfile.open(path, "r|*") as packed:
        for member in packed:
            file_of = packed.extractfile(member) if member.isreg() else None
            if file_of is not None:
                yield member.name, file_of


def _says_side(name: str) -> bool:
    """Whether a file of texts says which side they are on: reviews.neg and reviews.pos, say."""
    last = name.lower().rpartition("/")[2]
    return last.endswith((".txt", ".neg", ".pos")) and ("neg" in last or "pos" in last)


def _plain(name: str) -> str:
    """Return a name without folders, for a file in a folder of our own."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return re.sub(r"[^A-Za-z0-9._-]", "_", last).lstrip(".")[-80:] or "file"
