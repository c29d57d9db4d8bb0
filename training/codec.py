"""Arrays to bytes and back: a msgpack header, then the raw buffers; never pickle.

Layout: magic `STRL1`, one byte of flags, the header's length (4 bytes, little endian), the header, the body.
The header holds the plain values and, for each array, its name, dtype, shape and offset; bytes and lists of bytes lie
in the body too, with their lengths for a shape. What is decoded comes from
machines that may be wrong or hostile, so sizes are capped before anything is allocated and only plain numeric
dtypes are let through.
"""

from __future__ import annotations

import struct
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt
import zstandard

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
ARRAY_LIMIT = 65_536


class CodecError(ValueError):
    """The bytes are not a document of ours, or larger than allowed."""


def encode(document: Document, *, compress: bool = False) -> bytes:
    """Arrays, bytes and lists of bytes at the top level of `document` become raw buffers; the rest is the header."""
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
    body = b"".join(buffers)
    flags = 0
    if compress:
        packed = zstandard.ZstdCompressor(level=1).compress(body)
        if len(packed) < 0.9 * len(body):
            body, flags = packed, _COMPRESSED
    return b"".join((_PREFIX.pack(_MAGIC, flags, len(header)), header, body))


def decode(data: bytes, *, body_limit_bytes: int = BODY_LIMIT_BYTES) -> Document:
    """The document, with arrays as read-only views where possible. CodecError for anything unexpected."""
    header, flags, body = _split(data)
    body_bytes = header["body_bytes"]
    if not isinstance(body_bytes, int) or not 0 <= body_bytes <= body_limit_bytes:
        raise CodecError(f"the body would have {body_bytes} bytes; at most {body_limit_bytes} are allowed")
    if flags & _COMPRESSED:
        try:
            # The declared size is the cap: a bomb that unpacks to more is an error, not an allocation.
            body = memoryview(
                zstandard.ZstdDecompressor().decompress(bytes(body), max_output_size=body_bytes)
            )
        except zstandard.ZstdError as error:
            raise CodecError(f"the body does not decompress: {error}") from None
    if len(body) != body_bytes:
        raise CodecError(f"the body has {len(body)} bytes; the header says {body_bytes}")
    document: Document = dict(header["values"])
    for entry in header["arrays"]:
        name, value = _array(entry, body)
        document[name] = value
    return document


def _is_bytes(value: Any) -> bool:
    """Bytes, or a list of nothing but bytes; an empty list is as good in the header."""
    return isinstance(value, bytes) or (
        isinstance(value, list) and bool(value) and all(isinstance(piece, bytes) for piece in value)
    )


def _split(data: bytes) -> tuple[Document, int, memoryview]:
    if len(data) < _PREFIX.size:
        raise CodecError("too short to be a document")
    magic, flags, header_bytes = _PREFIX.unpack_from(data)
    if magic != _MAGIC:
        raise CodecError("does not begin like a document of ours")
    if flags & ~_COMPRESSED:
        raise CodecError(f"unknown flags {flags}")
    if header_bytes > HEADER_LIMIT_BYTES or _PREFIX.size + header_bytes > len(data):
        raise CodecError(f"the header claims {header_bytes} bytes")
    view = memoryview(data)
    try:
        header = msgpack.unpackb(view[_PREFIX.size : _PREFIX.size + header_bytes], raw=False)
    except (ValueError, msgpack.UnpackException) as error:
        raise CodecError(f"the header cannot be read: {error}") from None
    if not isinstance(header, dict) or set(header) != {"values", "arrays", "body_bytes"}:
        raise CodecError("the header is not one of ours")
    if not isinstance(header["values"], dict) or not isinstance(header["arrays"], list):
        raise CodecError("the header is not one of ours")
    if len(header["arrays"]) > ARRAY_LIMIT:
        raise CodecError(f"{len(header['arrays'])} arrays; at most {ARRAY_LIMIT} are allowed")
    return header, flags, view[_PREFIX.size + header_bytes :]


def _array(entry: Any, body: memoryview) -> tuple[str, Any]:
    if not isinstance(entry, list) or len(entry) != 4:
        raise CodecError("an array is described wrongly")
    name, kind, shape, offset = entry
    if not isinstance(name, str) or not isinstance(kind, str) or not isinstance(shape, list):
        raise CodecError(f"array {name!r} is described wrongly")
    item = _DTYPES.get(kind)
    if item is None and kind not in (_BYTES, _LIST_OF_BYTES):
        raise CodecError(f"array {name!r} is described wrongly")
    if type(offset) is not int or offset < 0 or len(shape) > (ARRAY_LIMIT if kind == _LIST_OF_BYTES else 8):
        raise CodecError(f"array {name!r} is described wrongly")
    count = 1
    for size in shape:
        if type(size) is not int or not 0 <= size <= BODY_LIMIT_BYTES:
            raise CodecError(f"array {name!r} is described wrongly")
        count *= size
    if item is None:
        return name, _pieces(name, kind, shape, body[offset:])
    if offset + count * item.itemsize > len(body):
        raise CodecError(f"array {name!r} reaches past the end")
    return name, np.ndarray(shape, item, body, offset)


def _pieces(name: str, kind: str, lengths: list[int], body: memoryview) -> bytes | list[bytes]:
    if sum(lengths) > len(body) or (kind == _BYTES and len(lengths) != 1):
        raise CodecError(f"array {name!r} reaches past the end")
    pieces, begin = [], 0
    for length in lengths:
        pieces.append(bytes(body[begin : begin + length]))
        begin += length
    return pieces[0] if kind == _BYTES else pieces
