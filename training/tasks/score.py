"""What a kind of training is judged by and what its parts are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


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

    def say(self, text: str) -> str:
        """Return a text with the words of this kind of training in place of `{actor}`, `{actors}`, `{an_actor}`,
        `{round}`, `{rounds}`, `{a_round}`, and of the same with a capital letter.
        """
        for placeholder, word in self._words.items():
            text = text.replace(placeholder, word)
        return text

    @cached_property
    def _words(self) -> dict[str, str]:
        words: dict[str, str] = {}
        for article, usual, name in (("an", "actor", self.actor_name), ("a", "round", self.round_name)):
            words |= {usual: name, f"{usual}s": f"{name}s"}
            words[f"{article}_{usual}"] = f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
        words |= {usual.capitalize(): word.capitalize() for usual, word in words.items()}
        return {f"{{{usual}}}": word for usual, word in words.items()}


USUAL = Declaration("steps", Score("return"), "policy")
"""The words where no kind of training is meant."""
