"""A surface as a heat map in one hue, darker for higher returns; and the same as text and as a table."""

from __future__ import annotations

from typing import NamedTuple

from webapp.formatting import format_score
from webapp.jobs.surfaces.models import Surface

_SIDE = 320.0
_FAINTEST = 0.06
_STEPS = 5


class Square(NamedTuple):
    x: float
    y: float
    opacity: float
    words: str


class Mark(NamedTuple):
    """The place of the grid's best point, in the picture's units."""

    x: float
    y: float


class Shade(NamedTuple):
    """A sample of the scale: `of` in the picture's units, with its return."""

    x: float
    opacity: float
    value: float


class Picture(NamedTuple):
    size: float
    side: float
    squares: list[Square]
    best: Mark
    scale: list[Shade]
    sentence: str
    lines: list[tuple[str, list[float | None]]]


def picture(surface: Surface) -> Picture | None:
    """The surface as a picture; None until a point is known."""
    known = [
        (value, row, column)
        for row, values in enumerate(surface.points)
        for column, value in enumerate(values)
        if value is not None
    ]
    if not known or not surface.offsets:
        return None
    size = _SIDE / surface.grid
    low, high = min(known)[0], max(known)[0]
    span = high - low or 1.0
    squares = [
        Square(
            round(column * size, 2),
            round(row * size, 2),
            round(_FAINTEST + (1 - _FAINTEST) * (value - low) / span, 3),
            f"{format_score(value)} at {_at(surface, row, column)}",
        )
        for value, row, column in known
    ]
    best, row, column = max(known)
    shades = [at / (_STEPS - 1) for at in range(_STEPS)]
    return Picture(
        round(size + 0.15, 2),  # no hairlines between squares
        _SIDE,
        squares,
        Mark(round((column + 0.5) * size, 2), round((row + 0.5) * size, 2)),
        [
            Shade(64.0 * at, round(_FAINTEST + (1 - _FAINTEST) * share, 3), low + share * span)
            for at, share in enumerate(shades)
        ],
        _sentence(surface, low, best, _at(surface, row, column)),
        [(f"{offset:+.2f}", values) for offset, values in zip(surface.offsets, surface.points, strict=True)],
    )


def _at(surface: Surface, row: int, column: int) -> str:
    return f"{surface.offsets[row]:+.2f}, {surface.offsets[column]:+.2f}"


def _sentence(surface: Surface, low: float, best: float, where: str) -> str:
    """The picture as a sentence."""
    middle = surface.grid // 2
    own = surface.points[middle][middle] if surface.grid % 2 else None
    here = f"The policy itself, in the middle, comes to {format_score(own)}. " if own is not None else ""
    first, second = surface.eigenvalues
    curved = (
        f"Along the first direction the objective's curvature is {first:.3g}, along the second {second:.3g}."
    )
    return f"{here}The best point comes to {format_score(best)} at {where}, the worst to {format_score(low)}. {curved}"
