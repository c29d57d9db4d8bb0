"""MNIST's format (IDX): a file of pictures as bytes, and a file of their labels."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from training.data.dataset import BadTable, Table
from training.data.formats.opening import opened, read_exactly
from training.data.rows import DenseFeatures

CONTENTS_LIMIT_BYTES = 400 * 10**6
SIDE_LIMIT = 256
_LABELS, _PICTURES = 0x801, 0x803


def read_mnist(paths: Sequence[Path]) -> Table:
    """Return the pictures of one or more pairs of files, which are recognised by their contents. Raises BadTable."""
    arrays = [(path.name, _idx(path)) for path in paths]
    pictures = [(name, array) for name, array in arrays if array.ndim == 3]
    labels = [(name, array) for name, array in arrays if array.ndim == 1]
    if not pictures or len(pictures) != len(labels):
        raise BadTable(
            f"MNIST needs a file of labels for each file of pictures; there are {len(pictures)} of pictures "
            f"and {len(labels)} of labels."
        )
    images, targets = [], []
    for name, array in pictures:
        match = next((i for i, (_, found) in enumerate(labels) if len(found) == len(array)), None)
        if match is None:
            raise BadTable(f"{name} has {len(array):,} pictures, and no file has as many labels.")
        if array.shape[1:] != pictures[0][1].shape[1:]:
            raise BadTable(f"{name} has pictures of another size than {pictures[0][0]}.")
        images.append(array.reshape(len(array), -1))
        targets.append(labels.pop(match)[1])
    all_targets = np.concatenate(targets).astype(np.int32)
    rows, columns = pictures[0][1].shape[1:]
    return Table(
        name="MNIST",
        source=f"{len(all_targets):,} pictures of {rows} × {columns} from {', '.join(path.name for path in paths)}",
        features=DenseFeatures(np.concatenate(images) if len(images) > 1 else images[0]),
        targets=all_targets,
        target="label",
        classes=tuple(str(number) for number in range(int(all_targets.max()) + 1)),
        picture=(int(rows), int(columns)),
    )


def _idx(path: Path) -> npt.NDArray[Any]:
    """Return what an IDX file holds: [picture, row, column] or [label], as bytes."""
    with opened(path) as file:
        (magic,) = struct.unpack(">I", read_exactly(file, 4, path.name))
        if magic not in (_LABELS, _PICTURES):
            raise BadTable(f"{path.name} is no IDX file of bytes: it begins with {magic:#010x}.")
        dimensions = magic & 0xFF
        shape = struct.unpack(f">{dimensions}I", read_exactly(file, 4 * dimensions, path.name))
        count = 1
        for size in shape:
            count *= size
        if not count:
            raise BadTable(f"{path.name} is empty.")
        if count > CONTENTS_LIMIT_BYTES or any(not 1 <= side <= SIDE_LIMIT for side in shape[1:]):
            raise BadTable(
                f"{path.name} says it has {' × '.join(f'{size:,}' for size in shape)} bytes; at most "
                f"{CONTENTS_LIMIT_BYTES:,} are read, in pictures of at most {SIDE_LIMIT} × {SIDE_LIMIT}."
            )
        data = read_exactly(file, count, path.name)
        if file.read(1):
            raise BadTable(f"{path.name} has more bytes than it says.")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)
