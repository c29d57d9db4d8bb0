"""The tones that a state, a check or a message has on a page, and the pill that states are shown in."""

from dataclasses import dataclass
from typing import Literal

Tone = Literal["", "ok", "running", "waiting", "warning", "failed", "budget"]
"""Each is a class `tone-…` of static/css/states.css; empty for what is as usual."""


@dataclass(frozen=True)
class Pill:
    """A state in one word, with its colour and the shape of its icon (templates/jobs/pill.html)."""

    word: str
    tone: Tone
    icon: str
