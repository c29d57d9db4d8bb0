"""A public class at a module's top has a name that no other class of the product has: `Run` alone says too little."""

import re
from collections import defaultdict

from rig.servers import ROOT

OWN = ("training", "cloud", "emulator", "client", "webapp", "research")
# The names that may occur more than once, each with its reason. At most 20.
ALLOWED = {
    "Command",  # Django names a management command by its file, and its class so
}

_CLASS = re.compile(r"^class ([A-Za-z]\w*)", re.MULTILINE)


def names_that_occur_twice() -> dict[str, list[str]]:
    places: dict[str, list[str]] = defaultdict(list)
    for package in OWN:
        for file in sorted((ROOT / package).rglob("*.py")):
            path = file.relative_to(ROOT)
            if not {"tests", "migrations"} & set(path.parts):
                for name in set(_CLASS.findall(file.read_text(encoding="utf-8"))):
                    places[name].append(str(path))
    return {name: files for name, files in places.items() if len(files) > 1}


def test_a_public_class_has_a_name_of_its_own():
    twice = {name: files for name, files in names_that_occur_twice().items() if name not in ALLOWED}
    assert not twice, f"give one of each pair a name that says more: {twice}"


def test_what_is_allowed_occurs_twice_and_is_little():
    assert len(ALLOWED) <= 20
    assert set(names_that_occur_twice()) >= ALLOWED


# At most so many variables, parameters and elements have a name that says nothing of what they are.
MOST = {"one": 400, "found": 90}


def times_named(name: str) -> int:
    bound = re.compile(
        rf"^\s*{name}(?:: [^=\n]+)?(?:, \w+)* = |\b(?:for|lambda) (?:\w+, )?{name}\b|\b{name} :=|[(,] ?{name}: ",
        re.MULTILINE,
    )
    return sum(
        len(bound.findall(file.read_text(encoding="utf-8")))
        for package in (*OWN, "benchmarks")
        for file in (ROOT / package).rglob("*.py")
        if "migrations" not in file.parts
    )


def test_elements_and_results_are_named_by_what_they_are():
    assert {name: most for name, most in MOST.items() if times_named(name) > most} == {}, (
        "a word of the subject says more: row, limit, job"
    )
