"""Reviews: texts with a label each. Their words and pairs of words become sparse features."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from training.data.dataset import BadTable, Table
from training.data.formats.opening import UNREADABLE, decoded, lines_of, opened
from training.data.hashing import WORDS_LIMIT, Hasher, words_and_pairs
from training.data.manifest import Column
from training.data.rows import Rows, joined

ROWS_LIMIT = 200_000
BITS = 18
LABELS_LIMIT = 100
_TEXT_LIMIT_BYTES = 2**18
_CHUNK = 2_000
_LABEL = re.compile(r"__label__(\S+)\s+(.*)", re.DOTALL)
_IN_ARCHIVE = re.compile(r"(?:^|/)(pos|neg)/[^/]+\.txt$")

Labelled = Iterator[tuple[str, str]]


def read_reviews(paths: Sequence[Path]) -> Table:
    """Return the first 200,000 reviews. Raises BadTable, which names the file and the line."""
    texts = _texts_of(paths)
    hasher, labels, parts = Hasher(BITS), dict[str, int](), []
    while chunk := list(islice(texts, _CHUNK)):
        targets = [labels.setdefault(label, len(labels)) for label, _ in chunk]
        if len(labels) > LABELS_LIMIT:
            raise BadTable(f"There are more than {LABELS_LIMIT} labels; a label is a class, not a text.")
        features = hasher.bags("text", [words_and_pairs(text) for _, text in chunk])
        parts.append(Rows(features, np.array(targets, dtype=np.int32)))
        if sum(map(len, parts)) >= ROWS_LIMIT:
            break
    if not parts:
        raise BadTable(f"{', '.join(path.name for path in paths)} has no reviews.")
    rows, classes = joined(parts), sorted(labels)
    renumbered = np.array([classes.index(label) for label in labels], dtype=np.int32)
    return Table(
        name="Reviews",
        source=f"{len(rows):,} reviews from {', '.join(path.name for path in paths)}: words and pairs of words, "
        f"at most {WORDS_LIMIT} words a review, hashed into 2^{BITS} places",
        features=rows.features,
        targets=renumbered[rows.targets],
        target="label",
        classes=tuple(classes) if len(classes) > 1 else (*classes, "(other)"),
        columns=(Column(name="text", type="words"),),
    )


def _texts_of(paths: Sequence[Path]) -> Labelled:
    """Yield label and text of each review, whichever of the three formats it is."""
    if len(paths) == 2:
        return _two_files(paths)
    if len(paths) != 1:
        raise BadTable(
            f"Reviews are one file, or one of negative and one of positive texts; there are {len(paths)}."
        )
    return _archive(paths[0]) if ".tar" in paths[0].name or paths[0].suffix == ".tgz" else _lines(paths[0])


def _lines(path: Path) -> Labelled:
    with opened(path) as file:
        for number, line in lines_of(file, path.name):
            match = _LABEL.match(line)
            if match is None:
                raise BadTable(f"Line {number:,} of {path.name} does not begin with __label__ and a label.")
            yield match[1], match[2]


def _two_files(paths: Sequence[Path]) -> Labelled:
    """Yield the texts of both files in turns, so that a limit leaves some of each."""
    sides = [_side(path) for path in paths]
    if set(sides) != {"neg", "pos"}:
        raise BadTable(
            "The names of two files of reviews must say which is negative and which positive (neg, pos)."
        )
    with opened(paths[0]) as first, opened(paths[1]) as second:
        waiting = [
            (side, lines_of(file, path.name))
            for side, file, path in zip(sides, (first, second), paths, strict=True)
        ]
        while waiting:
            for side, lines in list(waiting):
                line = next(lines, None)
                if line is None:
                    waiting.remove((side, lines))
                else:
                    yield side, line[1]


def _side(path: Path) -> str:
    name = path.name.lower()
    return "pos" if "pos" in name else "neg" if "neg" in name else ""


def _archive(path: Path) -> Labelled:
    """Yield the texts below pos/ and neg/ of an archive, one after another; nothing is unpacked to disk."""
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                match = _IN_ARCHIVE.search(member.name)
                if match is None or not member.isreg():
                    continue
                file = archive.extractfile(member)
                assert file is not None
                yield match[1], decoded(file.read(_TEXT_LIMIT_BYTES))
    except UNREADABLE as error:
        raise BadTable(f"{path.name} is no archive that can be read: {error}.") from None
