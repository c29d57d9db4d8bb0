"""What may be asked of the list of jobs, and what is said where it is not understood."""

import pytest

from webapp.jobs.list.search_query import NotUnderstood, Term, parse


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", ()),
        ("hopper", (Term("", ":", ("hopper",)),)),
        ('"cart pole"  seed', (Term("", ":", ("cart pole",)), Term("", ":", ("seed",)))),
        ("state:active", (Term("state", ":", ("active",)),)),
        ("State:Failed,stopped", (Term("state", ":", ("failed", "stopped")),)),
        ("-state:failed", (Term("state", ":", ("failed",), negated=True),)),
        ('tag:"first try",b', (Term("tag", ":", ("first try", "b")),)),
        ("cost>1", (Term("cost", ">", (), 1.0),)),
        ("cost<=$1,200.50", (Term("cost", "<=", (), 1200.5),)),
        ("return:>-1.5", (Term("return", ">", (), -1.5),)),
        ("steps:1e6", (Term("steps", "=", (), 1e6),)),
        ("time>2h age<30min", (Term("time", ">", (), 7200.0), Term("age", "<", (), 1800.0))),
        ("-", (Term("", ":", ("-",)),)),
        ("Hopper-v5", (Term("", ":", ("Hopper-v5",)),)),
    ],
)
def test_questions_are_read(text: str, terms: tuple[Term, ...]) -> None:
    assert parse(text) == terms


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
