"""A run in MLflow, by the REST API of its tracking server. No package is needed.

https://mlflow.org/docs/latest/api_reference/rest-api.html
"""

from __future__ import annotations

import base64
import itertools
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from webapp.connections.sealing import Secret
from webapp.http import safe_http
from webapp.trackers.tracking import End, NotTracked, RunFacts, TrackedStep, TryLater

_JOB = "starling.job"
_AT_ONCE = 1000
_PARAMETERS_AT_ONCE = 100
_LONGEST_VALUE = 500
_ANSWER_BYTES = 1_000_000
_STATUS: Mapping[End, str] = {"finished": "FINISHED", "failed": "FAILED", "stopped": "KILLED"}


class MlflowRun:
    """A run below the experiment of that name, which is created if there is none.

    `token`: a bearer token, or user:password; None for a server without either.
    """

    def __init__(self, address: str, experiment: str, token: Secret | None) -> None:
        self._address, self._experiment, self._token = address.rstrip("/"), experiment, token
        self._run_id, self._artifacts = "", ""

    def begin(self, facts: RunFacts) -> str:
        experiment_id = (
            self._find_experiment()
            or self._call("experiments/create", {"name": self._experiment})["experiment_id"]
        )
        self._run_id = self._find_run(experiment_id, facts.job_id) or self._create_run(experiment_id, facts)
        return f"{self._address}/#/experiments/{experiment_id}/runs/{self._run_id}"

    def send(self, rows: Sequence[TrackedStep]) -> None:
        metrics = (
            {"key": key, "value": value, "timestamp": int(row.at_s * 1000), "step": row.step}
            for row in rows
            for key, value in row.figures.items()
        )
        for some in _parts(metrics, _AT_ONCE):
            self._call("runs/log-batch", {"run_id": self._run_id, "metrics": some})

    def end(self, end: End, figures: Mapping[str, float]) -> None:
        now_ms = int(time.time() * 1000)
        metrics = [{"key": k, "value": v, "timestamp": now_ms, "step": 0} for k, v in figures.items()]
        if metrics:
            self._call("runs/log-batch", {"run_id": self._run_id, "metrics": metrics})
        if end in _STATUS:
            self._call("runs/update", {"run_id": self._run_id, "status": _STATUS[end], "end_time": now_ms})

    def keep(self, files: Mapping[str, bytes]) -> None:
        """Upload through the server. One whose clients write to its storage themselves gets nothing."""
        place = urlsplit(self._artifacts)
        if place.scheme == "mlflow-artifacts":
            for name, content in files.items():
                path = quote(f"{place.path.strip('/')}/policy/{name}")
                self._send("PUT", f"mlflow-artifacts/artifacts/{path}", content, "application/octet-stream")

    def close(self) -> None: ...

    def _find_experiment(self) -> str:
        quoted = self._experiment.replace("'", "\\'")
        body = {"max_results": 1, "filter": f"name = '{quoted}'", "view_type": "ACTIVE_ONLY"}
        experiments = self._call("experiments/search", body).get("experiments") or []
        return str(experiments[0]["experiment_id"]) if experiments else ""

    def _find_run(self, experiment_id: str, job_id: str) -> str:
        """The run that an earlier process of the job made; open again, as it goes on."""
        body = {"experiment_ids": [experiment_id], "filter": f"tags.`{_JOB}` = '{job_id}'", "max_results": 1}
        runs = self._call("runs/search", body).get("runs") or []
        if not runs:
            return ""
        run_id = str(runs[0]["info"]["run_id"])
        self._artifacts = str(runs[0]["info"].get("artifact_uri", ""))
        self._call("runs/update", {"run_id": run_id, "status": "RUNNING"})
        return run_id

    def _create_run(self, experiment_id: str, facts: RunFacts) -> str:
        tags = [{"key": key, "value": value} for key, value in {**facts.tags, _JOB: facts.job_id}.items()]
        body = {
            "experiment_id": experiment_id,
            "run_name": facts.name,
            "start_time": int(time.time() * 1000),
            "tags": tags,
        }
        info = self._call("runs/create", body)["run"]["info"]
        run_id, self._artifacts = str(info["run_id"]), str(info.get("artifact_uri", ""))
        named = ({"key": key, "value": value[:_LONGEST_VALUE]} for key, value in facts.parameters.items())
        for some in _parts(named, _PARAMETERS_AT_ONCE):
            self._call("runs/log-batch", {"run_id": run_id, "params": some})
        return run_id

    def _call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return _document(self._send("POST", f"mlflow/{path}", json.dumps(body).encode(), "application/json"))

    def _send(self, method: str, path: str, content: bytes, kind: str) -> bytes:
        headers = {"Content-Type": kind, **self._authorization()}
        url = f"{self._address}/api/2.0/{path}"
        try:
            answer = safe_http.post(url, content, headers, most_bytes=_ANSWER_BYTES, method=method)
        except safe_http.HostUnreachable as error:
            raise TryLater(str(error)) from None
        except safe_http.AddressRefused as refusal:
            raise NotTracked(str(refusal)) from None
        if answer.status == 429 or answer.status >= 500:
            raise TryLater(f"MLflow answered {answer.status}.")
        if answer.status in (401, 403):
            raise NotTracked(f"MLflow refused the token ({answer.status}). Set another one under Trackers.")
        if answer.status != 200:
            raise NotTracked(
                f"MLflow refused {path.removeprefix('mlflow/')} ({answer.status}): {_message(answer.body)}"
            )
        return answer.body

    def _authorization(self) -> dict[str, str]:
        if self._token is None:
            return {}
        plain = self._token.reveal()
        if ":" in plain:
            return {"Authorization": f"Basic {base64.b64encode(plain.encode()).decode()}"}
        return {"Authorization": f"Bearer {plain}"}


def _document(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body or b"{}")
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise NotTracked("This address answers, but not as MLflow does. Correct it under Trackers.")
    return document


def _message(body: bytes) -> str:
    """The server's reason, of any origin: plain letters, and not many."""
    try:
        text = str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return "it gave no reason."
    return " ".join(text.split())[:160]


def _parts(things: Iterable[Any], size: int) -> Iterable[list[Any]]:
    left = iter(things)
    while some := list(itertools.islice(left, size)):
        yield some
