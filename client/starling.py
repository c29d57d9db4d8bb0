#!/usr/bin/env python3
"""Starling's client in one file. It needs Python 3.9 or later and nothing else.

    client = Starling("https://starling.example.org", "starling_pat_…")
    job = client.launch(client.preset("cartpole")["spec"])
    for event in client.follow(job["id"]): print(event["kind"])

What is not given comes from STARLING_URL, STARLING_TOKEN and STARLING_PROJECT, else from starling.json in
$XDG_CONFIG_HOME or ~/.config with {"url": …, "token": …, "project": …}. A token is sent only to the origin (scheme,
host and port) of the url beside it. Whatever has no method of its own: client.call("PUT", "/budgets/3", {…}).
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__version__ = "0.1.0"

_HOMES = (Path(os.environ.get("XDG_CONFIG_HOME", "")), Path.home() / ".config")
CONFIG = next(home for home in _HOMES if home.is_absolute()) / "starling.json"
_LOCAL = "http://127.0.0.1:8000"
_PORTS = {"http": 80, "https": 443}
_TRIES, _SLOWEST_S = 4, 30.0


class StarlingError(Exception):
    """`problem` says what, why and fix and, field by field, errors; its status is 0 without an answer."""

    def __init__(self, what: str, why: str = "", fix: str = "", **rest: Any) -> None:
        super().__init__(" ".join(part for part in (what, why, fix) if part))
        self.problem: dict[str, Any] = {"what": what, "why": why, "fix": fix, "status": 0, **rest}


class Starling:
    """A project of a dashboard."""

    def __init__(self, url: str = "", token: str = "", project: str = "") -> None:
        variables = {
            name: os.environ.get(f"STARLING_{name.upper()}", "") for name in ("url", "token", "project")
        }
        kept = _kept()
        self.url = (url or variables["url"] or kept["url"]).rstrip("/")
        sources = {"": {"token": token, "project": project}, "STARLING_TOKEN": variables, str(CONFIG): kept}
        self._elsewhere = [  # tokens and projects belong to the url beside them
            f"The token of {name} is for {source['url']} and is not sent to {self.url}."
            for name, source in sources.items()
            if source.get("token") and not _is_for(source, self.url)
        ]
        own = [source for source in sources.values() if _is_for(source, self.url)]
        self._token = next((source["token"] for source in own if source.get("token")), "")
        self._project = next((source["project"] for source in own if source.get("project")), "")
        if self._token and self._token == kept.get("token"):
            _require_private(CONFIG)

    @property
    def project(self) -> str:
        """Its slug; without one given, the first that the token can see."""
        if not self._project:
            projects = self.call("GET", "//projects")
            if not projects:
                raise StarlingError("Nothing was sent.", "This token can see no project.", "Use another one.")
            self._project = projects[0]["slug"]
        return str(self._project)

    def call(self, method: str, path: str, body: Any = None, key: str = "", **query: Any) -> Any:
        """Call any address: /jobs of the project, //presets of the installation. With a key it may be sent again."""
        answer = self.fetch(method, path, body, key, **query)
        return json.loads(answer) if answer else None

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """All rows of a list, page by page."""
        while True:
            page = self.call("GET", path, **query)
            yield from page["results"]
            if page["next"] is None:
                return
            query["cursor" if isinstance(page["next"], str) else "after"] = page["next"]

    def jobs(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Newest first; filters such as state="active"."""
        return self.pages("/jobs", **filters)

    def job(self, job_id: str, what: str = "", **query: Any) -> Any:
        """The job, or what="cost", "rounds", "evaluations", "checkpoints", "spec" of it."""
        return self.call("GET", f"/jobs/{job_id}/{what}".rstrip("/"), **query)

    def preset(self, name: str) -> Any:
        return self.call("GET", f"//presets/{name}")

    def launch(self, spec: dict[str, Any], key: str = "") -> Any:
        """Launch once, also if the answer is lost and the request is sent again."""
        return self.call("POST", "/jobs", spec, key or uuid.uuid4().hex)

    def act(self, job_id: str, action: str) -> Any:
        """`action`: stop, pause or resume."""
        return self.call("POST", f"/jobs/{job_id}/{action}")

    def follow(self, job_id: str, after: int = 0, every_s: float = 1.0) -> Iterator[dict[str, Any]]:
        """Yield events until the job is over or paused: as they happen where the server has a stream."""
        while True:
            job = self.job(job_id)
            rests = job["over"] or job["state"] == "paused"
            for event in self.pages(f"/jobs/{job_id}/events", after=after, limit=200):
                after = event["seq"]
                yield event
            if rests:
                return
            for event in self._streamed(job_id, after):
                after = event["seq"]
                yield event
                if event["payload"].get("observed") == "paused":
                    break
            time.sleep(every_s)

    def _streamed(self, job_id: str, after: int) -> Iterator[dict[str, Any]]:
        """Yield events until the stream ends or breaks; none where the server refuses one."""
        place = urllib.parse.quote(f"/projects/{self.project}/jobs/{job_id}/events/stream")
        headers = {"Authorization": f"Bearer {self._token}", "Last-Event-ID": str(after)}
        request = urllib.request.Request(f"{self.url}/api/v1{place}", headers=headers)
        try:
            with open_url(request, timeout=60) as stream:
                for line in stream:
                    if line.startswith(b"data: {") and b'"seq"' in line:
                        yield json.loads(line[len(b"data: ") :])
        except OSError:  # what has not come yet is asked for
            return

    def fetch(self, method: str, path: str, body: Any = None, key: str = "", **query: Any) -> bytes:
        """The raw response, such as a file."""
        if not self._token:
            fix = f"Make one at {self.url}/account/tokens/ and set STARLING_TOKEN to it."
            raise StarlingError(
                "Nothing was sent.", " ".join(self._elsewhere) or "No token is set.", fix, status=401
            )
        place = path[1:] if path.startswith("//") else f"/projects/{self.project}{path}"
        given = {name: value for name, value in query.items() if value not in (None, "")}
        text = f"?{urllib.parse.urlencode(given, doseq=True)}" if given else ""
        address = f"{self.url}/api/v1{urllib.parse.quote(place)}{text}"
        own = getattr(body, "headers", {})  # of a form with a file, which is sent as it is
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json", **own}
        headers.update({"Idempotency-Key": key} if key else {})
        data = body if own or body is None else json.dumps(body).encode()
        may_repeat = method == "GET" or bool(key)
        for tried in range(1, _TRIES + 1):
            try:
                request = urllib.request.Request(address, data, headers, method=method)
                with open_url(request, timeout=60) as answer:
                    return bytes(answer.read())
            except urllib.error.HTTPError as error:
                wait_s = float(error.headers.get("Retry-After") or 2**tried / 2)
                if tried == _TRIES or not (error.code == 429 or (error.code >= 502 and may_repeat)):
                    raise StarlingError(**_problem(error, address)) from None
            except OSError as error:
                wait_s = 2.0**tried / 2
                if tried == _TRIES or not may_repeat:
                    why = f"{self.url} cannot be reached: {getattr(error, 'reason', error)}."
                    fix = "See that it runs and that STARLING_URL names it."
                    raise StarlingError("No answer.", why, fix) from None
            time.sleep(min(wait_s, _SLOWEST_S))
        raise AssertionError("the last attempt answers or raises")


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects of reads, to another origin without the token. A change is not sent again as a read."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if req.get_method() != "GET":
            return None
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        if following is not None and _origin(newurl) != _origin(req.full_url):
            following.remove_header("Authorization")
        return following


def open_url(request: urllib.request.Request, timeout: float) -> Any:
    """As urllib's `urlopen`, which would send the token to wherever it is redirected."""
    return urllib.request.build_opener(_Redirects).open(request, timeout=timeout)


def _origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port. Raises StarlingError for anything but http and https."""
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        raise StarlingError(
            "Nothing was sent.",
            f"{url} is no address of a dashboard.",
            "Write it as https://your.site.",
            status=400,
        ) from None


def _is_for(source: dict[str, str], url: str) -> bool:
    return not source.get("url") or _origin(source["url"]) == _origin(url)


def _kept() -> dict[str, str]:
    """What the file holds. A token without an address belongs to this machine's dashboard."""
    try:
        entries = json.loads(CONFIG.read_text("utf-8")).items()
        return {"url": _LOCAL, **{name: str(value) for name, value in entries if value}}
    except (FileNotFoundError, NotADirectoryError):
        return {"url": _LOCAL}
    except (OSError, ValueError, AttributeError) as error:
        fix = 'Correct it: {"url": "https://your.site", "token": "starling_pat_…"}.'
        raise StarlingError(
            "Nothing was sent.", f"{CONFIG} cannot be read: {error}.", fix, status=400
        ) from None


def _require_private(file: Path) -> None:
    """Raise StarlingError if other users of this machine can read the file or change it."""
    mode = file.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        why = f"It holds your token, and other users of this machine may open {file} (mode {mode:o})."
        fix = f"Run: chmod 600 {file}. If others use this machine, revoke the token and make a new one."
        raise StarlingError("Nothing was sent.", why, fix, status=400)


def _problem(error: urllib.error.HTTPError, sent_to: str) -> dict[str, Any]:
    ended_at = urllib.parse.urljoin(sent_to, error.headers.get("Location") or error.url)
    if 300 <= error.code < 400 or _origin(ended_at) != _origin(sent_to):
        why = f"{sent_to} redirects to {ended_at}, where neither your token nor a change is sent."
        fix = "If that is your dashboard, set STARLING_URL to its address."
        return {"what": "The request was not answered.", "why": why, "fix": fix, "status": 400}
    try:
        return {"what": "The request failed.", **json.loads(error.read())}
    except ValueError:
        why = f"The server answered {error.code} {error.reason}."
        return {"what": "The request failed.", "why": why, "fix": "Try again later.", "status": error.code}
