"""The tones that a state, a check or a message has on a page, and the pill that states are shown in."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Tone = Literal["", "ok", "running", "waiting", "warning", "failed", "budget"]
"""Each is a class `tone-…` of static/css/states.css; empty for what is as usual."""


@dataclass(frozen=True)
class Pill:
    """A state in one word, with its colour and the shape of its icon (templates/jobs/pill.html)."""

    word: str
    tone: Tone
    icon: str


class Status(NamedTuple):
    """A state with a sentence that explains it. `waiting`: it changes by itself, so pages look again."""

    tone: Tone
    icon: str
    word: str
    sentence: str
    waiting: bool = False
