"""Files of JSON lines that record a run's work and payments, call by call, as it runs.

a run segment begins with a header line. A line for each settlement follows, in their order: calls with the records of
their work, and slices of rent. A run that is resumed appends another segment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cloud.money.billing.work import CallRecord, WorkError, works_from
from cloud.platforms.options import PLATFORMS
from training.engine.ports import PriceLine, Settlement

SCHEMA = 1


@dataclass(frozen=True)
class RunSegment:
    """One process's part of a run: the job's spec as JSON, its settlements, and the work of its calls."""

    spec: dict[str, Any]
    settlements: list[Settlement]
    works: list[CallRecord]

    @staticmethod
    def of(
        spec: dict[str, Any],
        settlements: list[Settlement],
        place: Callable[[int], str] = "record {}".format,
    ) -> RunSegment:
        """Return a run segment with the works in `settlements`. Raises WorkError, which names the `place`
        of a wrong one.
        """
        records: list[Any] = [one.usage["work"] for one in settlements if "work" in one.usage]
        return RunSegment(spec, settlements, works_from(records, place))

    @property
    def simulated(self) -> bool:
        platform = PLATFORMS.get(self.spec.get("platform", {}).get("kind"))
        return platform is not None and platform.is_simulated

    @property
    def spent_picodollars(self) -> int:
        return sum(settlement.picodollars for settlement in self.settlements)


class WorkFile:
    """Appends to `path`, after removing a line that a dead process left unfinished. Raises OSError as `open` does."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            content = path.read_bytes()
            path.write_bytes(content[: content.rfind(b"\n") + 1])
        self._file = path.open("a", encoding="utf-8")

    def begin(self, spec: dict[str, Any], made_with: dict[str, str]) -> None:
        self._write({"kind": "work", "schema": SCHEMA, "spec": spec, "made_with": made_with})

    def add(self, settlement: Settlement) -> None:
        self._write(asdict(settlement))

    def close(self) -> None:
        self._file.close()

    def _write(self, line: dict[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
        self._file.flush()


def read_work_file(path: Path) -> list[RunSegment]:
    """Return the segments of a run. Raises WorkError, which begins with `file:line:` or says why it cannot be read."""
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise WorkError(f"{path} cannot be read: {why}") from None
    return segments_in(_objects(text, path.name), path.name)


def segments_in(lines: Iterable[tuple[int, dict[str, Any]]], file: str) -> list[RunSegment]:
    """Return the segments in a file's numbered lines. Raises WorkError, which begins with `file:line:`."""
    read: list[_Read] = []
    for number, line in lines:
        if line.get("kind") == "work":
            read.append(_Read(_spec(line, f"{file}:{number}")))
        elif not read:
            raise WorkError(f"{file}:{number}: the file does not begin with a header of schema {SCHEMA}")
        else:
            settlement = _settlement(line, f"{file}:{number}")
            read[-1].settlements.append(settlement)
            if "work" in settlement.usage:
                read[-1].places.append(f"{file}:{number}")
    if not read:
        raise WorkError(f"{file} holds no run")
    return [record.segment() for record in read]


@dataclass
class _Read:
    spec: dict[str, Any]
    settlements: list[Settlement] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    def segment(self) -> RunSegment:
        return RunSegment.of(self.spec, self.settlements, lambda number: self.places[number - 1])


def _objects(text: str, file: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects with their line numbers. A last line without its end was cut off with its run, and is left
    out.
    """
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        try:
            document = json.loads(line)
        except ValueError:
            if line.endswith("\n"):
                raise WorkError(f"{file}:{number}: this line is not JSON") from None
            return
        if not isinstance(document, dict):
            raise WorkError(f"{file}:{number}: this line is not a JSON object")
        yield number, document


def _spec(line: dict[str, Any], place: str) -> dict[str, Any]:
    spec = line.get("spec")
    if line.get("schema") != SCHEMA or not isinstance(spec, dict):
        raise WorkError(
            f"{place}: a header of schema {line.get('schema')!r}; {SCHEMA} is what can be read here"
        )
    return spec


def _settlement(line: dict[str, Any], place: str) -> Settlement:
    usage = line.get("usage")
    if isinstance(usage, dict) and isinstance(usage.get("work", {}), dict):
        try:
            lines = tuple(PriceLine(**entry) for entry in line["lines"])
            return Settlement(line["id"], int(line["picodollars"]), line["basis"], lines, usage)
        except (KeyError, TypeError, ValueError):
            pass
    raise WorkError(f"{place}: this line is not a settlement")
