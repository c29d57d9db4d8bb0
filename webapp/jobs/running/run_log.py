"""The log of a job's runs: a file of JSON lines that the job's process writes and its page reads.

It has the engine's events as text and every log record of the libraries below it, with tracebacks. The file
is cut at a few megabytes; the events in the database are the permanent record.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from training.engine.messages import Event, Tick
from training.tasks.score import Declaration
from webapp.jobs.events.event_text import describe_event
from webapp.jobs.running.recorder import as_json

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
LINES_SHOWN = 500
_MOST_BYTES = 4_000_000
_READ_BYTES = 400_000
_JOB_ID = re.compile(r"[a-z0-9_]{1,40}")
_LEVEL_OF_TONE = {"warning": "warning", "failed": "error", "budget": "warning"}


class LogLine(NamedTuple):
    at: str
    level: str
    source: str
    text: str

    @property
    def moment(self) -> datetime | None:
        try:
            return datetime.fromisoformat(self.at)
        except ValueError:
            return None


class LogPage(NamedTuple):
    """Some lines, and the file position to continue from."""

    lines: list[LogLine]
    position: int


def log_file(job_id: str) -> Path:
    if not _JOB_ID.fullmatch(job_id):
        raise ValueError(f"{job_id!r} is no job's id")
    return Path(settings.STARLING_DATA) / "logs" / f"{job_id}.jsonl"


class _AsJson(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = record.getMessage()
        if record.exc_info:
            text = f"{text}\n{self.formatException(record.exc_info)}"
        level = next(
            name for name, least in reversed(LEVELS.items()) if record.levelno >= least or least == 10
        )
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"at": at, "level": level, "source": record.name, "text": text}, ensure_ascii=False)


class RunLog:
    """Writes the log of one job. Inside the block, all log records of this process go there too."""

    def __init__(self, job_id: str) -> None:
        path = log_file(job_id)
        with suppress(OSError):  # without room there is no log, but a run
            path.parent.mkdir(parents=True, exist_ok=True)
        self._handler = RotatingFileHandler(
            path, maxBytes=_MOST_BYTES, backupCount=1, encoding="utf-8", delay=True
        )
        self._handler.setFormatter(_AsJson())
        logging.getLogger().addHandler(self._handler)

    def tell(self, event: Event, declared: Declaration | None = None) -> None:
        """Write one of the engine's events as text, in the words of its kind of training; ticks are skipped."""
        if isinstance(event, Tick):
            return
        words = describe_event(event.kind, as_json(event), declared)
        level = LEVELS[_LEVEL_OF_TONE.get(words.tone, "info")]
        self._handler.handle(logging.LogRecord(f"run.{event.kind}", level, "", 0, words.text, None, None))

    def __enter__(self) -> RunLog:
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self._handler)
        with suppress(OSError):  # its last lines found no room
            self._handler.close()


def read(job_id: str, *, after: int | None = None, level: str = "", wanted: str = "") -> LogPage:
    """Return the last lines, or those after a position, at or above this level and with this text."""
    path = log_file(job_id)
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begin = (
                max(0, size - _READ_BYTES)
                if after is None or after > size
                else max(after, size - _READ_BYTES)
            )
            file.seek(begin)
            data = file.read(size - begin)
    except FileNotFoundError:
        return LogPage([], 0)
    if begin and begin != after:
        data = data[data.find(b"\n") + 1 :]  # the first line is incomplete
    whole = data[: data.rfind(b"\n") + 1]
    position = size - (len(data) - len(whole))
    least, words = LEVELS.get(level, 0), wanted.casefold()
    lines = [
        line for line in _lines(whole) if LEVELS.get(line.level, 0) >= least and words in line.text.casefold()
    ]
    return LogPage(lines[-LINES_SHOWN:], position)


def _lines(data: bytes) -> Iterator[LogLine]:
    for raw in data.splitlines():
        try:
            document = json.loads(raw)
            yield LogLine(document["at"], document["level"], document["source"], document["text"])
        except (ValueError, KeyError, TypeError):
            continue  # cut off by a crash of the machine
