"""Where runs are kept: one file of JSON rows a run, only ever appended to, and its checkpoints in a folder beside it.

`<data>/papers/<experiment>/<arm>/<environment>/<seed>.jsonl`; quick runs under `<data>/papers/quick/`, so that what is
not evidence is never mistaken for it. A row has a `kind`: `begin` (recipe, fingerprint), `round`, `evaluation`,
`final` (the endpoint) or `end`. A run is complete when it has its `end`.

Complete runs can be kept with the project (`papers keep`), thinned, under `docs/results/<experiment>.runs/`. A kept run
counts as done on any machine, so evidence that took hours is neither lost with a data folder nor made again.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from research.experiment import Cell, Experiment
from research.runs.packing import packed

Row = dict[str, Any]


KEPT = Path(__file__).parents[2] / "docs" / "results"
_KEPT_ROUNDS = 10


class RunHeld(Exception):
    """Another process is at this run."""


def papers_folder(data: Path, name: str, *, quick: bool) -> Path:
    return data / "papers" / "quick" / name if quick else data / "papers" / name


def run_file(experiment: Experiment, folder: Path, cell: Cell) -> RunFile:
    """Where that run of an experiment is kept: with its arm's home, where that is another experiment."""
    home = experiment.arm(cell.arm).home
    return RunFile(folder.parent / home if home else folder, cell)


class RunFile:
    """The rows of one run. Only whoever holds it may write."""

    def __init__(self, folder: Path, cell: Cell) -> None:
        self.cell = cell
        place = Path(cell.arm, cell.environment.replace("/", "_"), f"{cell.seed}.jsonl")
        self.path = folder / place
        quick = folder.parent.name == "quick"
        self.kept = None if quick else KEPT / f"{folder.name}.runs" / place
        self.checkpoints = self.path.with_suffix("")

    def rows(self) -> list[Row]:
        """Complete rows in order. A last line that a dying process left half-written does not count."""
        if self.path.exists():
            return _rows(self.path.read_text())
        if self.kept is None:
            return []
        if self.kept.exists():
            return _rows(self.kept.read_text())
        packed_rows = self.kept.with_suffix(".jsonl.gz")
        return _rows(gzip.decompress(packed_rows.read_bytes()).decode()) if packed_rows.exists() else []

    def keep(self) -> bool:
        """Put a complete run of ours beside the report, long ones thinned; whether there was one to put."""
        if self.kept is None or not self.path.exists() or not self.complete:
            return False
        work, scheduler = self.path.with_suffix(".work.jsonl"), self.path.with_suffix(".scheduler")
        # Runs whose work is kept are short, and other runs may take their numbers of actors.
        every = 1 if work.exists() else _KEPT_ROUNDS
        rows = [row for row in self.rows() if row["kind"] != "round" or row["round"] % every == 0]
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(row) + "\n" for row in rows)
        if work.exists():
            # Hundreds of such runs stand with the project, so that their rows are packed as well.
            self.kept.unlink(missing_ok=True)
            self.kept.with_suffix(".jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
            self.kept.with_suffix(".work.jsonl.gz").write_bytes(packed(work))
        else:
            self.kept.write_text(text)
        if scheduler.exists():
            shutil.copyfile(scheduler, self.kept.with_suffix(".scheduler"))
        return True

    def append(self, row: Row) -> None:
        """Add a row at the end; it outlives this process, whatever happens to it next."""
        with self.path.open("a") as file:
            file.write(json.dumps({**row, **self.cell._asdict()}) + "\n")

    def keep_until(self, round_no: int) -> list[Row]:
        """Forget what was done after `round_no`, which is about to be done again; the rows that stay."""
        kept = [row for row in self.rows() if row.get("round", 0) <= round_no and row["kind"] not in _LAST]
        temporary = self.path.with_suffix(f".{os.getpid()}")
        temporary.write_text("".join(json.dumps(row) + "\n" for row in kept))
        temporary.replace(self.path)
        return kept

    @property
    def work(self) -> Path:
        """The record of its work, where one was made: from it time and bill are computed again."""
        here = self.path.with_suffix(".work.jsonl")
        kept = self.kept.with_suffix(".work.jsonl.gz") if self.kept is not None else here
        return kept if kept.exists() and not here.exists() else here

    @property
    def scheduler(self) -> Path:
        """The scheduler that was trained in it, where one was."""
        here = self.path.with_suffix(".scheduler")
        kept = self.kept.with_suffix(".scheduler") if self.kept is not None else here
        return kept if kept.exists() and not here.exists() else here

    def forget(self) -> None:
        """Begin anew: no row, work or checkpoint of what was not finished stays."""
        self.path.unlink(missing_ok=True)
        self.path.with_suffix(".work.jsonl").unlink(missing_ok=True)
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    @property
    def complete(self) -> bool:
        rows = self.rows()
        return bool(rows) and rows[-1]["kind"] == "end"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold this run while the block runs, or RunHeld. The kernel lets go with the process, however it ends."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RunHeld(
                    f"{self.path.stem} of {self.cell.arm} is being run by another process"
                ) from None
            yield


def _rows(text: str) -> list[Row]:
    return [json.loads(line) for line in text.split("\n")[:-1]]


_LAST = frozenset({"final", "end"})
