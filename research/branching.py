"""Does curvature say where more actors help? At every round of a base run the training forks: boost, or no boost.

Nitro's own checkpoint-and-replay design, on all rounds rather than three chosen ones. Both branches of a fork go on
from the same checkpoint with the same seed: the slots that both have sample the very same fragments, and both are
judged on the same episodes, so that a fork's gain is what the additional actors brought and little else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Literal

from pydantic import Field

from training.base_model import FrozenModel
from training.engine.messages import RoundFinished, Stopped
from training.engine.ports import CheckpointRef, Control, Platform
from training.engine.reports import RoundReport
from training.engine.seeds import derive
from training.engine.train import train
from training.rl.figures import LearningFigures
from training.scaling.boosting import Boosting
from training.scaling.fixed import Fixed
from training.spec import TrainingSpec


class Branching(FrozenModel):
    """`actors` in every round of the base run, `boost` in the boosted branch, `episodes` to judge a branch by.

    If `further` is not 0, each branch goes on for so many rounds with `actors`, and is judged once more.
    """

    kind: Literal["branching"] = "branching"
    actors: int = Field(8, ge=1)
    boost: int = Field(32, ge=2)
    replicates: int = Field(5, ge=1)
    episodes: int = Field(10, ge=1)
    further: int = Field(0, ge=0)

    def quick(self) -> Branching:
        return self.model_copy(update={"replicates": 1, "episodes": 2})


class _InMemory:
    """Checkpoints by round."""

    def __init__(self) -> None:
        self.saved: dict[int, bytes] = {}

    def save(self, round_no: int, data: bytes, *, best: bool = False) -> CheckpointRef:
        self.saved[round_no] = data
        return CheckpointRef(f"{round_no}", round_no, hashlib.sha256(data).hexdigest(), len(data))

    def load(self, name: str) -> bytes:
        return self.saved[int(name)]


def base_of(training: TrainingSpec, branching: Branching) -> TrainingSpec:
    """The run that forks: the same number of actors in each round, and its curvature measured."""
    few = branching.actors
    steady = Boosting(actors_min=few, actors_max=few, actors_first=few)
    return _changed(
        training,
        scaling=steady.model_dump(),
        evaluation={"every_rounds": 100_000, "episodes": 1},
        checkpoints={"every_rounds": 1},
    )


def branch_of(
    training: TrainingSpec,
    branching: Branching,
    *,
    round_no: int,
    replicate: int,
    actors: int,
    rounds: int = 1,
) -> TrainingSpec:
    """Return the spec of `rounds` more after `round_no`, judged after the last. Both branches of a replicate have the
    same seed, which sets all chance.
    """
    return _changed(
        training,
        scaling=Fixed(actors=actors).model_dump(),
        evaluation={"every_rounds": 100_000, "episodes": branching.episodes},
        checkpoints={"every_rounds": 100_000},
        stop={"rounds": round_no + rounds},
        seed=derive(training.seed, "branch", round_no, replicate) % 2**31,
    )


def base_run(
    training: TrainingSpec, branching: Branching, platform: Platform
) -> tuple[list[RoundReport], dict[int, bytes]]:
    """Its rounds, and a checkpoint after each."""
    store = _InMemory()
    spec = base_of(training, branching)
    events = train(spec, platform=platform, checkpoints=store, control=Control, call_prefix="base-")
    return [event.report for event in events if isinstance(event, RoundFinished)], store.saved


def branch(
    spec: TrainingSpec, checkpoint: bytes, platform: Platform, prefix: str
) -> tuple[float | None, dict[int, bytes]]:
    """The mean return after a branch, and its checkpoint."""
    store = _InMemory()
    events = train(
        spec, platform=platform, checkpoints=store, control=Control, resume=checkpoint, call_prefix=prefix
    )
    (stopped,) = [event for event in events if isinstance(event, Stopped)]
    return stopped.evaluated_score, store.saved


def forks(
    training: TrainingSpec, branching: Branching, platform: Platform, done: set[tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    """A row for each fork that is not yet among `done`; the base run is made again, as it was."""
    reports, checkpoints = base_run(training, branching, platform)
    for report in reports:
        for replicate in range(branching.replicates):
            if (report.round_no, replicate) in done:
                continue
            scores = {}
            for name, actors in (("boosted", branching.boost), ("plain", branching.actors)):
                spec = branch_of(
                    training, branching, round_no=report.round_no, replicate=replicate, actors=actors
                )
                prefix = f"{report.round_no}-{replicate}-{name}-"
                scores[name], saved = branch(spec, checkpoints[report.round_no], platform, prefix)
                if branching.further:
                    spec = branch_of(
                        training,
                        branching,
                        round_no=report.round_no,
                        replicate=replicate,
                        actors=branching.actors,
                        rounds=1 + branching.further,
                    )
                    last = saved[report.round_no + 1]
                    scores[f"{name}_later"], _ = branch(spec, last, platform, f"{prefix}later-")
            curved = report.figures_of(LearningFigures).curvature
            yield {
                "kind": "fork",
                "round": report.round_no,
                "env_steps": report.total_progress,
                "replicate": replicate,
                "ratio": curved.ratio if curved is not None else None,
                **scores,
            }


def _changed(training: TrainingSpec, **changes: Any) -> TrainingSpec:
    document = training.model_dump(mode="json")
    for name, value in changes.items():
        document[name] = {**document[name], **value} if name in ("stop", "checkpoints") else value
    return TrainingSpec.model_validate(document)
