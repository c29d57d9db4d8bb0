"""Runs of an experiment, each in a process of its own, a few at a time. Killing it loses at most what lies after the
last checkpoints: start it again and every run goes on from where it was.

Long experiments are best run from a checkout of their own (`git clone . FOLDER`, with `STARLING_DATA` naming this one's
data folder), so that later changes of the code do not reach runs that have begun.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cloud.workers.processes import bound_to_this_process
from research.experiment import Cell, Experiment
from research.runs.recipe_match import has_other_recipe
from research.runs.run_file import RunFile, run_file

LOCKED_EXIT = 75
_POLL_S = 0.1


@dataclass(frozen=True)
class RunProgress:
    """What became of one run: started, complete, skipped (it was complete), held (another runner's), waits (for runs
    that it needs and that were not chosen or failed), or failed.
    """

    cell: Cell
    state: str
    reason: str = ""


@dataclass(frozen=True)
class RunChoice:
    """Which runs of an experiment are wanted; None means all."""

    arms: Sequence[str] | None = None
    environments: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    quick: bool = False

    def cells(self, experiment: Experiment) -> list[Cell]:
        """The chosen runs in order. ValueError where a name chooses nothing."""
        every = list(experiment.cells(quick=self.quick))
        for what, wanted, known in (
            ("arm", self.arms, {cell.arm for cell in every}),
            ("environment", self.environments, {cell.environment for cell in every}),
            ("seed", self.seeds, {cell.seed for cell in every}),
        ):
            for one in wanted or ():
                if one not in known:
                    raise ValueError(
                        f"There is no {what} {one}; there are: {', '.join(map(str, sorted(known)))}."
                    )
        return [
            cell
            for cell in every
            if (self.arms is None or cell.arm in self.arms)
            and (self.environments is None or cell.environment in self.environments)
            and (self.seeds is None or cell.seed in self.seeds)
        ]


class ExperimentRunner:
    """Starts runs and watches them. `stop` lets those under way save and end; the rest is not begun."""

    def __init__(
        self, name: str, experiment: Experiment, choice: RunChoice, *, folder: Path, root: Path, jobs: int = 2
    ) -> None:
        self._name = name
        self._experiment = experiment
        self._choice = choice
        self._folder = folder
        self._root = root
        self._jobs = jobs
        self._children: dict[Cell, subprocess.Popen[bytes]] = {}
        self._stopping = False

    @property
    def run_count(self) -> int:
        return len(list(self._choice.cells(self._experiment)))

    def stop(self) -> None:
        self._stopping = True
        for child in self._children.values():
            child.terminate()

    def run(self) -> Iterator[RunProgress]:
        """Everything that happens, as it happens. A run that fails does not stop the others."""
        waiting = []
        for cell in self._choice.cells(self._experiment):
            file = self._file(cell)
            if file.complete and has_other_recipe(
                self._experiment, cell, file.rows(), quick=self._choice.quick
            ):
                yield RunProgress(
                    cell, "failed", f"{file.path} is of another recipe: move it away to run it again"
                )
            elif file.complete:
                yield RunProgress(cell, "skipped", "it is complete")
            else:
                waiting.append(cell)
        try:
            while self._children or (waiting and not self._stopping):
                while waiting and len(self._children) < self._jobs and not self._stopping:
                    ready = next((cell for cell in waiting if self._ready(cell)), None)
                    if ready is None:
                        break
                    waiting.remove(ready)
                    self._children[ready] = self._start(ready)
                    yield RunProgress(ready, "started")
                if not self._children and waiting and not self._stopping:
                    yield from (RunProgress(cell, "waits", self._missing(cell)) for cell in waiting)
                    return
                yield from self._ended()
                time.sleep(_POLL_S)
        finally:
            self.stop()
            for child in self._children.values():
                child.wait()

    def _file(self, cell: Cell) -> RunFile:
        return run_file(self._experiment, self._folder, cell)

    def _ready(self, cell: Cell) -> bool:
        return all(self._file(cell).complete for cell in self._experiment.needed(cell))

    def _missing(self, cell: Cell) -> str:
        needed = [cell for cell in self._experiment.needed(cell) if not self._file(cell).complete]
        return "it needs " + ", ".join(f"{one.arm} · {one.environment} · seed {one.seed}" for one in needed)

    def _start(self, cell: Cell) -> subprocess.Popen[bytes]:
        log = self._file(cell).path.with_suffix(".log")
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [
            *(sys.executable, str(self._root / "manage.py"), "papers", "seed", self._name),
            *("--arms", cell.arm, "--environments", cell.environment, "--seeds", str(cell.seed)),
            *(("--quick",) if self._choice.quick else ()),
        ]
        with log.open("ab") as output:
            return subprocess.Popen(
                bound_to_this_process(command),
                cwd=self._root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _ended(self) -> Iterator[RunProgress]:
        for cell, child in list(self._children.items()):
            code = child.poll()
            if code is None:
                continue
            del self._children[cell]
            yield self._outcome_of(cell, code)

    def _outcome_of(self, cell: Cell, code: int) -> RunProgress:
        file = self._file(cell)
        if file.complete:
            return RunProgress(cell, "complete")
        if code == LOCKED_EXIT:
            return RunProgress(cell, "held", "another process is at it")
        if self._stopping:
            return RunProgress(cell, "stopped", "it goes on from its last checkpoint when it is run again")
        return RunProgress(cell, "failed", _last_line(file.path.with_suffix(".log")) or f"exit code {code}")


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1] if lines else ""
