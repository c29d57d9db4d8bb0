"""Phrases that a reader has to puzzle out are kept out of pages, scripts and messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = {
    "templates": ("*.html", "*.txt"),
    "static/js": ("*.js",),
    "webapp": ("*.py",),
    "cloud": ("*.py",),
    "training": ("*.py",),
}
INSTEAD = {
    "came to an end": "Finished recently",
    "take its policy": "Download policy",
    "put away": "Hide",
    "calls are still out": "12 calls in flight",
    "calls are still running": "12 calls in flight",
    "steps are made": "Reached 250,000 steps",
    "steps are done": "Reached 250,000 steps",
    "rounds are done": "Reached 400 rounds",
    "going on from round": "Resuming from round 40",
    "differ in their seed only": "Runs that differ only in their seed",
    "what can be asked": "Search help",
    "hand over the credentials": "Add credentials",
    "open nothing any more": "Expired and revoked",
    "ours is off by": "Difference",
    "anew on": "Resets 1 December",
    "lose sight of": "They lose access to",
    "lose</span> sight": "They lose access to",
    "let it go on": "Resume",
    "how far it came": "See charts",
    "read its log": "Read log",
    "bring back to the list": "Unarchive",
    ">take it away<": "Close, Delete, Download",
    "look after it": "Acknowledge",
    "what the api can do": "API reference",
    "does all that you may": "Full access",
    "machines of yours</h2>": "Your machines",
    ">fold<": "Collapse",
    ">unfold<": "Expand",
}
"""What is not written, and what is instead."""


def written() -> Iterator[tuple[str, str]]:
    for folder, endings in PLACES.items():
        for ending in endings:
            for path in sorted((ROOT / folder).rglob(ending)):
                if "migrations" not in path.parts:
                    text = " ".join(path.read_text(encoding="utf-8").split()).lower()
                    yield str(path.relative_to(ROOT)), text


TEXTS = dict(written())


@pytest.mark.parametrize("phrase", INSTEAD)
def test_a_phrase_that_puzzles_is_not_written(phrase):
    found = [path for path, text in TEXTS.items() if phrase in text]
    assert not found, f"“{phrase}”: write “{INSTEAD[phrase]}”"


def test_the_phrases_are_looked_for_in_every_kind_of_text():
    endings = {path.rpartition(".")[2] for path in TEXTS}
    assert endings == {"html", "txt", "js", "py"}
    assert len(TEXTS) > 500
