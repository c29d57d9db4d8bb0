"""What a kind of training is judged by and what its parts are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """A return is higher for a better result, a loss lower. People read it with so many `decimals`."""

    name: str
    higher_is_better: bool = True
    decimals: int = 1

    def best(self, scores: Sequence[float]) -> float:
        """Return the best of `scores`, which must not be empty."""
        return max(scores) if self.higher_is_better else min(scores)

    def worst(self, scores: Sequence[float]) -> float:
        """Return the worst of `scores`, which must not be empty."""
        return min(scores) if self.higher_is_better else max(scores)

    def reaches(self, score: float, target: float) -> bool:
        """Return whether `score` is as good as the target or better."""
        return score >= target if self.higher_is_better else score <= target

    def bound(self, target: float) -> str:
        """Return the target as a bound in words: "475 or above"."""
        return f"{target:g} or {'above' if self.higher_is_better else 'below'}"


@dataclass(frozen=True)
class Declaration:
    """What a kind of training declares: what its progress counts, what it is judged by, what it learns, and what it
    calls an actor and a round.
    """

    progress_unit: str
    score: Score
    learned: str
    actor_name: str = "actor"
    round_name: str = "round"

    def in_its_words(self, text: str) -> str:
        """Return a text about actors and rounds in the words of this kind of training."""
        return _ACTOR_OR_ROUND.sub(self._word, text)

    def _word(self, found: re.Match[str]) -> str:
        article, usual, plural = found.groups(default="")
        word = self.actor_name if usual.lower() == "actor" else self.round_name
        if article:
            new = "an " if word[0] in "aeiou" else "a "
            return (new.capitalize() if article[0].isupper() else new) + word
        return (word.capitalize() if usual[0].isupper() else word) + plural


_ACTOR_OR_ROUND = re.compile(r"\b(an? )?(actor|round)(s?)\b(?! trip)", re.IGNORECASE)


RETURN = Score("return")
