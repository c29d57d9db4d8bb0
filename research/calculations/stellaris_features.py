"""Stellaris' feature table: what each loop can do, by short runs that show it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from cloud.money.billing.work_file import read_work_file
from research.calculation import Calculation, ResultTable, Statement
from training.engine.messages import RoundFinished, Stopped
from training.engine.reports import RoundReport
from webapp.jobs.running.headless import Headless
from webapp.jobs.spec import JobSpec

STELLARIS = "Stellaris', many learners"
_LOOPS: dict[str, dict[str, Any]] = {
    "PPO's and MinionsRL's, synchronous": {"kind": "synchronous"},
    "IMPACT's, one asynchronous learner": {"kind": "asynchronous"},
    STELLARIS: {
        "kind": "staleness_aware",
        "learners": 3,
        "trajectories_per_gradient": 1,
        "actors_wait": False,
    },
}
_ALGORITHMS = {"on-policy": "ppo", "off-policy": "impala"}
_ROUNDS = 4
FEATURES = ("asynchronous learners", "scalable actors", "on- and off-policy", "learners on functions")
SHOWN, NOT_SHOWN = "yes", "no"


class ShortRun(NamedTuple):
    """What a short run showed: its rounds, whether it did all of them, and what functions were paid for gradients."""

    rounds: Sequence[RoundReport]
    whole: bool
    gradients_picodollars: int


def shown_by(runs: Sequence[ShortRun]) -> tuple[str, ...]:
    """Return for each feature whether one of a loop's runs, one on-policy and one off-policy, shows it."""
    rounds = [report for run in runs for report in run.rounds]
    gradients = [report.gradients for report in rounds if report.gradients is not None]
    signs = (
        any(gradient.staleness_most >= 1 for gradient in gradients),
        any(len({report.actors for report in run.rounds}) > 1 for run in runs),
        all(run.whole for run in runs),
        any(run.gradients_picodollars > 0 for run in runs),
    )
    return tuple(SHOWN if shown else NOT_SHOWN for shown in signs)


def compute(quick: bool) -> tuple[list[ResultTable], list[Statement]]:
    found = {
        name: shown_by([_run(loop, algorithm) for algorithm in _ALGORITHMS.values()])
        for name, loop in _LOOPS.items()
    }
    all_four = [name for name, boxes in found.items() if set(boxes) == {SHOWN}]
    table = ResultTable(
        "What a run of each loop shows",
        ("loop", *FEATURES),
        tuple((name, *boxes) for name, boxes in found.items()),
        f"{_ROUNDS} rounds of CartPole on simulated Lambda functions, 2 to 4 actors, with PPO and with IMPALA. Learners"
        " are asynchronous if a gradient was computed with an older version than the one that it changed; actors scale"
        " if rounds had different numbers of them; learners are on functions if functions were paid for gradients.",
    )
    counts = "; ".join(f"{name}: {boxes.count(SHOWN)}" for name, boxes in found.items())
    statement = Statement(
        "Stellaris' loop alone has all four features.",
        "holds" if all_four == [STELLARIS] else "does not hold",
        f"Of {len(FEATURES)} features runs show: {counts}.",
        "measured",
    )
    return [table], [statement]


def _run(loop: dict[str, Any], algorithm: str) -> ShortRun:
    spec = JobSpec.model_validate(
        {
            "name": "Feature table",
            "budget_usd": "100",
            "training": {
                "environment": {"id": "CartPole-v1"},
                "algorithm": {"kind": algorithm, "epochs": 2, "minibatch_size": 32},
                "network": {"kind": "mlp", "hidden": [16]},
                "scaling": {"kind": "ramp", "actors_first": 2, "actors_last": 4, "over_rounds": 2},
                "loop": loop,
                "rollout": {"steps_per_call": 32},
                "evaluation": {"every_rounds": 100, "episodes": 1},
                "stop": {"rounds": _ROUNDS, "env_steps": None},
            },
            "platform": {"kind": "simulated", "profile": "lambda", "workers": 1},
        }
    )
    with TemporaryDirectory() as folder:
        work = Path(folder) / "work.jsonl"
        events = list(Headless(spec, work=work).events())
        segments = read_work_file(work)
    paid = {one.id: one.picodollars for segment in segments for one in segment.settlements}
    gradients = [
        one
        for segment in segments
        for one in segment.works
        if one.kind == "gradient" and one.where == "actor"
    ]
    return ShortRun(
        [event.report for event in events if isinstance(event, RoundFinished)],
        any(isinstance(event, Stopped) and event.reason_code == "rounds" for event in events),
        sum(paid.get(gradient.id, 0) for gradient in gradients),
    )


CALCULATION = Calculation(
    title="Stellaris' feature table",
    question="Which loop has asynchronous learners, scalable actors, on- and off-policy algorithms, and functions?",
    oracle="A loop with one learner cannot show asynchronous learners, and only Stellaris' pays functions to learn.",
    can_claim="What our engine can do. Nothing of the frameworks that the slides compare.",
    compute=compute,
    beside=(
        "The slides tick all four for Stellaris alone; MinionsRL lacks asynchronous learners and off-policy algorithms."
        " Here any loop takes any algorithm."
    ),
)
