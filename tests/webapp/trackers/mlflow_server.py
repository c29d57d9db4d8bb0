"""A tracking server as MLflow's REST API describes it: experiments and runs with metrics, parameters and tags."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_API = "/api/2.0/mlflow/"
_FILE = re.compile(r"/api/2\.0/mlflow-artifacts/artifacts/1/(\w+)/artifacts/(.+)")
_NAME = re.compile(r"name = '([^']*)'")
_TAG = re.compile(r"tags\.`([^`]+)` = '([^']*)'")


@dataclass
class KeptRun:
    """A run as the server keeps it."""

    name: str
    experiment_id: str
    tags: dict[str, str]
    status: str = "RUNNING"
    parameters: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def curve(self, key: str) -> list[tuple[int, float]]:
        return [(one["step"], one["value"]) for one in self.metrics if one["key"] == key]


class MlflowServer:
    """`answers`: statuses to answer with before anything is taken. `open` is cleared to let every request wait."""

    def __init__(self) -> None:
        self.port = 0
        self.experiments: dict[str, str] = {}
        self.runs: dict[str, KeptRun] = {}
        self.answers: list[int] = []
        self.authorizations: list[str | None] = []
        self.largest = 0
        self.artifacts = "mlflow-artifacts:/1"
        self.open = threading.Event()
        self.open.set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def run(self) -> KeptRun:
        (only,) = self.runs.values()
        return only

    def _info(self, run_id: str) -> dict[str, str]:
        return {"run_id": run_id, "artifact_uri": f"{self.artifacts}/{run_id}/artifacts"}

    def take_file(self, path: str, content: bytes) -> int:
        """The status of a file's upload."""
        found = _FILE.fullmatch(path)
        if found is None:
            return 404
        self.runs[found[1]].files[found[2]] = content
        return 200

    def take(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and answer to a request."""
        if self.answers:
            return self.answers.pop(0), {"error_code": "REFUSED", "message": "Not\nnow, <b>please</b>."}
        match path:
            case "experiments/search":
                (name,) = _NAME.findall(body["filter"])
                found = [{"experiment_id": self.experiments[name]}] if name in self.experiments else []
                return 200, {"experiments": found} if found else {}
            case "experiments/create":
                self.experiments[body["name"]] = str(len(self.experiments) + 1)
                return 200, {"experiment_id": self.experiments[body["name"]]}
            case "runs/search":
                ((key, value),) = _TAG.findall(body["filter"])
                ids = [run_id for run_id, run in self.runs.items() if run.tags.get(key) == value]
                return 200, {"runs": [{"info": self._info(one)} for one in ids]} if ids else {}
            case "runs/create":
                run_id = f"run{len(self.runs) + 1}"
                tags = {tag["key"]: tag["value"] for tag in body["tags"]}
                self.runs[run_id] = KeptRun(body["run_name"], body["experiment_id"], tags)
                return 200, {"run": {"info": self._info(run_id)}}
            case "runs/log-batch":
                run = self.runs[body["run_id"]]
                metrics, parameters = body.get("metrics", []), body.get("params", [])
                self.largest = max(self.largest, len(metrics))
                if len(metrics) > 1000 or len(parameters) > 100:
                    return 400, {"error_code": "INVALID_PARAMETER_VALUE", "message": "Too many."}
                run.metrics += metrics
                run.parameters |= {one["key"]: one["value"] for one in parameters}
                return 200, {}
            case "runs/update":
                self.runs[body["run_id"]].status = body["status"]
                return 200, {"run_info": {}}
        return 404, {"error_code": "ENDPOINT_NOT_FOUND", "message": path}


@contextmanager
def mlflow_server() -> Iterator[MlflowServer]:
    """The server on a free port while the block runs."""
    kept = MlflowServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            kept.authorizations.append(self.headers.get("Authorization"))
            kept.open.wait(60)
            status, answer = kept.take(self.path.removeprefix(_API), body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            kept.authorizations.append(self.headers.get("Authorization"))
            self.send_response(kept.take_file(self.path, content))
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                pass  # the sender hung up

        def log_message(self, *details: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield kept
    finally:
        kept.open.set()
        server.shutdown()
        server.server_close()
