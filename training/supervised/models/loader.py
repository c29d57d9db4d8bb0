"""The files that a model is taken away with: the model (ONNX), its card, and a script that predicts with it.

The script needs nothing of Starling. It holds the model's hash and refuses another file, and it makes features from a
user's rows as they were made for training.
"""

from __future__ import annotations

import hashlib

from training.data.manifest import Manifest
from training.supervised.models.card import CARD, MODEL, SCRIPT, TrainedModel, model_card
from training.supervised.models.export import export_onnx


def package(trained: TrainedModel) -> dict[str, bytes]:
    """Return the files to download, by name."""
    about = f"{trained.model.title} of {trained.manifest.name}, version {trained.version}."
    model = export_onnx(
        trained.model, trained.parameters, trained.manifest, version=trained.version, about=about
    )
    sha256 = hashlib.sha256(model).hexdigest()
    return {
        MODEL: model,
        CARD: model_card(trained, sha256).encode(),
        SCRIPT: loader(trained.manifest, sha256).encode(),
    }


def loader(manifest: Manifest, sha256: str) -> str:
    """Return the script for data of that kind."""
    if manifest.picture is not None:
        rows, columns = manifest.picture
        what = "uint8 from 0 to 255" if manifest.of_bytes else "float32 from 0 to 1"
        use, read = f"PICTURES.npy, an array [picture, {rows}, {columns}] of {what}", _READ_PICTURES
    elif manifest.kind == "dense":
        use, read = "ROWS.csv, with the columns of README.md", _READ_ROWS + _READ_NUMBERS
    else:
        use, read = "ROWS.csv, with the columns of README.md", _READ_ROWS + _READ_SPARSE
    return _LOADER.format(use=use, sha256=sha256, read=read)


_LOADER = '''"""Predicts with model.onnx and prints a line a row: python predict.py FILE. FILE is {use}."""
import csv, hashlib, json, math, pathlib, re, sys
import numpy, onnxruntime

SHA256 = "{sha256}"
data = pathlib.Path(__file__).with_name("model.onnx").read_bytes()
if hashlib.sha256(data).hexdigest() != SHA256:
    sys.exit("model.onnx is not the model that this script was made for")
model = onnxruntime.InferenceSession(data)
facts = model.get_modelmeta().custom_metadata_map
classes, columns, width = json.loads(facts["classes"]), json.loads(facts["columns"]), int(facts["width"])

{read}

probabilities, labels = model.run(["probabilities", "label"], read(sys.argv[1]))
for label, shares in zip(labels, probabilities):
    print(classes[label], *(f"{{share:.6f}}" for share in shares), sep=",")
'''

_READ_PICTURES = """def read(path):
    pictures = numpy.load(path, allow_pickle=False)
    return {"features": pictures.reshape(len(pictures), width).astype(facts["dtype"])}"""

_READ_ROWS = """def rows_of(path):
    with open(path, newline="", encoding="utf-8-sig") as file:
        header = file.readline()
        file.seek(0)
        return list(csv.DictReader(file, delimiter=max(",;\\t|", key=header.count)))

def is_missing(cell):
    return cell.strip() in ("", "NA")

"""

_READ_NUMBERS = """def number_of(column, cell):
    if column["type"] == "text indicator":
        return float(cell == column["category"])
    if column["type"] == "number indicator":
        return float(not is_missing(cell) and float(cell) == float(column["category"]))
    return column["mean"] if is_missing(cell) else cell

def read(path):
    cells = [[number_of(column, row[column["name"]]) for column in columns] for row in rows_of(path)]
    return {"features": numpy.array(cells, dtype=numpy.float64).astype(facts["dtype"])}"""

_READ_SPARSE = """def place(column, text):
    digest = hashlib.blake2b(f"{column}={text}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % width

def places_of(column, cell):
    name, kind = column["name"], column["type"]
    if is_missing(cell):
        return []
    if kind == "number":
        return [(place(name, ""), (float(cell) - column["mean"]) * column["scale"])]
    if kind == "words":
        words = re.findall(r"[^\\W_]+(?:'[^\\W_]+)?", cell.lower())[:400]
        bag = {place(name, word) for word in words + [" ".join(pair) for pair in zip(words, words[1:])]}
        return [(one, len(bag) ** -0.5) for one in bag]
    if kind == "category":
        value = float(cell)
        cell = str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
    if kind == "count" and int(cell) > 2:
        cell = f"log² {int(math.log(int(cell)) ** 2)}"
    return [(place(name, cell), 1.0)]

def read(path):
    rows = [[slot for column in columns for slot in places_of(column, row[column["name"]])] for row in rows_of(path)]
    places = numpy.zeros((len(rows), max(map(len, rows))), dtype=numpy.int64)
    values = numpy.zeros(places.shape, dtype=numpy.float32)
    for i, row in enumerate(rows):
        for j, slot in enumerate(row):
            places[i, j], values[i, j] = slot
    return {"places": places, "values": values}"""
