"""Pictures of digits drawn from the fonts that come with us: a stand-in for MNIST, of its size.

Each picture takes a font, then turns, shears, scales and moves the digit, blurs it and adds noise. The same seed gives
the same pictures, with the same versions of Pillow and of the fonts.
"""

from __future__ import annotations

import io
import math

import numpy as np
import numpy.typing as npt

from training.data.dataset import Table
from training.data.rows import DenseFeatures
from training.engine.seeds import derive

SIDE = 28
_LARGE = 64
# Of the package pymupdf-fonts: text faces of four families, upright and slanted, regular and bold.
_FONTS = (
    *("figo", "figbo", "figit", "figbi", "notos", "notosbo", "notosit", "notosbi"),
    *("ubuntu", "ubuntubo", "ubuntuit", "ubuntubi", "spacemo", "spacembo", "spacemit", "spacembi"),
    *("cascadia", "cascadiab", "cascadiai", "cascadiabi"),
)


def draw_glyphs(count: int = 60_000, seed: int = 0) -> Table:
    """Return `count` grey pictures of 28 × 28, a tenth of each digit."""
    from PIL import Image

    large = [[Image.fromarray(picture) for picture in font] for font in large_glyphs()]
    rng = np.random.Generator(np.random.PCG64(derive(seed, "glyphs")))
    targets = rng.permutation(np.arange(count) % 10).astype(np.int32)
    fonts = rng.integers(0, len(large), count)
    turns, shears = rng.normal(0.0, 0.18, count), rng.normal(0.0, 0.15, count)
    scales = rng.uniform(0.75, 1.2, (count, 2))
    shifts = rng.normal(0.0, 1.3, (count, 2))
    blurs = rng.uniform(0.0, 0.5, count)
    pictures = np.empty((count, SIDE, SIDE), dtype=np.uint8)
    for i in range(count):
        matrix = _inverse(turns[i], shears[i], scales[i], shifts[i])
        glyph = large[fonts[i]][targets[i]]
        drawn = glyph.transform((SIDE, SIDE), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
        pictures[i] = np.asarray(drawn)
    for begin in range(0, count, 1000):
        part = slice(begin, begin + 1000)
        pictures[part] = _with_noise(rng, pictures[part], blurs[part])
    return Table(
        name="Drawn glyphs",
        source=f"{count:,} pictures of digits, {SIDE} × {SIDE}, drawn from {len(_FONTS)} fonts of pymupdf-fonts, "
        f"turned, sheared, scaled, moved, blurred and noisy; seed {seed}",
        features=DenseFeatures(pictures.reshape(count, SIDE * SIDE)),
        targets=targets,
        target="digit",
        classes=tuple("0123456789"),
        picture=(SIDE, SIDE),
    )


def large_glyphs() -> list[list[npt.NDArray[np.uint8]]]:
    """Return the ten digits in each font, white on black, in the middle of squares of 64 × 64."""
    import pymupdf_fonts
    from PIL import Image, ImageDraw, ImageFont

    drawn = []
    for name in _FONTS:
        font = ImageFont.truetype(
            io.BytesIO(pymupdf_fonts.myfont(name)), 60, layout_engine=ImageFont.Layout.BASIC
        )
        digits = []
        for digit in "0123456789":
            image = Image.new("L", (_LARGE, _LARGE))
            left, top, right, bottom = font.getbbox(digit)
            at = ((_LARGE - left - right) / 2, (_LARGE - top - bottom) / 2)
            ImageDraw.Draw(image).text(at, digit, 255, font)
            digits.append(np.asarray(image))
        drawn.append(digits)
    return drawn


def _inverse(
    turn: float, shear: float, scale: npt.NDArray[np.float64], shift: npt.NDArray[np.float64]
) -> tuple[float, float, float, float, float, float]:
    """Return where in the large square each pixel comes from, as Pillow wants it: turned, sheared and scaled about
    the middle.
    """
    zoom = _LARGE / SIDE
    cos, sin = math.cos(turn), math.sin(turn)
    a, b = cos * zoom / scale[0], (sin + shear * cos) * zoom / scale[0]
    c, d = -sin * zoom / scale[1], (cos - shear * sin) * zoom / scale[1]
    x, y = SIDE / 2 + shift[0], SIDE / 2 + shift[1]
    return a, b, _LARGE / 2 - a * x - b * y, c, d, _LARGE / 2 - c * x - d * y


def _with_noise(
    rng: np.random.Generator, pictures: npt.NDArray[np.uint8], blurs: npt.NDArray[np.float64]
) -> npt.NDArray[np.uint8]:
    """Return the pictures, each mixed with the mean of its neighbours by its blur, with noise on top."""
    numbers = pictures.astype(np.float32)
    around = np.pad(numbers, ((0, 0), (1, 1), (1, 1)))
    mean = (around[:, :-2, 1:-1] + around[:, 2:, 1:-1] + around[:, 1:-1, :-2] + around[:, 1:-1, 2:]) / 4
    blur = blurs[:, None, None].astype(np.float32)
    noise = rng.normal(0.0, 12.0, numbers.shape).astype(np.float32)
    return np.clip((1 - blur) * numbers + blur * mean + noise, 0, 255).astype(np.uint8)
