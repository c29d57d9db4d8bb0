"""An exported model predicts as ours does, where nothing of ours is, and only with the script that knows its hash."""

import csv
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.data.test_dataset import table
from training.data.dataset import Table, write_dataset
from training.data.hashing import Hasher, bucket, words_and_pairs
from training.data.manifest import Column, Manifest
from training.data.readers.choice import Choice
from training.data.readers.opening import open_table
from training.data.readers.preparing import prepare
from training.data.readers.survey import survey
from training.data.rows import DenseFeatures, Rows
from training.data.store import MemoryStore, read_rows
from training.supervised.models.card import TrainedModel, model_card
from training.supervised.models.click_through import ClickThrough
from training.supervised.models.export import export_onnx
from training.supervised.models.lenet import LeNet
from training.supervised.models.loader import loader, package
from training.supervised.models.logistic import LogisticRegression
from training.supervised.models.metrics import judge, largest_coefficients, summary
from training.supervised.models.model import Model, Parameters

FORBIDDEN = ("training", "cloud", "webapp", "torch", "sklearn", "django", "pydantic", "msgpack", "onnx")
TOLERANCE = 1e-5


def moved(model: Model, manifest: Manifest, seed: int) -> Parameters:
    """First parameters, moved so that outputs differ."""
    rng = np.random.default_rng(seed)
    first = model.initial_parameters(manifest.shape, seed)
    return {
        name: array + 0.2 * rng.standard_normal(array.shape).astype(np.float32)
        for name, array in first.items()
    }


def picture_table(side: int, rows: int = 40) -> Table:
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (rows, side * side)).astype(np.uint8)
    targets = np.arange(rows, dtype=np.int32) % 3
    return table(rows, features=DenseFeatures(pictures), targets=targets, columns=(), picture=(side, side))


def run(data: bytes, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return tuple(onnxruntime.InferenceSession(data).run(["probabilities", "label"], inputs))


def check(found: tuple[np.ndarray, np.ndarray], expected: np.ndarray) -> None:
    probabilities, labels = found
    np.testing.assert_allclose(probabilities, expected, rtol=TOLERANCE, atol=TOLERANCE)
    top = np.sort(expected, axis=1)
    sure = top[:, -1] - top[:, -2] > 10 * TOLERANCE
    np.testing.assert_array_equal(labels[sure], expected.argmax(axis=1)[sure])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 4), st.booleans())
def test_an_exported_logistic_regression_is_ours_from_rows_as_they_stand(seed, classes, scaled):
    """Columns of 10^9 that differ by units keep their digits: they are scaled before they become single precision."""
    rng = np.random.default_rng(seed)
    numbers = rng.standard_normal((60, 3)) * [1.0, 5.0, 100.0] + ([0.0, 1e9, -7.0] if scaled else 0.0)
    facts = {"features": DenseFeatures(numbers), "standardise": scaled, "classes": tuple("abcd"[:classes])}
    store = MemoryStore()
    given_table = table(60, **facts, targets=np.arange(60, dtype=np.int32) % classes)
    manifest = write_dataset(given_table, store)
    model = LogisticRegression()
    parameters = moved(model, manifest, seed)
    data = export_onnx(model, parameters, manifest)
    mean = np.array([column.mean for column in manifest.columns])
    scale = np.array([column.scale for column in manifest.columns])
    learned = DenseFeatures(((numbers - mean) * scale).astype(np.float32))
    raw = numbers if scaled else numbers.astype(np.float32)
    check(run(data, {"features": raw}), model.predict(parameters, learned))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(["tanh", "relu"]), st.sampled_from([(), (9, 5)]))
def test_an_exported_lenet_is_ours(seed, activation, hidden):
    given_table = picture_table(12)
    manifest = write_dataset(given_table, MemoryStore())
    model = LeNet(filters=(2, 3), hidden=hidden, activation=activation)
    parameters = moved(model, manifest, seed)
    data = export_onnx(model, parameters, manifest)
    check(
        run(data, {"features": given_table.features.values}), model.predict(parameters, given_table.features)
    )


def sparse_rows() -> tuple[list[dict[str, str]], Table]:
    """Rows as a user's file has them, and the table they become."""
    rng = np.random.default_rng(1)
    rows = [
        {
            "carrier": ["UA", "B6", "", "ÅÄ"][i % 4],
            "distance": "" if i % 5 == 0 else f"{rng.uniform(100, 3000):.1f}",
            "seen": ["", "0", "2", "3", "812"][i % 5],
            "text": ["it's good", "", "not GOOD at all", "bad, bad thing"][i % 4],
        }
        for i in range(40)
    ]
    columns = (
        Column(name="carrier", type="text"),
        Column(name="distance", mean=1500.0, scale=1e-3),
        Column(name="seen", type="count"),
        Column(name="text", type="words"),
    )
    hasher = Hasher(12)
    distances = np.array([float(row["distance"]) if row["distance"] else np.nan for row in rows])
    seen = [bucket(int(row["seen"])) if row["seen"] else "" for row in rows]
    features = hasher.features(
        {"carrier": [row["carrier"] for row in rows], "seen": seen}, {"distance": (distances - 1500.0) * 1e-3}
    )
    bags = hasher.bags("text", [words_and_pairs(row["text"]) for row in rows])
    return rows, table(
        40,
        features=side_by_side(features, bags),
        columns=columns,
        targets=np.arange(40, dtype=np.int32) % 2,
        classes=("no", "yes"),
    )


def side_by_side(first, second):
    """Both features of each row in one."""
    parts = []
    for i in range(len(first)):
        one, two = first.between(i, i + 1), second.between(i, i + 1)
        parts.append((np.concatenate([one.places, two.places]), np.concatenate([one.values, two.values])))
    offsets = np.cumsum([0, *(len(places) for places, _ in parts)]).astype(np.int64)
    places, values = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return type(first)(offsets, places, values, first.width)


def test_an_exported_click_through_classifier_is_ours():
    _, given_table = sparse_rows()
    manifest = write_dataset(given_table, MemoryStore())
    for classes in (2, 3):
        model = ClickThrough()
        three = manifest.model_copy(update={"classes": tuple("abc"[:classes])})
        parameters = moved(model, three, 0)
        features = given_table.features
        slots = int(np.diff(features.offsets).max())
        places, values = np.zeros((40, slots), np.int64), np.zeros((40, slots), np.float32)
        for i in range(40):
            row = features.between(i, i + 1)
            places[i, : len(row.places)], values[i, : len(row.places)] = row.places, row.values
        data = export_onnx(model, parameters, three)
        check(run(data, {"places": places, "values": values}), model.predict(parameters, features))


def taken_away(model: Model, given_table: Table, **changes) -> tuple[TrainedModel, Rows]:
    store = MemoryStore()
    manifest = write_dataset(given_table, store)
    parameters = moved(model, manifest, 5)
    rows = read_rows(store, manifest.ranges(0, manifest.held_out_rows, held_out=True))
    facts = {
        "name": "Mine",
        "model": model,
        "parameters": parameters,
        "manifest": manifest,
        "version": 7,
        "method": "SGD, learning rate 0.1, minibatches of 32",
        "seed": 3,
        "samples": 12_345,
        "cost": "$0.0123",
        "simulated": False,
        "metrics": summary(judge(model, parameters, rows)),
        "coefficients": largest_coefficients(parameters, manifest),
    }
    return TrainedModel(**(facts | changes)), rows


def predicted(folder: Path, files: dict[str, bytes], given: str) -> list[list[str]]:
    """Run the script where nothing of ours is (-I: no folder of ours on the path), and check that it loaded nothing."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    spy = f"\nprint('loaded', [name for name in {FORBIDDEN!r} if name in sys.modules])\n"
    (folder / "predict.py").write_bytes(files["predict.py"] + spy.encode())
    done = subprocess.run(
        [sys.executable, "-I", str(folder / "predict.py"), str(folder / given)],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    *lines, last = done.stdout.splitlines()
    assert last == "loaded []"
    return [line.split(",") for line in lines]


def written(folder: Path, rows: list[dict[str, str]]) -> str:
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return "rows.csv"


def agree(lines: list[list[str]], trained: TrainedModel, expected: np.ndarray) -> None:
    shares = np.array([[float(share) for share in line[1:]] for line in lines])
    np.testing.assert_allclose(shares, expected, atol=2e-5)
    assert [line[0] for line in lines] == [trained.manifest.classes[i] for i in shares.argmax(axis=1)]


def test_the_script_predicts_from_a_file_of_texts_and_numbers(tmp_path: Path):
    rows, given_table = sparse_rows()
    trained, _ = taken_away(ClickThrough(), given_table)
    lines = predicted(
        tmp_path,
        package(
            trained,
        ),
        written(tmp_path, rows),
    )
    agree(lines, trained, trained.model.predict(trained.parameters, given_table.features))


def test_the_script_predicts_from_a_file_of_numbers_and_fills_empty_cells_with_the_mean(tmp_path: Path):
    numbers = np.random.default_rng(3).standard_normal((60, 3)) * 50 + 1000
    numbers[::9, 1] = np.nan
    trained, _ = taken_away(
        LogisticRegression(), table(60, features=DenseFeatures(numbers), standardise=True)
    )
    rows = [
        {"other": "x"}
        | {f"x{j}": "" if np.isnan(value) else repr(float(value)) for j, value in enumerate(line)}
        for line in numbers
    ]
    lines = predicted(tmp_path, package(trained), written(tmp_path, rows))
    mean = np.array([column.mean for column in trained.manifest.columns])
    scale = np.array([column.scale for column in trained.manifest.columns])
    learned = np.nan_to_num((numbers - mean) * scale).astype(np.float32)
    agree(lines, trained, trained.model.predict(trained.parameters, DenseFeatures(learned)))


def test_the_script_predicts_from_pictures(tmp_path: Path):
    given_table = picture_table(12)
    trained, _ = taken_away(LeNet(filters=(2, 3), hidden=(5,)), given_table)
    np.save(tmp_path / "pictures.npy", given_table.features.values.reshape(-1, 12, 12))
    lines = predicted(tmp_path, package(trained), "pictures.npy")
    agree(lines, trained, trained.model.predict(trained.parameters, given_table.features))


@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize(
    "names",
    [["n", "age"], ["n", "age", "zip", "city"], ["n", "age", "zip", "city", "said"]],
    ids=["numbers", "categories", "texts"],
)
def test_the_script_reads_an_uploaded_table_as_the_upload_did(
    tmp_path: Path, names: list[str], delimiter: str
):
    """From the file that a user uploads to the classes that the script prints for the same file."""
    rng = np.random.default_rng(2)
    sparse = "said" in names
    path = tmp_path / "upload.csv"
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow([*names, "bought"])
        for i in range(60):
            cells = [f"{rng.normal(1e4, 3):.3f}", "NA" if i % 7 == 0 else i % 50, f"{1000 + i % 5}.0"]
            cells += [" " if i % 9 == 0 else f"Köln{i % 4}", f"so it's fine {i} and more words, word {i % 3}"]
            writer.writerow([*cells[: len(names)], "yes" if i % 3 == 0 else "no"])
    store = MemoryStore()
    choice = Choice(target="bought", as_text=("zip",) if "zip" in names else (), place_bits=12)
    uploaded = open_table(path)
    manifest = prepare(
        uploaded, survey(uploaded), choice, store, name="Mine", source="", scratch_folder=tmp_path
    )
    model = ClickThrough() if sparse else LogisticRegression()
    parameters = moved(model, manifest, 1)
    trained = TrainedModel("Mine", model, parameters, manifest, 1, "SGD", 0, 60, "$0", False)
    lines = predicted(tmp_path, package(trained), path.name)
    # The same rows as they were stored, in another order.
    stored = [read_rows(store, manifest.ranges(0, manifest.rows))]
    stored.append(read_rows(store, manifest.ranges(0, manifest.held_out_rows, held_out=True)))
    expected = np.concatenate([model.predict(parameters, rows.features)[:, 1] for rows in stored])
    np.testing.assert_allclose(sorted(float(line[2]) for line in lines), np.sort(expected), atol=5e-4)
    assert len({round(float(share), 4) for share in expected}) > 20


def test_the_script_refuses_a_model_with_another_hash(tmp_path: Path):
    trained, _ = taken_away(LeNet(filters=(2, 3), hidden=(5,)), picture_table(12))
    files = package(trained)
    (tmp_path / "predict.py").write_bytes(files["predict.py"])
    (tmp_path / "model.onnx").write_bytes(files["model.onnx"] + b"\0")
    done = subprocess.run(
        [sys.executable, "-I", str(tmp_path / "predict.py"), "x.npy"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 1
    assert "not the model" in done.stderr


def test_the_model_names_its_classes_and_columns():
    trained, _ = taken_away(LogisticRegression(), table(standardise=True))
    data = export_onnx(trained.model, trained.parameters, trained.manifest, version=7, about="About it.")
    meta = onnxruntime.InferenceSession(data).get_modelmeta()
    facts = meta.custom_metadata_map
    assert (meta.version, meta.description) == (7, "About it.")
    assert json.loads(facts["classes"]) == ["a", "b", "c"]
    assert [column["name"] for column in json.loads(facts["columns"])] == ["x0", "x1", "x2"]
    assert facts["data"] == trained.manifest.hash


def test_scripts_are_short_and_compile():
    for given_table in (table(), picture_table(12), sparse_rows()[1]):
        script = loader(write_dataset(given_table, MemoryStore()), "0" * 64)
        compile(script, "predict.py", "exec")
        assert len(script.splitlines()) < 60


def test_the_card_says_what_it_must():
    trained, rows = taken_away(LogisticRegression(), table(standardise=True))
    card = package(trained)["README.md"].decode()
    manifest = trained.manifest
    for word in (
        "logistic regression",
        "SGD, learning rate 0.1",
        "12,345 samples of 400 rows",
        "| Training seed | 3 |",
        "$0.0123",
        f"{trained.metrics.accuracy.value:.4f} (",
        f"On {len(rows)} rows that it never learned from",
        manifest.hash,
        "Largest coefficients",
        "a, b, c",
        "| x2 | number |",
    ):
        assert word in card, word
    assert "simulated" not in card


def test_the_card_tells_what_is_simulated_and_what_is_not_known():
    trained, _ = taken_away(LogisticRegression(), table(), simulated=True, metrics=None, coefficients=())
    card = model_card(trained, "0" * 64)
    assert "**simulated**" in card
    assert "unknown" in card
    assert "Largest" not in card
    unknown, _ = taken_away(LogisticRegression(), table(), simulated=None)
    assert "not known" in model_card(unknown, "0" * 64)


NASTY = "a\\|b\r\n# c <script>alert(1)</script> [d](javascript:alert(2)) ![e](//evil) `f`\u202e\u2028g"
SHOWN = r"a\\\|b # c &lt;script>alert(1)&lt;/script> \[d\](javascript:alert(2)) !\[e\](//evil) \`f\`" " g"


def test_names_of_users_are_never_markup_in_the_card():
    columns = (Column(name=NASTY), Column(name="x"), Column(name="y"))
    given_table = table(columns=columns, classes=(NASTY, "p", "q"), target=NASTY, name=NASTY, source=NASTY)
    trained, _ = taken_away(LogisticRegression(), given_table)
    card = model_card(replace(trained, name=NASTY), "0" * 64)
    lines = card.splitlines()
    assert lines[0] == f"# {SHOWN}"
    assert f"| Predicts | {SHOWN}: {SHOWN}, p, q |" in lines
    assert f"| Data | {SHOWN}: {SHOWN} |" in lines
    assert f"| {SHOWN} | number |" in lines
    for markup in ("<script", "\u202e", "\u2028", "\r", " [d]", "![e"):
        assert markup not in card, markup
    script = loader(trained.manifest, "0" * 64)
    assert "alert" not in script, "no text of a user is in the script"


def test_names_of_users_do_not_break_the_tables_of_the_card():
    columns = tuple(Column(name=name) for name in ("a|b", "c\nd", "e"))
    trained, _ = taken_away(LogisticRegression(), table(columns=columns, classes=("x|y", "z", "w")))
    lines = model_card(trained, "0" * 64).splitlines()
    assert r"| a\|b | number |" in lines
    assert "| c d | number |" in lines
