#!/usr/bin/env python3
"""Starling's client and command line in one file. It needs Python 3.9 or later and nothing else.

    export STARLING_URL=https://starling.example.org STARLING_TOKEN=starling_pat_…
    python starling.py jobs list
    python starling.py jobs run cartpole --set budget_usd=0.50 --watch

Or a file ~/.config/starling.json with {"url": …, "token": …, "project": …}. From Python:

    client = Starling()
    job = client.launch(client.preset("cartpole")["spec"])
    for event in client.follow(job["id"]): print(event["kind"])
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CONFIG = Path.home() / ".config" / "starling.json"
_TRIES, _SLOWEST_S = 4, 30.0


class StarlingError(Exception):
    """What the server said: `problem` holds what, why, fix and, field by field, errors."""

    def __init__(self, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail") or problem.get("title") or "The request failed.")
        self.problem = problem


class Starling:
    """A project of a dashboard. Settings that are not given come from the environment, then from the file."""

    def __init__(self, url: str = "", token: str = "", project: str = "") -> None:
        kept = json.loads(CONFIG.read_text()) if CONFIG.exists() else {}
        self.url = (url or os.environ.get("STARLING_URL") or kept.get("url", "http://127.0.0.1:8000")).rstrip(
            "/"
        )
        self._token = token or os.environ.get("STARLING_TOKEN") or kept.get("token", "")
        self._project = project or os.environ.get("STARLING_PROJECT") or kept.get("project", "")

    @property
    def project(self) -> str:
        """Its slug; without one given, the first that the token can see."""
        if not self._project:
            found = self.get("/projects")
            if not found:
                raise StarlingError({"detail": "This token can see no project."})
            self._project = found[0]["slug"]
        return self._project

    def get(self, path: str, **query: Any) -> Any:
        return json.loads(self._send("GET", path, query))

    def post(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Any:
        return json.loads(self._send("POST", path, {}, body, headers))

    def put(self, path: str, body: Any) -> Any:
        return json.loads(self._send("PUT", path, {}, body))

    def jobs(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Newest first; filters such as state="active"."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.get(f"/projects/{self.project}/jobs", cursor=cursor, **filters)
            yield from page["results"]
            cursor = page["next"]

    def job(self, job_id: str, what: str = "", **query: Any) -> Any:
        """The job, or what="cost", "rounds", "evaluations", "checkpoints", "spec" of it."""
        return self.get(f"/projects/{self.project}/jobs/{job_id}{'/' if what else ''}{what}", **query)

    def preset(self, name: str) -> dict[str, Any]:
        return dict(self.get(f"/presets/{name}"))

    def launch(self, spec: dict[str, Any], key: str = "") -> dict[str, Any]:
        """Launch once, also where the answer is lost and the request is sent again."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return dict(self.post(f"/projects/{self.project}/jobs", spec, headers))

    def act(self, job_id: str, deed: str) -> dict[str, Any]:
        """deed: stop, pause or resume."""
        return dict(self.post(f"/projects/{self.project}/jobs/{job_id}/{deed}"))

    def follow(self, job_id: str, after: int = 0, every_s: float = 1.0) -> Iterator[dict[str, Any]]:
        """Events as they come, until the job is over or paused."""
        while True:
            job = self.job(job_id)
            while after < job["last_event"]:
                page = self.job(job_id, "events", after=after, limit=200)
                yield from page["results"]
                after = page["results"][-1]["seq"]
            if job["over"] or job["state"] == "paused":
                return
            time.sleep(every_s)

    def download(self, path: str, to: Path) -> Path:
        """A file, such as /projects/…/jobs/…/tensorboard."""
        to.write_bytes(self._send("GET", path, {}))
        return to

    def _send(
        self, method: str, path: str, query: dict[str, Any], body: Any = None, headers: Any = None
    ) -> bytes:
        text = urllib.parse.urlencode({key: value for key, value in query.items() if value not in (None, "")})
        address = f"{self.url}/api/v1{urllib.parse.quote(path)}{'?' if text else ''}{text}"
        data = None if body is None else json.dumps(body).encode()
        sent = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            **(headers or {}),
        }
        may_repeat = method == "GET" or "Idempotency-Key" in sent
        for attempt in range(_TRIES):
            last = attempt == _TRIES - 1
            try:
                request = urllib.request.Request(address, data, sent, method=method)
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                wait_s = float(error.headers.get("Retry-After") or 2**attempt)
                if last or not (error.code == 429 or (error.code >= 502 and may_repeat)):
                    raise StarlingError(_problem(error)) from None
            except (urllib.error.URLError, OSError) as error:
                wait_s = 2.0**attempt
                if last or not may_repeat:
                    reason = getattr(error, "reason", error)
                    raise StarlingError({"detail": f"{self.url} cannot be reached: {reason}."}) from None
            time.sleep(min(wait_s, _SLOWEST_S))
        raise AssertionError("the last attempt answers or raises")


def _problem(error: urllib.error.HTTPError) -> dict[str, Any]:
    try:
        return dict(json.loads(error.read()))
    except ValueError:
        return {"detail": f"The server answered {error.code} {error.reason}."}


def main(arguments: list[str] | None = None) -> int:
    """The command line; its exit code is 0 if what was asked for was done, and for --watch if the job succeeded."""
    asked = _parser().parse_args(arguments)
    try:
        return int(asked.run(Starling(project=asked.project), asked))
    except StarlingError as error:
        if asked.json:
            print(json.dumps(error.problem))
        print(f"starling: {error}", file=sys.stderr)
        for one in error.problem.get("errors", []):
            print(f"  {one['sentence']}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="starling", description="Jobs of Starling from the command line.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="answers as JSON, a line each")
    common.add_argument(
        "--project", default="", help="the project's slug (default: STARLING_PROJECT, or the first)"
    )
    jobs = (
        parser.add_subparsers(dest="subject", required=True)
        .add_parser("jobs", help="jobs")
        .add_subparsers(dest="verb", required=True)
    )

    def verb(name: str, run: Any, words: str, *, job: bool = True) -> argparse.ArgumentParser:
        made = jobs.add_parser(name, help=words, description=words, parents=[common])
        made.set_defaults(run=run)
        if job:
            made.add_argument("job", help="its id, such as job_abc…")
        return made

    listed = verb("list", _list, "Jobs, newest first.", job=False)
    listed.add_argument("--state", default="", help="a state, or active, paused, succeeded, failed, stopped")
    listed.add_argument("--limit", type=int, default=20)
    run = verb("run", _run, "Launch a preset, or a spec from a JSON file.", job=False)
    run.add_argument("spec", help="a preset's name, or a file")
    run.add_argument("--set", action="append", default=[], metavar="path=value", help="training.seed=7")
    run.add_argument("--watch", action="store_true", help="follow it to its end")
    verb("show", lambda client, asked: _told(asked, client.job(asked.job)), "One job.")
    verb("watch", _watch, "Follow a job to its end.")
    for deed, words in (("stop", "Stop a job."), ("pause", "Pause a job."), ("resume", "Let it go on.")):
        verb(deed, _act, words).set_defaults(deed=deed)
    verb("report", _report, "What a job has cost.")
    board = verb("tensorboard", _tensorboard, "Save a run for TensorBoard.")
    board.add_argument("folder", type=Path)
    return parser


def _list(client: Starling, asked: argparse.Namespace) -> int:
    for number, job in enumerate(client.jobs(state=asked.state, limit=min(200, max(1, asked.limit)))):
        if number >= asked.limit:
            break
        _told(asked, job)
    return 0


def _run(client: Starling, asked: argparse.Namespace) -> int:
    path = Path(asked.spec)
    spec = json.loads(path.read_text()) if path.suffix == ".json" else client.preset(asked.spec)["spec"]
    for change in asked.set:
        _put(spec, change)
    job = client.launch(spec)
    _told(asked, job)
    asked.job = job["id"]
    return _watch(client, asked) if asked.watch else 0


def _put(spec: dict[str, Any], change: str) -> None:
    path, equals, text = change.partition("=")
    *tables, name = path.split(".")
    if not equals or not name:
        raise StarlingError(
            {"detail": f"--set takes path=value, such as training.seed=7; {change!r} was given."}
        )
    for table in tables:
        spec = spec.setdefault(table, {})
    try:
        spec[name] = json.loads(text)
    except ValueError:
        spec[name] = text


def _watch(client: Starling, asked: argparse.Namespace) -> int:
    for event in client.follow(asked.job):
        if asked.json:
            print(json.dumps(event), flush=True)
        elif words := _words(event):
            print(words, flush=True)
    job = client.job(asked.job)
    _told(asked, job)
    return 0 if job["state"] == "succeeded" else 1


def _words(event: dict[str, Any]) -> str:
    told = event["payload"]
    if event["kind"] == "round":
        report = told["report"]
        mean = report["episode_return_mean"]
        shown = "–" if mean is None else f"{mean:,.1f}"
        return f"round {report['round_no']:>5}  {report['total_env_steps']:>10,} steps  return {shown}"
    if event["kind"] == "evaluation":
        return f"evaluation after round {told['round_no']}: {told['return_mean']:,.1f}"
    return str(told.get("text") or told.get("reason") or "")


def _told(asked: argparse.Namespace, job: dict[str, Any]) -> int:
    if asked.json:
        print(json.dumps(job), flush=True)
    else:
        spent = f"${job['spent_usd']} of ${job['limit_usd']}"
        print(f"{job['id']}  {job['state_words']:<18} {spent:<24} {job['name']}", flush=True)
    return 0


def _act(client: Starling, asked: argparse.Namespace) -> int:
    return _told(asked, client.act(asked.job, asked.deed))


def _report(client: Starling, asked: argparse.Namespace) -> int:
    cost = client.job(asked.job, "cost")
    if asked.json:
        print(json.dumps(cost))
        return 0
    for row in cost["by_kind"]:
        print(f"{row['kind']:<12} {row['settled']:>8,}  ${row['cost_usd']}")
    print(
        f"{'total':<21}  ${cost['total_usd']} ({cost['money']}), ${cost['free_usd']} of ${cost['limit_usd']} free"
    )
    return 0


def _tensorboard(client: Starling, asked: argparse.Namespace) -> int:
    asked.folder.mkdir(parents=True, exist_ok=True)
    path = f"/projects/{client.project}/jobs/{asked.job}/tensorboard"
    print(client.download(path, asked.folder / f"events.out.tfevents.0.{asked.job}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
