"""A file as a form, read piece by piece while it is sent."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

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
        yield self._head
        with self._path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                yield piece
        yield self._tail
