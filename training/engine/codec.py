"""Encodes arrays as bytes: a msgpack header, then the raw buffers; never pickle.

Layout: magic `STRL1`, one byte of flags, the header's length (4 bytes, little endian), the header, the body. The
header holds the plain values and, for each array, its name, dtype, shape and offset; bytes and lists of bytes are in
the body too, with their lengths as the shape. Entries follow one another in the body without gaps. The bytes come
from machines that may be faulty or hostile. So sizes are limited before anything is allocated, only plain numeric
dtypes are allowed, and each byte of the body belongs to one entry. Decoding takes at most twice the body's limit and
a few megabytes for the header.
"""

from __future__ import annotations

import math
import struct
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt
import zstandard

from training.engine import msgpack_limits

Array = npt.NDArray[Any]
Document = dict[str, Any]

_MAGIC = b"STRL1"
_COMPRESSED = 1
_BYTES, _LIST_OF_BYTES = "bytes", "list of bytes"
_PREFIX = struct.Struct("<5sBI")
_DTYPES = {
    name: np.dtype(name)
    for name in ("|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<u2", "<u4", "<u8", "<f4", "<f8")
}

HEADER_LIMIT_BYTES = 4 * 2**20
BODY_LIMIT_BYTES = 2**30
ENTRIES_LIMIT = 4096
PIECES_LIMIT = 65_536
# The memory that decompressing may use beside its result; `encode` never needs more than a sixteenth of it.
_WINDOW_LIMIT_BYTES = 8 * 2**20
_DIMENSIONS_LIMIT = 8


class CodecError(ValueError):
    """The bytes are not a document of this format, or larger than allowed."""


def encode(document: Document, *, compress: bool = False) -> bytes:
    """Return the encoded document. Arrays, bytes and lists of bytes at the top level of `document` become raw
    buffers; the rest goes into the header.

    Raises CodecError for a document that `decode` would reject.
    """
    values: Document = {}
    arrays: list[list[Any]] = []
    buffers: list[memoryview | bytes] = []
    offset = 0
    for name, value in document.items():
        if _is_bytes(value):
            pieces = [value] if isinstance(value, bytes) else value
            kind = _BYTES if isinstance(value, bytes) else _LIST_OF_BYTES
            arrays.append([name, kind, [len(piece) for piece in pieces], offset])
            buffers.extend(pieces)
            offset += sum(map(len, pieces))
            continue
        if not isinstance(value, np.ndarray):
            values[name] = value
            continue
        array = np.ascontiguousarray(value)
        dtype = array.dtype.newbyteorder("<").str if array.dtype.byteorder == ">" else array.dtype.str
        if dtype not in _DTYPES:
            raise CodecError(f"array {name!r} has dtype {array.dtype}, which is not a plain number")
        arrays.append([name, dtype, list(value.shape), offset])
        buffers.append(array.astype(dtype, copy=False).reshape(-1).view(np.uint8).data)
        offset += array.nbytes
    header = msgpack.packb({"values": values, "arrays": arrays, "body_bytes": offset}, use_bin_type=True)
    _check_header(header, arrays)
    body = b"".join(buffers)
    flags = 0
    if compress:
        packed = zstandard.ZstdCompressor(level=1).compress(body)
        if len(packed) < 0.9 * len(body):
            body, flags = packed, _COMPRESSED
    return b"".join((_PREFIX.pack(_MAGIC, flags, len(header)), header, body))


def decode(data: bytes, *, body_limit_bytes: int = BODY_LIMIT_BYTES) -> Document:
    """Return the document, with arrays as read-only views where possible. Raises CodecError for malformed bytes."""
    header, flags, body = _split(data)
    body_bytes = header["body_bytes"]
    if type(body_bytes) is not int or not 0 <= body_bytes <= body_limit_bytes:
        raise CodecError(f"the body would have {body_bytes} bytes; at most {body_limit_bytes} are allowed")
    if flags & _COMPRESSED:
        body = _decompressed(body, body_bytes)
    if len(body) != body_bytes:
        raise CodecError(f"the body has {len(body)} bytes; the header says {body_bytes}")
    document: Document = dict(header["values"])
    begin = 0
    for entry in header["arrays"]:
        name, value, end = _entry(entry, body, begin)
        if name in document:
            raise CodecError(f"array {name!r} is there twice")
        document[name], begin = value, end
    if begin != body_bytes:
        raise CodecError(f"{body_bytes - begin} bytes of the body belong to no array")
    return document


def _decompressed(body: memoryview, body_bytes: int) -> memoryview:
    """Return the decompressed body: one frame that must itself state `body_bytes`, because that much is allocated at
    once.

    The library's own `max_output_size` applies only to frames that do not state their size.
    """
    try:
        stated = zstandard.get_frame_parameters(body).content_size
        if stated != body_bytes:
            raise CodecError(f"the body states {stated} bytes; the header says {body_bytes}")
        unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW_LIMIT_BYTES)
        return memoryview(unpacker.decompress(body, allow_extra_data=False))
    except zstandard.ZstdError as error:
        raise CodecError(f"the body does not decompress: {error}") from None


def _is_bytes(value: Any) -> bool:
    """Whether it is bytes, or a list of bytes. An empty list goes into the header."""
    return isinstance(value, bytes) or (
        isinstance(value, list) and bool(value) and all(isinstance(piece, bytes) for piece in value)
    )


def _split(data: bytes) -> tuple[Document, int, memoryview]:
    if len(data) < _PREFIX.size:
        raise CodecError("too short to be a document")
    magic, flags, header_bytes = _PREFIX.unpack_from(data)
    if magic != _MAGIC:
        raise CodecError("does not begin like a Starling document")
    if flags & ~_COMPRESSED:
        raise CodecError(f"unknown flags {flags}")
    if header_bytes > HEADER_LIMIT_BYTES or _PREFIX.size + header_bytes > len(data):
        raise CodecError(f"the header claims {header_bytes} bytes")
    view = memoryview(data)
    packed = bytes(view[_PREFIX.size : _PREFIX.size + header_bytes])
    try:
        header = msgpack_limits.unpack(packed)
    except ValueError as error:
        raise CodecError(f"the header cannot be read: {error}") from None
    if not isinstance(header, dict) or set(header) != {"values", "arrays", "body_bytes"}:
        raise CodecError("the header is not a Starling header")
    if not isinstance(header["values"], dict) or not isinstance(header["arrays"], list):
        raise CodecError("the header is not a Starling header")
    if not all(isinstance(name, str) for name in header["values"]):
        raise CodecError("the header is not a Starling header")
    if len(header["arrays"]) > ENTRIES_LIMIT:
        raise CodecError(f"{len(header['arrays'])} arrays; at most {ENTRIES_LIMIT} are allowed")
    return header, flags, view[_PREFIX.size + header_bytes :]


def _check_header(packed: bytes, arrays: list[list[Any]]) -> None:
    """Raise CodecError unless `_split` and `_entry` would accept a header of that size."""
    if len(packed) > HEADER_LIMIT_BYTES:
        raise CodecError(
            f"the header would have {len(packed)} bytes; at most {HEADER_LIMIT_BYTES} are allowed"
        )
    if len(arrays) > ENTRIES_LIMIT or any(len(shape) > PIECES_LIMIT for _, _, shape, _ in arrays):
        raise CodecError(f"more than {ENTRIES_LIMIT} arrays, or a list of more than {PIECES_LIMIT} pieces")
    try:
        msgpack_limits.check(packed)
    except ValueError as error:
        raise CodecError(f"the header could not be read again: {error}") from None


def _entry(entry: Any, body: memoryview, begin: int) -> tuple[str, Any, int]:
    """Return the name and value of the entry that begins at `begin` in the body, and where it ends."""
    if not isinstance(entry, list) or len(entry) != 4:
        raise CodecError("an array is described wrongly")
    name, kind, shape, offset = entry
    if not isinstance(name, str) or not isinstance(kind, str) or not isinstance(shape, list):
        raise CodecError("an array is described wrongly")
    item = _DTYPES.get(kind)
    if item is None and kind not in (_BYTES, _LIST_OF_BYTES):
        raise CodecError(f"array {name!r} is described wrongly")
    if type(offset) is not int or len(shape) > (
        PIECES_LIMIT if kind == _LIST_OF_BYTES else _DIMENSIONS_LIMIT
    ):
        raise CodecError(f"array {name!r} is described wrongly")
    if not all(type(size) is int and 0 <= size <= BODY_LIMIT_BYTES for size in shape):
        raise CodecError(f"array {name!r} is described wrongly")
    if offset != begin:
        raise CodecError(f"array {name!r} begins at {offset}, not at {begin} where the one before it ends")
    byte_count = sum(shape) if item is None else math.prod(shape) * item.itemsize
    if byte_count > len(body) - begin or (kind == _BYTES and len(shape) != 1):
        raise CodecError(f"array {name!r} reaches past the end")
    end = begin + byte_count
    if item is None:
        pieces = _pieces(shape, body[begin:end])
        return name, pieces[0] if kind == _BYTES else pieces, end
    # An array without elements may still have sides too long for numpy.
    if math.prod(max(size, 1) for size in shape) > BODY_LIMIT_BYTES:
        raise CodecError(f"array {name!r} is described wrongly")
    return name, np.ndarray(shape, item, body, begin), end


def _pieces(lengths: list[int], body: memoryview) -> list[bytes]:
    pieces, begin = [], 0
    for length in lengths:
        pieces.append(bytes(body[begin : begin + length]))
        begin += length
    return pieces
