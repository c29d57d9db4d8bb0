"""Figures of the papers that need no training: arithmetic over profiles, stacks and prices, or a measurement.

A file in `calculations/` holds one, as `CALCULATION`. It is computed again whenever its report is written.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cloud.fingerprint import fingerprint
from cloud.money.billing.replay_schedule import ReplaySchedule
from cloud.money.billing.retiming import RetimedRun, retime
from cloud.money.billing.work import CallRecord
from cloud.money.billing.work_file import RunSegment
from cloud.timing.place import TimingPlace
from training.spec import TrainingSpec

DRAWS = 20
_QUICK_DRAWS = 2


@dataclass(frozen=True)
class Statement:
    """A claim, its verdict (holds, does not hold, not run), and the reason."""

    claim: str
    verdict: str
    reason: str
    label: str


@dataclass(frozen=True)
class ResultTable:
    """`drawn` names the columns of a curve's axes; the columns of words tell curves apart."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | float, ...], ...]
    note: str = ""
    drawn: tuple[str, str] | None = None


@dataclass(frozen=True)
class Calculation:
    """`prepare` makes what takes long, and keeps it: `papers run` calls it before computing.

    `measures`: its figures are this machine's. All others give the stored figures again, or their stored result is old.
    """

    title: str
    question: str
    oracle: str
    can_claim: str
    compute: Callable[[bool], tuple[list[ResultTable], list[Statement]]]
    beside: str = ""
    prepare: Callable[[], None] | None = None
    measures: bool = False


@dataclass(frozen=True)
class ActorWorkload:
    """The work of one actor's call: its steps, the policy's multiplications, and bytes there and back."""

    environment: str
    steps: int
    macs: int
    pictures: bool
    weights_bytes: int
    sample_bytes: int


# Two layers of 256; the papers' three convolutions on 84 × 84 × 4. A MuJoCo step leaves 69 bytes, a picture 84 × 84.
HOPPER = ActorWorkload("Hopper-v5", 256, 70_000, False, 282_000, 17_700)
QBERT = ActorWorkload("QbertNoFrameskip-v4", 192, 3_450_000, True, 4_300_000, 192 * 84 * 84)


def rounds_of(
    workload: ActorWorkload, actors: int, rounds: int = 1, *, epochs: int = 30, memory_mb: int = 1024
) -> ReplaySchedule:
    """A run of synchronous rounds, each update one minibatch of the whole round, passed `epochs` times."""
    works: list[CallRecord] = []
    before: tuple[str, ...] = ()
    for number in range(1, rounds + 1):
        names = tuple(f"r{number}-s{slot}-n{len(works) + slot + 1}" for slot in range(actors))
        works += [_rollout(name, workload, number, before, memory_mb) for name in names]
        update = f"r{number}-update-n{len(works) + 1}"
        works.append(
            CallRecord(
                id=f"{update}-a1",
                name=update,
                kind="update",
                where="learner",
                round_no=number,
                minibatches=epochs,
                samples=epochs * actors * workload.steps,
                macs=2 * workload.macs,
                pictures=workload.pictures,
                bytes_in=actors * workload.sample_bytes,
                bytes_out=workload.weights_bytes,
                memory_mb=memory_mb,
                deadline_s=900.0,
                after=names,
            )
        )
        before = (update,)
    spec = TrainingSpec.model_validate({"rollout": {"memory_mb": memory_mb, "deadline_s": 900.0}})
    numbered = [replace(work, serial=serial) for serial, work in enumerate(works, start=1)]
    return ReplaySchedule.of(RunSegment({"training": spec.model_dump(mode="json")}, [], numbered))


def _rollout(
    name: str, workload: ActorWorkload, number: int, before: tuple[str, ...], memory_mb: int
) -> CallRecord:
    return CallRecord(
        id=f"{name}-a1",
        name=name,
        kind="rollout",
        where="actor",
        round_no=number,
        stepped=workload.environment,
        steps=workload.steps,
        inferences=workload.steps,
        macs=workload.macs,
        pictures=workload.pictures,
        bytes_in=workload.weights_bytes,
        bytes_out=workload.sample_bytes,
        memory_mb=memory_mb,
        deadline_s=900.0,
        after=before,
    )


def timed(schedule: ReplaySchedule, place: TimingPlace, *, quick: bool) -> list[RetimedRun]:
    """The schedule with several seeds of the cloud."""
    return [retime(schedule, place, seed=seed) for seed in range(_QUICK_DRAWS if quick else DRAWS)]


def names() -> list[str]:
    import research.calculations as folder  # its modules import this one

    return sorted(module.name for module in pkgutil.iter_modules(folder.__path__))


def find(name: str) -> Calculation:
    calculation = importlib.import_module(f"research.calculations.{name}").CALCULATION
    assert isinstance(calculation, Calculation)
    return calculation


def write(name: str, target: Path, root: Path, *, quick: bool = False) -> dict[str, Any]:
    """Compute it and write NAME.md and NAME.json into `target`; the content of the JSON."""
    calculation = find(name)
    tables, statements = calculation.compute(quick)
    results: dict[str, Any] = {
        "name": name,
        "kind": "calculation",
        "title": calculation.title,
        "question": calculation.question,
        "oracle": calculation.oracle,
        "can_claim": calculation.can_claim,
        "beside": calculation.beside,
        "evidence": not quick,
        "complete": True,
        "verdicts": [asdict(statement) for statement in statements],
        "tables": [asdict(table) for table in tables],
        "made_with": [fingerprint(root)],
    }
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{name}.json").write_text(json.dumps(results, indent=1) + "\n")
    (target / f"{name}.md").write_text(_markdown(name, calculation, tables, statements, quick=quick))
    return results


def _markdown(
    name: str,
    calculation: Calculation,
    tables: Sequence[ResultTable],
    statements: Sequence[Statement],
    *,
    quick: bool,
) -> str:
    lines = [f"# {calculation.title}", ""]
    lines += ["> **Not evidence.** A quick run.", ""] if quick else []
    lines += [calculation.question, "", "## Verdicts", ""]
    lines += [
        f"- **{one.verdict.capitalize()}** ({one.label}): {one.claim} {one.reason}" for one in statements
    ]
    for table in tables:
        lines += ["", f"## {table.title}", "", f"| {' | '.join(table.columns)} |"]
        lines.append("|" + "---|" * len(table.columns))
        lines += [f"| {' | '.join(_cell(value) for value in row)} |" for row in table.rows]
        lines += ["", table.note] if table.note else []
    lines += ["", "## Beside the paper", "", calculation.beside] if calculation.beside else []
    lines += ["", "## How we would know that it is wrong", "", calculation.oracle]
    lines += ["", "## What it can claim", "", calculation.can_claim]
    lines += ["", f"Repeat: `manage.py papers report {name}`.", ""]
    return "\n".join(lines)


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
