"""`manage.py record-demo FOLDER`: runs the demo's preset; keeps its curve and two short films for the first page."""

from __future__ import annotations

import json
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from training.engine.messages import CheckpointSaved, Evaluated, RoundFinished
from training.rl.policies.film import still_of
from webapp.jobs.form.presets import presets
from webapp.jobs.policies.film_process import short_films
from webapp.jobs.running.headless import Headless
from webapp.management.command import LineCommand
from webapp.overview.recording import FILMS, PRESET, RECORDING

POINTS = 120
SIDE = 216
"""Pixels. Films of the first page are small, as a first visit loads them."""
_FRAMES, _QUALITY = 36, 30
_LAST_MS = 800
_CPU_S = 3.0
_FILM_WITHIN_S = 1800.0
"""A machine that trains at the same time may be busy."""


class Command(LineCommand):
    help = "Runs the demo's preset without the dashboard and writes its curve, and films of its first and best policy."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="where to write; the product shows static/demo")
        parser.add_argument("--steps", type=int, default=300_000, help="how long to train")

    def handle(self, *args: Any, folder: Path, steps: int, **options: Any) -> None:
        spec = presets()[PRESET].spec
        stop = spec.training.stop.model_copy(update={"env_steps": steps})
        spec = spec.model_copy(update={"training": spec.training.model_copy(update={"stop": stop})})
        curve: list[tuple[int, float]] = []
        judged: list[Evaluated] = []
        filmed: set[int] = set()
        with tempfile.TemporaryDirectory() as name:
            store = Path(name)
            run = Headless(spec, checkpoints=store)
            for event in run.events():
                if isinstance(event, RoundFinished) and event.report.score is not None:
                    curve.append((event.report.total_progress, event.report.score))
                elif isinstance(event, Evaluated):
                    judged.append(event)
                    self.tell(f"{event.total_progress:,} steps: {event.score:.0f}")
                elif isinstance(event, CheckpointSaved) and judged and judged[-1].round_no == event.round_no:
                    file = store / f"{event.round_no}.webp"
                    short_films.shoot(store / event.name, file, cpu_s=_CPU_S, within_s=_FILM_WITHIN_S)
                    filmed.add(event.round_no)
            folder.mkdir(parents=True, exist_ok=True)
            shown = [evaluation for evaluation in judged if evaluation.round_no in filmed]
            kept = (shown[0], max(shown, key=lambda evaluation: evaluation.score))
            for evaluation, file_name in zip(kept, FILMS, strict=True):
                shrink(store / f"{evaluation.round_no}.webp", folder / file_name)
        recording = {
            "recorded_on": f"{datetime.now(UTC):%Y-%m-%d}",
            "env_steps": run.summary()["env_steps"],
            "curve": _thinned(curve),
            "films": [{"env_steps": one.total_progress, "return": round(one.score, 1)} for one in kept],
        }
        (folder / RECORDING).write_text(json.dumps(recording, separators=(",", ":")) + "\n")


def shrink(source: Path, target: Path) -> None:
    """Write the first pictures of a film again in SIDE by SIDE pixels, and one of their middle as its still."""
    from PIL import Image, ImageSequence

    with Image.open(source) as film:
        pictures = [
            (picture.convert("RGB").resize((SIDE, SIDE), Image.Resampling.LANCZOS), picture.info["duration"])
            for picture in ImageSequence.Iterator(film)
        ]
    pause_ms = pictures[0][1]
    shown = [picture for picture, _ in pictures[:_FRAMES]]
    pauses_ms = [pause_ms] * (len(shown) - 1) + [_LAST_MS]
    moving = {"save_all": True, "append_images": shown[1:], "duration": pauses_ms, "loop": 0}
    shown[0].save(target, "WEBP", quality=_QUALITY, method=6, **moving)
    shown[len(shown) // 2].save(still_of(target), "WEBP", quality=_QUALITY, method=6)


def _thinned(curve: Sequence[tuple[int, float]]) -> list[list[float]]:
    """Return at most POINTS points, each the mean of as many rounds."""
    size = -(-len(curve) // POINTS)
    groups = [curve[at : at + size] for at in range(0, len(curve), size)]
    return [[group[-1][0], round(sum(value for _, value in group) / len(group), 1)] for group in groups]
