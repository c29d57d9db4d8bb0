"""What is said of a search that is not understood."""

import pytest

from webapp.jobs.list.search_query import NotUnderstood, parse


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stat:active", "Did you mean state?"),
        ("state:runing", "Did you mean running?"),
        ("cost>much", "“much” is no number. Write for example cost>1"),
        ("cost>5min", "is no number"),
        ("algorithm>1", "algorithm has no size"),
        ("tag:", "names nothing. tag: takes a tag's name"),
        ("time>long", "Write for example time>2h"),
        ("steps>1e999", "more than any job has"),
        ('"cart', "quotation mark is left open"),
        ("x" * 401, "at most 400"),
        ("is:odd", "archived or simulated"),
    ],
)
def test_what_is_not_understood_is_reported_with_what_would_be(text: str, said: str) -> None:
    with pytest.raises(NotUnderstood) as refusal:
        parse(text)
    assert said in str(refusal.value)
