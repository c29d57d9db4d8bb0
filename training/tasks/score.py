"""What a kind of training is judged by: the name of its score, and whether more of it is better."""

from __future__ import annotations

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
    """What a kind of training declares: what its progress counts, what it is judged by, and what it learns."""

    progress_unit: str
    score: Score
    learned: str


RETURN = Score("return")
