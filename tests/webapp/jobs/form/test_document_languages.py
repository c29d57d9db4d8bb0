"""Documents of strangers in three languages: what they hold, and that a short one costs little."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.work import slowness
from webapp.jobs.form.document_languages import Language, language_of, parse
from webapp.jobs.form.spec_documents import LARGEST_BYTES

HALF = LARGEST_BYTES // 2


@pytest.mark.parametrize(
    ("name", "language"),
    [("a.toml", "TOML"), ("a.YAML", "YAML"), ("b.yml", "YAML"), ("a.json", "JSON"), ("a", "JSON")],
)
def test_the_ending_names_the_language(name: str, language: Language) -> None:
    assert language_of(name, "JSON") == language


def test_yaml_holds_what_json_could() -> None:
    text = b"a: 1\nb: 1e-3\nc: no\nd: true\ne: ~\nf:\ng: '5'\nh: [1, -2.5]\ni: 2026-01-01\nj: 1:30\nk: .inf\n"
    assert parse(text, "YAML") == {
        "a": 1, "b": 0.001, "c": "no", "d": True, "e": None, "f": None, "g": "5", "h": [1, -2.5],
        "i": "2026-01-01", "j": "1:30", "k": ".inf",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("language", "content", "why"),
    [
        ("YAML", b"a: &a [1]\nb: *a", r"line 2 .* alias"),
        ("YAML", b"!!python/object/apply:os.system ['id']", "constructor"),
        ("YAML", b"!!binary aa", "constructor"),
        ("YAML", b"a: b: c", "at line 1, column 5"),
        ("YAML", b"a: \x00", "cannot be read"),
        ("YAML", b"[" * LARGEST_BYTES, "nest"),
        ("YAML", b"[" * 51 + b"]" * 51, "nests deeper than 50"),
        ("YAML", b"[" + b"1," * HALF + b"]", "more than 10,000 values"),
        ("TOML", b"a." * HALF + b"a = 1", "nests deeper than 50"),
        ("TOML", b"'a' . " * (HALF // 3) + b"a = 1", "nests deeper than 50"),
        ("TOML", b"a = " + b"[" * HALF + b"]" * HALF, "nests deeper than 50"),
        ("TOML", b"a = 1\na = 2", "overwrite a value"),
        ("JSON", b"[" * 60 + b"]" * 60, "nests deeper than 50"),
        ("JSON", b"\xff", "no text in UTF-8"),
    ],
)
def test_what_is_refused_is_refused_at_once(language: Language, content: bytes, why: str) -> None:
    began_s = time.process_time()
    with pytest.raises(ValueError, match=why):
        parse(content, language)
    assert time.process_time() - began_s < 2 * slowness()


@pytest.mark.parametrize(
    ("language", "content"),
    [
        ("YAML", b"a: 1" + b":1" * HALF),  # a number in base 60 would take 17 s
        ("YAML", b"a: " + b"x" * LARGEST_BYTES),
        ("TOML", b'a = "' + b"x" * LARGEST_BYTES + b'"'),
        ("TOML", b"a = '" + b'"' * LARGEST_BYTES + b"'"),
        ("TOML", b'a = "' + b"." * LARGEST_BYTES + b'"'),
    ],
)
def test_long_texts_are_read_at_once(language: Language, content: bytes) -> None:
    began_s = time.process_time()
    found: Any = parse(content, language)
    assert len(found["a"]) >= HALF
    assert time.process_time() - began_s < 2 * slowness()
