"""Where the rows of runs are: in the data folder while they are made, and with the project when they are complete.

`<data>/papers/<experiment>/<arm>/<environment>/<seed>.jsonl` is only ever appended to; checkpoints are in a folder
beside it. Quick runs are under `<data>/papers/quick/`, so that what is not evidence is never mistaken for it. A row has
a `kind`: `begin` (recipe, fingerprint), `round`, `evaluation`, `final` (the endpoint) or `end`. A run is complete when
it has its `end`.

`papers keep` stores complete runs with the project, thinned, in `research/results/<experiment>.runs` (`archive.py`).
A stored run counts as done on any machine, so evidence that took hours is neither lost with a data folder nor made
again.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cloud.money.billing.work_file import RunSegment, read_work_file, segments_in
from research.experiment import Cell, Experiment
from research.runs.archive import ArchivedRun, add_run, find_run
from webapp.comparing.papers.figures import RESULTS

Row = dict[str, Any]

# A run of more rounds than _STORED_WHOLE keeps every tenth.
_STORED_WHOLE = 100
_STORED_ROUNDS = 10


class RunLocked(Exception):
    """Another process is at this run."""


def papers_folder(data: Path, name: str, *, quick: bool) -> Path:
    return data / "papers" / "quick" / name if quick else data / "papers" / name


def run_file(experiment: Experiment, folder: Path, cell: Cell) -> RunFile:
    """Where that run of an experiment is: with its arm's home, where that is another experiment."""
    arm = experiment.arm(cell.arm)
    return RunFile(folder.parent / arm.home if arm.home else folder, cell)


class RunFile:
    """The rows of one run. Only the process that has it locked may write."""

    def __init__(self, folder: Path, cell: Cell) -> None:
        self.cell = cell
        self.path = folder / cell.arm / cell.environment.replace("/", "_") / f"{cell.seed}.jsonl"
        quick = folder.parent.name == "quick"
        self._archive = None if quick else RESULTS / f"{folder.name}.runs"
        self.checkpoints = self.path.with_suffix("")
        self.work_path = self.path.with_suffix(".work.jsonl")
        self.scheduler_path = self.path.with_suffix(".scheduler")

    def rows(self) -> list[Row]:
        """Complete rows in order. A last line that a dying process left half-written does not count."""
        if self.path.exists():
            return [json.loads(line) for line in self.path.read_text().split("\n")[:-1]]
        stored = self._stored()
        return [] if stored is None else stored.rows

    @property
    def has_work(self) -> bool:
        """Whether there is a record of its work, from which time and bill are computed again."""
        stored = None if self.work_path.exists() else self._stored()
        return self.work_path.exists() or (stored is not None and stored.has_work)

    def segments(self) -> list[RunSegment]:
        """The record of its work. WorkError where there is none."""
        stored = None if self.work_path.exists() else self._stored()
        if stored is None or stored.work is None:
            return read_work_file(self.work_path)
        return segments_in(enumerate(stored.work, start=1), f"{self.cell.arm}, seed {self.cell.seed}")

    def scheduler(self) -> bytes | None:
        """The scheduler that was trained in it, where one was."""
        if self.scheduler_path.exists():
            return self.scheduler_path.read_bytes()
        stored = self._stored()
        return None if stored is None else stored.scheduler

    def _stored(self) -> ArchivedRun | None:
        return None if self._archive is None else find_run(self._archive, self.cell)

    def store(self) -> bool:
        """Put a complete run of this data folder into its archive, thinned; whether there was one to put."""
        if self._archive is None or not self.path.exists() or not self.complete:
            return False
        work = _thinned_work(self.work_path) if self.work_path.exists() else None
        rows = self.rows()
        # What a run with a record of its work did may be timed and priced round by round.
        if work is None and sum(row["kind"] == "round" for row in rows) > _STORED_WHOLE:
            rows = [row for row in rows if row["kind"] != "round" or row["round"] % _STORED_ROUNDS == 0]
        add_run(self._archive, self.cell, ArchivedRun.of(rows, work, self.scheduler()))
        return True

    def append(self, row: Row) -> None:
        """Add a row at the end; it outlives this process, whatever happens to it next."""
        with self.path.open("a") as file:
            file.write(json.dumps({**row, **self.cell._asdict()}) + "\n")

    def truncate_after(self, round_no: int) -> list[Row]:
        """Forget what was done after `round_no`, which is about to be done again; the rows that stay."""
        kept = [row for row in self.rows() if row.get("round", 0) <= round_no and row["kind"] not in _LAST]
        temporary = self.path.with_suffix(f".{os.getpid()}")
        temporary.write_text("".join(json.dumps(row) + "\n" for row in kept))
        temporary.replace(self.path)
        return kept

    def discard(self) -> None:
        """Begin again: no row, work or checkpoint of what was not finished stays."""
        self.path.unlink(missing_ok=True)
        self.work_path.unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    @property
    def complete(self) -> bool:
        rows = self.rows()
        return bool(rows) and rows[-1]["kind"] == "end"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold this run while the block runs, or RunLocked. The kernel lets go with the process, however it ends."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunLocked(
                    f"{self.path.stem} of {self.cell.arm} is being run by another process"
                ) from None
            yield


def _thinned_work(path: Path) -> list[Row]:
    """What was done and who waited for whom, without prices: times and bills are computed again from the work alone.

    When a call landed is kept only where calls were cancelled, since a re-timing asks for it there and nowhere else.
    """
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    cut_short = any(line.get("usage", {}).get("work", {}).get("cancelled") for line in lines)
    used = {"work", "landed_s"} if cut_short else {"work"}
    return [
        line
        if line.get("kind") == "work"
        else {
            **line,
            "picodollars": 0,
            "lines": [],
            "usage": {name: value for name, value in line["usage"].items() if name in used},
        }
        for line in lines
        if line.get("kind") == "work" or "work" in line["usage"]
    ]


_LAST = frozenset({"final", "end"})
