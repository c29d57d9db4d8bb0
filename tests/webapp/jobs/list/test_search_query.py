"""What may be asked of the list of jobs, and what is said where it is not understood."""

import pytest

from webapp.jobs.list.search_query import Term, parse


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
