"""A request's body of several pieces, so that many requests can share a piece in memory."""

from __future__ import annotations

import io
from collections.abc import Sequence


class Pieces(io.RawIOBase):
    """A file over bytes objects, one after the other, that can be read again from the start."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        super().__init__()
        self._pieces = [memoryview(piece) for piece in pieces]
        self._size = sum(map(len, pieces))
        self._at = 0

    def __len__(self) -> int:
        return self._size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        origin = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = min(self._size, max(0, origin + offset))
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        wanted = self._size if size is None or size < 0 else size
        taken: list[memoryview] = []
        begin = 0
        for piece in self._pieces:
            inside = self._at - begin
            begin += len(piece)
            if inside < len(piece) and wanted > 0:
                part = piece[max(0, inside) : max(0, inside) + wanted]
                taken.append(part)
                wanted -= len(part)
                self._at += len(part)
        return b"".join(taken)

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)
