"""Films one episode of the deterministic policy: `python -m training.film CHECKPOINT FILE [--seed N]`.

It runs in its own process, because drawing loads libraries that may be missing, hang or crash. The parent process
sets the environment variables with which MuJoCo and pygame draw without a screen (MUJOCO_GL=egl,
SDL_VIDEODRIVER=dummy). The last line on standard output is a JSON object: what was filmed, or {"error": a sentence}.

Animated WebP plays in every browser and needs only Pillow. The first picture is written beside FILE, with -still in
its name.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from training.checkpoints import CheckpointError
from training.environments.atari import AtariEnvironment, atari_game
from training.environments.catalogue import ENTRIES
from training.environments.model import EnvironmentSpec
from training.functions.rollout import as_stored
from training.trained import TrainedPolicy

FRAMES_AT_MOST = 300
STEPS_AT_MOST = 2_000
"""An episode longer than the film is played to its end without filming, to know its return; but at most this many
steps.
"""
BYTES_AT_MOST = 3_000_000
_FRAMES_A_SECOND = 30
_ATARI_FRAMES_A_SECOND = 15
_WIDTH = 400
_QUALITIES = (75, 50, 25)
_SENTENCE_AT_MOST = 300

Picture = npt.NDArray[np.uint8]


class CannotDraw(RuntimeError):
    """This machine, or this environment, cannot draw pictures. The text is for people."""


@dataclass(frozen=True)
class FilmFacts:
    """The facts about a film: `seconds` of an episode with `episode_return` in `steps`; `ended` unless it was cut
    off.
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


def still_of(film: Path) -> Path:
    """Return where the first picture of a film is stored."""
    return film.with_stem(f"{film.stem}-still")


def film(trained: TrainedPolicy, file: Path, *, seed: int, frames: int = FRAMES_AT_MOST) -> FilmFacts:
    """Play an episode and write it to `file`. Errors of the drawing libraries are raised unchanged."""
    environment, shown_a_second = _drawable(trained.spec.environment)
    every = max(1, round(shown_a_second / _FRAMES_A_SECOND))
    policy = trained.policy()
    space = environment.action_space
    seen, _ = environment.reset(seed=seed)
    pictures: list[Picture] = [_picture(environment)]
    total, steps, over = 0.0, 0, False
    while not over and steps < STEPS_AT_MOST:
        action = policy.best(as_stored(seen)[None])[0]
        if not policy.discrete:
            action = np.clip(action, space.low, space.high)
        seen, reward, ended, cut, _ = environment.step(action)
        total, steps, over = total + float(reward), steps + 1, bool(ended or cut)
        if (steps % every == 0 or over) and len(pictures) < frames:
            pictures.append(_picture(environment))
    environment.close()
    pause_ms = round(1000 * every / shown_a_second)
    size = _size(pictures[0])
    byte_count = _write(pictures, size, pause_ms, file)
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


def _drawable(environment: EnvironmentSpec) -> tuple[Any, float]:
    """Return the environment, made so that it can be drawn, and its steps per second."""
    import gymnasium

    game = atari_game(environment.id)
    if game is not None:
        return AtariEnvironment(game, environment.frame_stack), _ATARI_FRAMES_A_SECOND
    entry = ENTRIES.get(environment.id)
    if entry is not None and entry.family == "MuJoCo":
        try:
            made = _robot(environment.id)
        except Exception as error:
            raise CannotDraw(
                f"MuJoCo cannot draw without a screen on this machine ({type(error).__name__}: {error}); "
                "it needs EGL: on Debian, apt-get install libegl1 libgl1-mesa-dri"
            ) from error
    else:
        made = gymnasium.make(environment.id, render_mode="rgb_array", disable_env_checker=True)
    return made, float(made.metadata.get("render_fps") or _FRAMES_A_SECOND)


def _robot(environment_id: str) -> Any:
    """Return a robot environment that draws without shadows and reflections, which take most of the time on a CPU."""
    import gymnasium
    import mujoco

    # The camera that follows the robot: all of the catalogue's robots have one, and none uses it by default.
    view: dict[str, Any] = {"width": _WIDTH, "height": _WIDTH, "camera_name": "track"}
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


def _size(picture: Picture) -> tuple[int, int]:
    """Return the width and height of a film of such pictures."""
    rows, columns = picture.shape[:2]
    return _WIDTH, round(rows * _WIDTH / columns)


def _write(pictures: list[Picture], size: tuple[int, int], pause_ms: int, file: Path) -> int:
    """Write the animation and its first picture, each aside and then renamed. Return the animation's size in bytes."""
    from PIL import Image

    images = [Image.fromarray(picture) for picture in pictures]
    if images[0].size != size:
        # Small screens, such as games', are enlarged with sharp edges.
        way = Image.Resampling.NEAREST if images[0].width < _WIDTH else Image.Resampling.LANCZOS
        images = [image.resize(size, way) for image in images]
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}.{os.getpid()}")
    for quality in _QUALITIES:
        moving = {"save_all": True, "append_images": images[1:], "duration": pause_ms, "loop": 0}
        images[0].save(aside, "WEBP", quality=quality, method=2, **moving)
        if aside.stat().st_size <= BYTES_AT_MOST:
            break
    byte_count = aside.stat().st_size
    aside.replace(file)
    images[0].save(aside, "WEBP", quality=85)
    aside.replace(still_of(file))
    return byte_count


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m training.film", description="Films one episode of a policy."
    )
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--frames", type=int, default=FRAMES_AT_MOST)
    options = parser.parse_args(arguments)
    os.nice(5)
    try:
        filmed = film(
            TrainedPolicy.read(options.checkpoint), options.file, seed=options.seed, frames=options.frames
        )
    except (CheckpointError, CannotDraw) as error:
        answer: dict[str, Any] = {"error": _sentence(str(error))}
    except Exception as error:  # any error of a drawing library is reported, never hidden
        answer = {"error": _sentence(f"{type(error).__name__}: {error}")}
    else:
        answer = asdict(filmed)
    print(json.dumps(answer), flush=True)
    return 1 if "error" in answer else 0


def _sentence(text: str) -> str:
    words = " ".join(text.split())
    words = words[:1].upper() + words[1:]
    short = words if len(words) <= _SENTENCE_AT_MOST else f"{words[: _SENTENCE_AT_MOST - 1]}…"
    return short if short.endswith((".", "!", "?", "…")) else f"{short}."


if __name__ == "__main__":
    raise SystemExit(main())
