"""Films one episode of the deterministic policy: `python -m training.rl.policies.film CHECKPOINT FILE [--seed N]`.

It runs in its own process, because drawing loads libraries that may be missing, hang or crash. The parent process
sets the environment variables with which MuJoCo and pygame draw without a screen (MUJOCO_GL=egl,
SDL_VIDEODRIVER=dummy). The last line on standard output is a JSON object: what was filmed, or {"error": a sentence},
with the system's `errno` if it gave one.

`python -m training.rl.policies.film --serve` makes short films, one after the other: each line on standard input is a
request (`ShortFilm` as JSON), each line on standard output its answer.

Animated WebP plays in every browser and needs only Pillow. The first picture is written beside FILE, with -still in
its name.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from training.engine.checkpoints import CheckpointError
from training.functions.rollout import as_stored
from training.rl.environments.atari import AtariEnvironment, atari_game
from training.rl.environments.catalogue import ENTRIES
from training.rl.environments.model import EnvironmentSpec
from training.rl.policies.trained import TrainedPolicy

if TYPE_CHECKING:
    from PIL import Image

FRAMES_AT_MOST = 300
STEPS_AT_MOST = 2_000
"""An episode longer than the film is played to its end without filming, to know its return; but at most this many
steps.
"""
FILMS_A_PROCESS = 50
"""Drawing libraries lose memory, so a process that serves ends after so many films."""
_ATARI_FRAMES_A_SECOND = 15
_LEAST_S = 0.1
"""Of processor time that a film gets, however long the start of its process took."""
_METHOD = 2
"""Of WebP: how hard it tries to save bytes, from 0 to 6."""
_SENTENCE_AT_MOST = 300

Picture = npt.NDArray[np.uint8]


class CannotDraw(RuntimeError):
    """This machine, or this environment, cannot draw pictures. The text is for people."""


@dataclass(frozen=True)
class Style:
    """How long and large a film is. It fits into `width` and `height`; `qualities` are tried from the best on until
    it is small enough. `last_ms`: how long its last picture stays before it begins again.
    """

    frames: int
    frames_a_second: int
    width: int
    height: int
    qualities: tuple[int, ...]
    bytes_at_most: int
    last_ms: int = 0


FULL = Style(FRAMES_AT_MOST, 30, 400, 800, (75, 50, 25), 3_000_000)
SHORT = Style(75, 15, 320, 240, (60, 30), 400_000, last_ms=800)


@dataclass(frozen=True)
class ShortFilm:
    """A request for a short film that may take `cpu_s` seconds of processor time."""

    checkpoint: str
    file: str
    cpu_s: float
    seed: int = 0


@dataclass(frozen=True)
class FilmFacts:
    """The facts about a film: `seconds` of an episode with `episode_return` in `steps`; `ended` unless it was cut
    off. `cpu_s` is the processor time that it took, with the start of its process.
    """

    frames: int
    width: int
    height: int
    seconds: float
    steps: int
    episode_return: float
    ended: bool
    seed: int
    byte_count: int
    cpu_s: float = 0.0


def still_of(film: Path) -> Path:
    """Return where the first picture of a film is stored."""
    return film.with_stem(f"{film.stem}-still")


def film(
    trained: TrainedPolicy, file: Path, *, seed: int, style: Style = FULL, cpu_s: float = math.inf
) -> FilmFacts:
    """Play an episode and write it to `file`. Errors of the drawing libraries are raised unchanged.

    Playing ends when what is left of `cpu_s` is what writing the pictures takes, so that the whole film takes about as
    much at most.
    """
    began_s = time.process_time()
    environment, shown_a_second = _drawable(trained.spec.environment, style)
    every = max(1, round(shown_a_second / style.frames_a_second))
    policy = trained.policy()
    space = environment.action_space
    seen, _ = environment.reset(seed=seed)
    pictures: list[Picture] = [_picture(environment)]
    writing_s = 0.0 if math.isinf(cpu_s) else _time_to_write(pictures[0], style)
    total, steps, over = 0.0, 0, False
    while not over and steps < STEPS_AT_MOST:
        action = policy.best(as_stored(seen)[None])[0]
        if not policy.discrete:
            action = np.clip(action, space.low, space.high)
        seen, reward, ended, cut, _ = environment.step(action)
        total, steps, over = total + float(reward), steps + 1, bool(ended or cut)
        if (steps % every == 0 or over) and len(pictures) < style.frames:
            pictures.append(_picture(environment))
        if time.process_time() - began_s + len(pictures) * writing_s > cpu_s:
            break
    pause_ms = round(1000 * every / shown_a_second)
    size = _size(pictures[0], style)
    byte_count = _write(pictures, size, pause_ms, file, style)
    return FilmFacts(
        frames=len(pictures),
        width=size[0],
        height=size[1],
        seconds=len(pictures) * pause_ms / 1000,
        steps=steps,
        episode_return=total,
        ended=over,
        seed=seed,
        byte_count=byte_count,
    )


@lru_cache(maxsize=1)
def _drawable(environment: EnvironmentSpec, style: Style) -> tuple[Any, float]:
    """Return the environment, made so that it can be drawn, and its steps per second.

    The next film of the same environment finds it made: preparing a screen takes longer than many pictures.
    """
    import gymnasium

    game = atari_game(environment.id)
    if game is not None:
        return AtariEnvironment(game, environment.frame_stack), _ATARI_FRAMES_A_SECOND
    entry = ENTRIES.get(environment.id)
    if entry is not None and entry.family == "MuJoCo":
        try:
            made = _robot(environment.id, min(style.width, style.height))
        except Exception as error:
            raise CannotDraw(
                f"MuJoCo cannot draw without a screen on this machine ({type(error).__name__}: {error}); "
                "it needs EGL: on Debian, apt-get install libegl1 libgl1-mesa-dri"
            ) from error
    else:
        made = gymnasium.make(environment.id, render_mode="rgb_array", disable_env_checker=True)
    return made, float(made.metadata.get("render_fps") or FULL.frames_a_second)


def _robot(environment_id: str, side: int) -> Any:
    """Return a robot environment that draws without shadows and reflections, which take most of the time on a CPU."""
    import gymnasium
    import mujoco

    # The camera that follows the robot: all of the catalogue's robots have one, and none uses it by default.
    view: dict[str, Any] = {"width": side, "height": side, "camera_name": "track"}
    robot: Any = gymnasium.make(environment_id, render_mode="rgb_array", disable_env_checker=True, **view)
    robot.reset()
    robot.render()
    flags = robot.unwrapped.mujoco_renderer.viewer.scn.flags
    flags[mujoco.mjtRndFlag.mjRND_SHADOW] = 0
    flags[mujoco.mjtRndFlag.mjRND_REFLECTION] = 0
    return robot


def _picture(environment: Any) -> Picture:
    picture = environment.render()
    if picture is None:
        raise CannotDraw("this environment draws nothing: it has no render mode rgb_array")
    return np.array(picture, dtype=np.uint8)


def _size(picture: Picture, style: Style) -> tuple[int, int]:
    """Return the width and height of a film of such pictures."""
    rows, columns = picture.shape[:2]
    scale = min(style.width / columns, style.height / rows)
    return round(columns * scale), round(rows * scale)


def _image(picture: Picture, size: tuple[int, int]) -> Image.Image:
    from PIL import Image

    image: Image.Image = Image.fromarray(picture)
    if image.size == size:
        return image
    # Small screens, such as games', are enlarged with sharp edges. Large ones are reduced in a third of the time that
    # LANCZOS takes, and as well to the eye.
    return image.resize(size, Image.Resampling.NEAREST if image.width < size[0] else Image.Resampling.HAMMING)


def _time_to_write(picture: Picture, style: Style) -> float:
    """Return the processor time that writing this picture takes, once the library is loaded."""
    took_s = 0.0
    for _ in range(2):
        began_s = time.process_time()
        image = _image(picture, _size(picture, style))
        image.save(BytesIO(), "WEBP", quality=style.qualities[0], method=_METHOD)
        took_s = time.process_time() - began_s
    return took_s


def _write(pictures: list[Picture], size: tuple[int, int], pause_ms: int, file: Path, style: Style) -> int:
    """Write the animation and its first picture, both aside and then renamed. Return the animation's size in bytes."""
    images = [_image(picture, size) for picture in pictures]
    file.parent.mkdir(parents=True, exist_ok=True)
    aside, still_aside = (file.with_name(f".{kind}.{file.name}.{os.getpid()}") for kind in ("film", "still"))
    pauses_ms = [pause_ms] * (len(images) - 1) + [max(pause_ms, style.last_ms)]
    try:
        for quality in style.qualities:
            moving = {"save_all": True, "append_images": images[1:], "duration": pauses_ms, "loop": 0}
            images[0].save(aside, "WEBP", quality=quality, method=_METHOD, **moving)
            if aside.stat().st_size <= style.bytes_at_most:
                break
        byte_count = aside.stat().st_size
        images[0].save(still_aside, "WEBP", quality=85)
        aside.replace(file)
        still_aside.replace(still_of(file))
    finally:
        for path in (aside, still_aside):
            path.unlink(missing_ok=True)
    return byte_count


def serve(requests: Iterable[str]) -> None:
    """Answer each request with a line: its short film's facts, or {"error": a sentence}, as `main` does."""
    used_s = 0.0  # what the start of this process took is counted with its first film
    for line in islice(requests, FILMS_A_PROCESS):
        wanted = ShortFilm(**json.loads(line))
        left_s = wanted.cpu_s - (time.process_time() - used_s)
        answer = _answer(
            Path(wanted.checkpoint),
            Path(wanted.file),
            seed=wanted.seed,
            style=SHORT,
            cpu_s=max(_LEAST_S, left_s),
        )
        now_s = time.process_time()
        print(json.dumps({**answer, "cpu_s": now_s - used_s}), flush=True)
        used_s = now_s


def _answer(checkpoint: Path, file: Path, **options: Any) -> dict[str, Any]:
    try:
        return asdict(film(TrainedPolicy.read(checkpoint), file, **options))
    except (CheckpointError, CannotDraw) as error:
        return {"error": _sentence(str(error))}
    except Exception as error:  # any error of a drawing library is reported, never hidden
        _drawable.cache_clear()
        return {
            "error": _sentence(f"{type(error).__name__}: {error}"),
            "errno": getattr(error, "errno", None),
        }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m training.rl.policies.film", description="Films one episode of a policy."
    )
    parser.add_argument("checkpoint", type=Path, nargs="?")
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="five seconds of it, in a small picture")
    parser.add_argument("--serve", action="store_true", help="films what standard input asks for")
    options = parser.parse_args(arguments)
    os.nice(5)
    if options.serve:
        serve(sys.stdin)
        return 0
    if options.checkpoint is None or options.file is None:
        parser.error("name the checkpoint and the film's file")
    style = SHORT if options.short else FULL
    answer = _answer(options.checkpoint, options.file, seed=options.seed, style=style)
    print(json.dumps({**answer, "cpu_s": time.process_time()}), flush=True)
    return 1 if "error" in answer else 0


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    words = words[:1].upper() + words[1:]
    short = words if len(words) <= _SENTENCE_AT_MOST else f"{words[: _SENTENCE_AT_MOST - 1]}…"
    return short if short.endswith((".", "!", "?", "…")) else f"{short}."


if __name__ == "__main__":
    raise SystemExit(main())
