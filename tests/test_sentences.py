"""Sentences are pinned in tables of their own: other tests assert codes, states, figures, roles and data attributes.

A sentence is a string with four or more English words in a row, figures between them aside. A function pins it if it
compares something with it: in an `assert`, as the `match` of an exception or as the text that a browser looks for,
spelled out there, in the test's parameters, or in a name of the function or file. What a test itself gave to the
product is no sentence of ours. Tables of sentences are the files named `test_sentences.py`, one an app: they call what
writes a sentence and compare it.

    python -m tests.test_sentences [folder]     lists the functions that pin a sentence, with their sentences
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
TABLE = "test_sentences.py"
# No more functions may pin a sentence than do today. Lower a number when fewer do.
MOST = {
    "webapp": 4,
    # a line between two numbers, so that changes of both merge
    "journeys": 2,
    # and between these
    "rest": 5,
}

_WORD = re.compile(r"[(“\"']*[A-Za-z][a-z]*(?:['’-][a-z]+)*[)”\"']*[,;:.!?]*")
_PROGRAM = re.compile(r"\s*(?:import|from) ")
_FIGURE = re.compile(r"[(~≈$€±-]*\d[\d.,:]*[%s×)]*[,;:.!?]*")
_LEAST_WORDS = 4
_BROWSER_LOOKS = {"get_by_text", "to_have_text", "to_contain_text"}


def is_sentence(text: str) -> bool:
    if text.count(" ") < _LEAST_WORDS - 1 or _PROGRAM.match(text):
        return False
    words = 0
    for token in re.sub(r"<[^>]*>|\\", " ", text).split():
        if _WORD.fullmatch(token):
            words += 1
            if words == _LEAST_WORDS:
                return True
        elif not _FIGURE.fullmatch(token):
            words = 0
    return False


def pinned_sentences(file: str) -> Iterator[tuple[str, set[str]]]:
    """Yield each function of a file that pins sentences, with them."""
    return _File(file).pinned()


def count_pinning() -> Counter[str]:
    found: Counter[str] = Counter()
    for path, _, _ in _everywhere(TESTS):
        folder = path.relative_to(TESTS).parts[0]
        found[folder if folder in MOST else "rest"] += 1
    return found


def test_no_more_tests_pin_a_sentence_than_did_before():
    assert {place: count for place, count in count_pinning().items() if count > MOST[place]} == {}


@pytest.mark.parametrize(
    "body",
    [
        'assert "The job is paused." in page',
        'assert page == f"The job is {state} now."',
        'assert reason == "Spent 3 of 4 dollars of it."',
        'with pytest.raises(ValueError, match=r"must be at most 4\\."):\n        launch()',
        'page.get_by_text("The job is paused.").wait_for()',
        'says = "The job is paused."\n    assert says in page',
        "assert SAYS in page",
    ],
)
def test_a_test_that_compares_with_a_sentence_is_counted(body):
    file = f'SAYS = "The job is paused."\ndef test_it():\n    {body}\n'
    assert [name for name, _ in pinned_sentences(file)] == ["test_it"]


def test_names_of_cases_are_not_counted():
    file = '@pytest.mark.parametrize("x", [1], ids=["one that is paused"])\ndef test_it(x):\n    assert x\n'
    assert list(pinned_sentences(file)) == []


def test_parameters_of_a_test_are_counted():
    file = (
        '@pytest.mark.parametrize("says", ["It must be set."])\ndef test_it(says):\n    assert says in page\n'
    )
    assert [name for name, _ in pinned_sentences(file)] == ["test_it"]


@pytest.mark.parametrize(
    "body",
    [
        'assert job.reason_code == "budget_used_up", "the job ended for another reason"',
        'assert form.errors["seeds"]',
        'launch("A name of four words")\n    assert "A name of four words" in page',
        'assert "data-state=\\"paused\\"" in page',
        'log("The job is paused.")',
        'assert printed_by("import this\\nfrom now import it as well") == "[]"',
    ],
)
def test_codes_and_what_a_test_gave_itself_are_not_counted(body):
    assert list(pinned_sentences(f"def test_it():\n    {body}\n")) == []


def _everywhere(folder: Path) -> Iterator[tuple[Path, str, set[str]]]:
    for path in sorted(folder.rglob("*.py")):
        if path.name != TABLE:
            for name, sentences in pinned_sentences(path.read_text()):
                yield path, name, sentences


class _File:
    """A file's syntax, walked once: what is below a node is a slice of its nodes."""

    def __init__(self, text: str) -> None:
        self._nodes: list[ast.AST] = []
        self._spans: dict[ast.AST, slice] = {}
        self._tree = ast.parse(text)
        self._visit(self._tree)

    def pinned(self) -> Iterator[tuple[str, set[str]]]:
        of_file = self._named(self._tree.body)
        found = []
        for function in self._functions():
            named = of_file | self._named(function.body)
            compared = {text for node in self._compared(function) for text in self._texts(node, named)}
            found.append((function.name, {text for text in compared if is_sentence(text)}))
        given = self._given() if any(sentences for _, sentences in found) else set()
        for name, sentences in found:
            if ours := {text for text in sentences if not any(text in own for own in given)}:
                yield name, ours

    def _visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.keyword) and node.arg in {"id", "ids"}:  # the name of a test's case
            return
        start = len(self._nodes)
        self._nodes.append(node)
        for value in node.__dict__.values():
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, ast.AST):
                    self._visit(child)
        self._spans[node] = slice(start, len(self._nodes))

    def _below(self, node: ast.AST) -> list[ast.AST]:
        return self._nodes[self._spans.get(node, slice(0))]

    def _functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in self._nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]

    def _compared(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
        """Yield the expressions of a test with which it compares something."""
        yield from (node for node in function.decorator_list if "parametrize" in ast.unparse(node))
        for node in self._below(function):
            if isinstance(node, ast.Assert):
                yield node.test
            elif isinstance(node, ast.Call):
                yield from (
                    keyword.value for keyword in node.keywords if keyword.arg in {"match", "has_text"}
                )
                if isinstance(node.func, ast.Attribute) and node.func.attr in _BROWSER_LOOKS:
                    yield from node.args

    def _texts(self, tree: ast.AST, named: dict[str, list[str]]) -> Iterator[str]:
        """Yield the strings below a node, those of names there too; an f-string's placeholder reads as a figure."""
        for node in self._below(tree):
            if isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
            elif isinstance(node, ast.Name):
                yield from named.get(node.id, ())

    def _named(self, body: list[ast.stmt]) -> dict[str, list[str]]:
        named: dict[str, list[str]] = {}
        for statement in body:
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                for node in self._below(statement):
                    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                            if isinstance(target, ast.Name):
                                named.setdefault(target.id, []).extend(self._texts(node.value, {}))
        return named

    def _given(self) -> set[str]:
        """Return the sentences that a file hands to the product: arguments of calls that compare nothing."""
        compared = {
            part
            for function in self._functions()
            for place in self._compared(function)
            for part in self._below(place)
        }
        return {
            text
            for call in self._nodes
            if isinstance(call, ast.Call) and call not in compared
            for argument in [*call.args, *(keyword.value for keyword in call.keywords)]
            if argument not in compared
            for text in self._texts(argument, {})
            if is_sentence(text)
        }


if __name__ == "__main__":
    for path, name, sentences in _everywhere(TESTS / sys.argv[1] if len(sys.argv) > 1 else TESTS):
        print(f"{path.relative_to(TESTS)}::{name}")
        for sentence in sorted(sentences):
            print(f"    {sentence[:160]}")
    print(dict(count_pinning()))
