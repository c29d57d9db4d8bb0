"""Runs a row of the table: its arguments become a request, whose response is shown, saved or followed."""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from .commands import Command
from .output_columns import TRAINING_SCORE
from .request_bodies import SPEC_FILES, FileForm, parse, put, read_spec, wrong
from .starling import Starling
from .tables import plain, shown, takes_words

_SHOWN = 20
_ROWS_A_PAGE = 200
_LOOKED_AGAIN_AFTER_S = 2.0
_WELL = {"done", "ready", "succeeded", "choosing", "better", "worse", "no_difference"}
_BADLY = {"failed", "stopped", "cancelled", "out_of_money"}
_FAILED_EXIT = 4
_READ: dict[str, Callable[[Any], Any]] = {
    "list": lambda text: [word.strip() for word in text.split(",") if word.strip()],
    "wholes": lambda text: [int(word) for word in text.split(",")],
    "truth": lambda text: text == "yes",
    "days": lambda text: None if text == "never" else int(text),
    "pairs": lambda pairs: dict(_pair(pair) for pair in pairs),
}
# Whence a spec is taken, and where a file is kept: they are sent only where a path or an option names them.
_BY_THEMSELVES = ("spec", "job", "draft", "to")
# Words that stand for more than themselves, by where they are sent.
_IN_PATHS: dict[str, Callable[[str], str]] = {"version": lambda key: key.replace(".", "/versions/")}
_IN_BODIES: dict[str, Callable[[Any], Any]] = {
    "count": lambda text: _whole(text),
    "environment": lambda name: {"id": name},
}


class _Request(NamedTuple):
    """`file`: the name under which the response is saved, if it is a file."""

    method: str
    path: str
    body: Any = None
    query: dict[str, Any] = {}
    file: str = ""


class CommandRun:
    """One run of a subcommand."""

    def __init__(self, client: Starling, arguments: argparse.Namespace) -> None:
        self._client, self._arguments = client, arguments
        self._row: Command = arguments.row

    def run(self) -> int:
        """Run it. Returns the exit code; StarlingError if the request is refused."""
        row, arguments = self._row, self._arguments
        if row.name == ("jobs", "watch"):
            return self._follow(arguments.job)
        request = self._request()
        if request.file:
            return self._save(request)
        if request.method == "GET" and self._limit() is not None:
            return self._listed(request)
        key = uuid.uuid4().hex if row.once else ""
        answer = self._client.call(request.method, request.path, request.body, key, **request.query)
        if getattr(arguments, "watch", False):
            self._tell(answer)
            return self._follow(answer["id"])
        if getattr(arguments, "wait", False):
            return self._poll(answer)
        self._tell(answer)
        return 0

    def _request(self) -> _Request:
        row, given = self._row, self._given()
        if row.name == ("call",):
            body = None if given.get("body") is None else parse(given["body"], "--body")
            path, _, query = f"/{given['path'].removeprefix('/')}".partition("?")
            return _Request(given["method"].upper(), path, body, parse_qs(query))
        method, path, *file = row.does.split()
        within = {name: _IN_PATHS.get(name, str)(given[name]) for name in given if f"{{{name}}}" in path}
        path = path.format(**within)
        options = {option.to for option in row.options}
        kept = {*within, *(name for name in _BY_THEMSELVES if name not in options)}
        rest = {name: value for name, value in given.items() if name not in kept}
        if method in ("GET", "DELETE"):
            return _Request(method, path, None, rest, file[0].format(**given) if file else "")
        body = {
            **row.sends,
            **{name: _IN_BODIES.get(name, _unchanged)(value) for name, value in rest.items()},
        }
        if row.uploads:
            return _Request(
                method, path, _form(Path(given["file"]), {key: body[key] for key in body if key != "file"})
            )
        if row.spec == ".":
            body = self._spec()
        elif row.spec:
            body[row.spec] = self._spec()
        elif row.sets:
            _put_all(body, self._arguments.set)
        return _Request(method, path, body)

    def _given(self) -> dict[str, Any]:
        """The arguments, by the names under which they are sent."""
        kinds = {option.to: option.kind for option in self._row.options}
        names = [*(word.rstrip(".").lower() for word in self._row.given), *kinds]
        values = {name: getattr(self._arguments, name) for name in names}
        try:
            return {
                name: _READ.get(kinds.get(name, ""), _unchanged)(value)
                for name, value in values.items()
                if value is not None
            }
        except ValueError as error:
            raise wrong(f"An option is invalid: {error}.", "See --help.") from None

    def _spec(self) -> dict[str, Any]:
        """A preset's, a file's, a job's or a draft's, with what --set changes."""
        arguments, client = self._arguments, self._client
        if "job" in arguments:
            spec = client.job(arguments.job, "spec")
        elif "draft" in arguments:
            spec = client.call("GET", f"/drafts/{arguments.draft}")["spec"]
        elif arguments.spec == "-":
            spec = parse(sys.stdin.read(), "-")
        elif arguments.spec.endswith(SPEC_FILES):
            spec = read_spec(arguments.spec)
        else:
            spec = client.preset(arguments.spec)["spec"]
        if not isinstance(spec, dict):
            raise wrong("There is no whole spec there yet.", "Complete it in the window, then launch it.")
        _put_all(spec, arguments.set)
        return spec

    def _limit(self) -> int | None:
        """The number of rows to show. None if the response has no pages."""
        if all(option.name != "--limit" for option in self._row.options):
            return None
        return max(1, _SHOWN if self._arguments.limit is None else self._arguments.limit)

    def _listed(self, request: _Request) -> int:
        most = self._limit() or _SHOWN
        path, query = request.path, {**request.query, "limit": min(_ROWS_A_PAGE, most)}
        first = self._client.call("GET", path, **query)
        rows = first if isinstance(first, list) else first["results"]
        following = None if isinstance(first, list) else first["next"]
        while following is not None and len(rows) < most:
            query["cursor" if isinstance(following, str) else "after"] = following
            page = self._client.call("GET", path, **query)
            rows, following = [*rows, *page["results"]], page["next"]
        self._tell(rows[:most])
        if (len(rows) > most or following is not None) and not self._arguments.json:
            print(f"There are more: --limit {5 * most} shows some of them.", file=sys.stderr)
        return 0

    def _save(self, request: _Request) -> int:
        """Save the response into that file, or under its own name into that folder, which is created."""
        to = Path(self._arguments.to)
        file = to if to.suffix and not to.is_dir() else to / request.file
        content = self._client.fetch(request.method, request.path, **request.query)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        except OSError as error:
            raise wrong(f"{file} cannot be written: {error.strerror}.", "Name another place.") from None
        print(json.dumps({"file": str(file), "byte_count": len(content)}) if self._arguments.json else file)
        return 0

    def _follow(self, job_id: str) -> int:
        job = self._client.job(job_id)
        for event in self._client.follow(job_id):
            line = json.dumps(event) if self._arguments.json else _words(event, job)
            if line:
                print(line if self._arguments.json else plain(line), flush=True)
        job = self._client.job(job_id)
        self._tell(job)
        return 0 if job["state"] in _WELL else _FAILED_EXIT

    def _poll(self, answer: dict[str, Any]) -> int:
        """Poll until it is over. Progress goes to stderr, so that output holds only responses."""
        path = self._row.waits.format(**{**vars(self._arguments), "id": answer["id"]})
        said = ""
        while answer["state"] not in _WELL | _BADLY:
            words = str(answer["sentence"] if "state_words" in answer else answer["state"])
            if words != said and not self._arguments.json:
                print(plain(words), file=sys.stderr, flush=True)
            said = words
            time.sleep(_LOOKED_AGAIN_AFTER_S)
            answer = self._client.call("GET", path)
        self._tell(answer)
        nothing_chosen = "chosen_mb" in answer and answer["chosen_mb"] is None  # a profile without a result
        return 0 if answer["state"] in _WELL and not nothing_chosen else _FAILED_EXIT

    def _tell(self, answer: Any) -> None:
        """Print the response: as JSON, a line for each row, or as the row's table."""
        if isinstance(answer, dict) and "results" in answer:
            answer = answer["results"]
        if self._arguments.json:
            for row in answer if isinstance(answer, list) else [answer]:
                print(json.dumps(row), flush=True)
        elif not self._row.shows:
            print("Done." if answer is None else json.dumps(answer, indent=2, ensure_ascii=False))
        elif answer == []:
            print("Nothing there.", file=sys.stderr)
        else:
            print(shown(answer, self._row.shows, self._job_of_rows()), flush=True)

    def _job_of_rows(self) -> Any:
        """The job that the rows are of, whose kind of training names their columns; None if they need none."""
        of_job = self._row.does.partition("{job}")[2] and self._row.does.startswith("GET ")
        return self._client.job(self._arguments.job) if of_job and takes_words(self._row.shows) else None


def _unchanged(value: Any) -> Any:
    return value


def _pair(text: str) -> tuple[str, str]:
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise wrong(f"This needs PATH=VALUE, not {text!r}.", "Such as training.seed=7.")
    return path, value


def _put_all(document: dict[str, Any], changes: list[str]) -> None:
    for change in changes:
        path, text = _pair(change)
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        put(document, path, value)


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise wrong(f"This needs a whole number, not {text!r}.", "Such as 5.") from None


def _form(path: Path, fields: dict[str, Any]) -> FileForm:
    try:
        return FileForm(path, fields)
    except OSError as error:
        raise wrong(f"{path} cannot be read: {error.strerror}.", "Name a file.") from None


def _words(event: dict[str, Any], job: dict[str, Any]) -> str:
    """An event as a line, in the words of the job's kind of training. Empty for internal events."""
    payload, score = event["payload"], job["score"]
    if event["kind"] == "round":
        report = payload["report"]
        return (
            f"{job['round_name']} {report['round_no']:>5}  {report['total_env_steps']:>10,} {job['progress_unit']}"
            f"  training {score['name']} {_scored(report[TRAINING_SCORE], score):>8}"
        )
    if event["kind"] == "evaluation":
        judged = _scored(payload["return_mean"], score)
        return f"evaluation after {job['round_name']} {payload['round_no']}: {score['name']} {judged}"
    return str(payload.get("text") or payload.get("reason") or "")


def _scored(value: float | None, score: dict[str, Any]) -> str:
    return "–" if value is None else f"{value:,.{score['decimals']}f}"
