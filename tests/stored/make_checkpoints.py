"""Makes the checkpoints that a release adds to `tests/stored/checkpoints`: `python -m tests.stored.make_checkpoints
FOLDER`, once, with the code of the release.

Of each run it keeps the checkpoint of the pause that left most unfinished: data that waits, slices in the middle of
their passes, gradients that no version has taken.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful
from tests.training.specs import descent, tiny
from training.engine.checkpoints import Progress
from training.engine.messages import Outcome
from training.engine.ports import Control
from training.engine.train import train
from training.tasks.training import Training

_PAUSES = range(4, 80, 2)
_LEARNERS = {"kind": "staleness_aware", "learners": 3, "trajectories_per_gradient": 1}
_PPO = {"kind": "ppo", "epochs": 3, "normalise_observations": True, "normalise_rewards": True}


def runs() -> dict[str, Training]:
    """Return a small run of each loop, and of what else checkpoints hold, by name."""
    of_policies: dict[str, dict[str, Any]] = {
        "synchronous": {},
        "boosting": {
            "scaling": {"kind": "boosting", "actors_min": 1, "actors_max": 4, "actors_first": 2},
        },
        "pipelined": {"loop": {"kind": "pipelined"}},
        "asynchronous": {"loop": {"kind": "asynchronous", "trajectories_per_update": 2}},
        "replay": {"loop": {"kind": "asynchronous"}, "algorithm": {"kind": "impact"}},
        "staleness_aware_ppo": {"loop": _LEARNERS, "algorithm": _PPO},
        "staleness_aware_impact": {"loop": _LEARNERS, "algorithm": {"kind": "impact"}},
        "kl_distance": {"loop": {**_LEARNERS, "distance": "kl"}},
    }
    small = {"network": {"kind": "mlp", "hidden": [8]}, "stop": {"rounds": 6}}
    epochs = ("hybrid", "bulk_synchronous", "fully_asynchronous")
    return {
        **{name: tiny(**small, **changes) for name, changes in of_policies.items()},
        **{name: descent(loop={"kind": name}, stop={"rounds": 4}) for name in epochs},
    }


class _Counting(InlinePlatform):
    """Answers calls in any order, and counts the answers."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        super().__init__(order=rng.randrange)
        self.answers = 0

    def next(self, timeout_s: float) -> Outcome | None:
        self.answers += 1
        return super().next(timeout_s)


def paused(spec: Training, after: int) -> bytes | None:
    """Return the checkpoint of a run that is paused after so many answers, if it has made a round by then."""
    platform, store = _Counting(after), Forgetful()

    def control() -> Control:
        return Control(desired="paused" if platform.answers >= after else "run")

    for _ in train(spec, platform=platform, checkpoints=store, control=control):
        pass
    return next((data for round_no, data in store.saved.items() if round_no), None)


def unfinished(data: bytes, spec: Training) -> tuple[int, int]:
    """Return how many kinds of unfinished things a checkpoint holds, and how few bytes it has."""
    progress = Progress.decode(data, spec)
    begun = progress.unfinished
    kinds = (progress.pending, progress.waiting, progress.replay, progress.slices_done, begun.slices)
    prepared = any(one.prepared for one in begun.slices)
    return sum(map(bool, kinds)) + 2 * bool(begun.gradients) + 2 * prepared, -len(data)


def main(folder: Path) -> None:
    for name, spec in runs().items():
        found = [data for after in _PAUSES if (data := paused(spec, after)) is not None]
        (folder / f"{name}.checkpoint").write_bytes(max(found, key=lambda data: unfinished(data, spec)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
