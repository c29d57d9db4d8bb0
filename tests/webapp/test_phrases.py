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
    ">what came of it<": "Result",
    "with what came of it": "with our result",
    "there is nothing here</h1>": "Page not found",
    "not here any more": "Deleted",
    "a fault of ours": "Error",
    "letters go to the first": "Mail goes to the primary one",
    "make it first": "Make primary",
    'label="present password': "Current password",
    "the same password again": "Repeat the password",
    "look into your mail": "Check your mail",
    "a letter with a link": "a mail with a link",
    "jobs go on without you": "Your jobs keep running",
    "been here before": "Have an account?",
    ">what went out<": "Deliveries",
    ">what goes out<": "Alerts to send",
    "it is tried again at": "Next attempt at",
    "what is sent and answered": "Schemas",
    "taken back to let the job": "Raise its limit, then resume the job.",
    "what is drawn (csv)": "Data (CSV)",
    ">pause all that run": "Pause all running jobs",
    "all that run, for good": "Stop all running jobs",
    "nothing is chosen yet": "No runs chosen yet",
    ">what is tried<": "Values to try",
    "go on to the next step": "Continue",
    "what comes next": "Next steps",
    'classes are told apart"': "The column to predict",
    "search or do": "Search",
    "a place, something to do": "Search jobs, pages and commands",
    "to its question": "Focus the search",
    "bill is being drawn up. it is": "Working out the bill…",
    "leave it, and it stays as it is": "(say what happens, not what does not)",
    "taken for granted": "Fixed assumptions",
    ">look at the form<": "Check the form",
    "is kept by itself": "Changes are saved automatically",
    "has been trained here yet": "No jobs yet",
    "save what is shown now": "Save this view as",
    "no policy to take away": "no policy to download",
    "cannot be taken away": "cannot be exported",
    ">least level<": "Minimum level",
    "needs you": "Needs attention",
    "what would turn it": "What would change the verdict",
    ">what it rests on<": "Basis",
    "how we would know that it is wrong": "What would refute it",
    "are gone again": "were removed",
    "the rough things": "the basics",
    "nothing was begun": "Nothing was started",
    "it cost so far": "Cost so far",
    "is no member any more": "is no longer a member",
    "one that goes on can be paused": "only an active job can be paused",
    " a look. nothing was": "Correct one field. Nothing was launched.",
    "there is no such way out": "There is no such kind of channel",
    "the steps before are not done": "Finish the earlier steps first",
    "is being worked on already": "This is already in progress",
    "machines that call.": "This job does not use your own machines",
    "monthly or in all": "monthly or in total",
    "enough of them went out": "today's limit is reached",
    "nothing but the budget": "Only the budget",
    "checks need a look": "checks need attention",
    "are under way: ": "12 jobs are running",
    "a tenth off": "differs by more than 10 %",
    ">asked for<": "Requested",
    "they go on from their pages": "Resume them on their pages",
    "what is to be learned from it": "Choose the column to predict",
    ">what it holds<": "Contents",
    ">go on<": "Continue",
    ">fold<": "Collapse",
    ">unfold<": "Expand",
}
"""What is not written, and what is instead."""


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """What is written, in small letters, by the path of its file."""
    return dict(_written())


def _written() -> Iterator[tuple[str, str]]:
    for folder, endings in PLACES.items():
        for ending in endings:
            for path in sorted((ROOT / folder).rglob(ending)):
                if "migrations" not in path.parts:
                    text = " ".join(path.read_text(encoding="utf-8").split()).lower()
                    yield str(path.relative_to(ROOT)), text


@pytest.mark.parametrize("phrase", INSTEAD)
def test_a_phrase_that_puzzles_is_not_written(phrase, texts):
    found = [path for path, text in texts.items() if phrase in text]
    assert not found, f"“{phrase}”: write “{INSTEAD[phrase]}”"


def test_the_phrases_are_looked_for_in_every_kind_of_text(texts):
    endings = {path.rpartition(".")[2] for path in texts}
    assert endings == {"html", "txt", "js", "py"}
    assert len(texts) > 500
