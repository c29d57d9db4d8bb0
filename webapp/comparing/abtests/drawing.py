"""The differences of a test's pairs as an SVG: a dot a pair, beside the line of no difference."""

from __future__ import annotations

from dataclasses import dataclass

from webapp.comparing.abtests.results import PairResults
from webapp.comparing.abtests.text import format_signed

WIDTH, ROW, TOP = 640, 22, 4
_SIDE = 8


@dataclass(frozen=True)
class SeedDot:
    x: float
    y: float
    seed: int
    words: str
    better: bool


@dataclass(frozen=True)
class DifferenceDrawing:
    """`zero` is where no difference lies; `mean` where the mean does."""

    width: int
    height: int
    zero: float
    mean: float
    dots: tuple[SeedDot, ...]
    low: str
    high: str
    sentence: str


def drawing_of(results: PairResults) -> DifferenceDrawing | None:
    """Return the drawing; None before two pairs have ended."""
    shown = [
        (pair.seed, difference * pair.toward, difference > 0)
        for pair in results.pairs
        if (difference := pair.difference) is not None
    ]
    if len(shown) < 2:
        return None
    decimals = results.score.decimals if results.score else 1
    reach = max(abs(value) for _, value, _ in shown) or 1.0
    half = WIDTH / 2 - _SIDE

    def at(value: float) -> float:
        return WIDTH / 2 + half * value / reach

    dots = tuple(
        SeedDot(
            at(value),
            TOP + ROW * place + ROW / 2,
            seed,
            f"Seed {seed}: {format_signed(value, decimals)}",
            better,
        )
        for place, (seed, value, better) in enumerate(shown)
    )
    won = sum(better for _, _, better in shown)
    return DifferenceDrawing(
        width=WIDTH,
        height=2 * TOP + ROW * len(shown),
        zero=at(0.0),
        mean=at(sum(value for _, value, _ in shown) / len(shown)),
        dots=dots,
        low=format_signed(-reach, decimals),
        high=format_signed(reach, decimals),
        sentence=f"B is better than A in {won} of {len(shown)} pairs of seeds.",
    )
