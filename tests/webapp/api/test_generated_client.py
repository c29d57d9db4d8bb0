"""A client that another maker's generator builds from the description launches, watches and stops a job."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings

from rig.servers import wait_until
from tests.factories import make_project, make_spec, make_user
from webapp.api.rest import api
from webapp.api.tokens import make_token
from webapp.jobs.models import Job

PACKAGE = "generated_starling_client"


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        yield from _objects(one)


def test_the_description_is_one_that_generators_read() -> None:
    described = json.loads(json.dumps(api.get_openapi_schema()))
    names = [one["operationId"] for path in described["paths"].values() for one in path.values()]
    assert len(names) == len(set(names)) > 140
    assert [one for one in names if not re.fullmatch(r"[a-z]+(_[a-z]+)+", one)] == []
    assert {"create_job", "stop_job", "get_job", "fork_job", "create_seeds", "create_sweep"} <= set(names)
    assert described["servers"] == [{"url": django_settings.STARLING_BASE_URL}]
    broken = [
        one
        for one in _objects(described)
        if isinstance(one.get("default"), dict) and one.keys() & {"oneOf", "anyOf", "allOf", "$ref"}
    ]
    assert broken == []
    schemas = described["components"]["schemas"]
    points = {
        one["$ref"].rpartition("/")[2] for one in _objects(described) if isinstance(one.get("$ref"), str)
    }
    assert points <= set(schemas)
    assert {"kind"} <= set(schemas["PPO"]["required"]) & set(schemas["LambdaOptions"]["required"])
    sent, returned = (schemas[name]["properties"]["budget_usd"] for name in ("JobSpec", "JobSpecOutput"))
    assert {one["type"] for one in sent["anyOf"]} == {"number", "string"}
    assert returned["type"] == "string"


def _generate(folder: Path) -> str:
    """Build the client into the folder; what the generator says."""
    described, config = folder / "openapi.json", folder / "generator.json"
    described.write_text(json.dumps(api.get_openapi_schema()))
    config.write_text(json.dumps({"post_hooks": [], "literal_enums": True}))
    options = ["--path", described, "--config", config, "--output-path", folder / PACKAGE, "--meta", "none"]
    command = [sys.executable, "-m", "openapi_python_client", "generate", "--fail-on-warning", *options]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_generated_client_creates_watches_and_stops_a_job(
    live_site: str, live_worker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "WARNING" not in _generate(tmp_path)
    described = api.get_openapi_schema()["paths"]
    modules = {one.stem for one in (tmp_path / PACKAGE / "api").rglob("*.py")} - {"__init__"}
    assert modules == {one["operationId"] for path in described.values() for one in path.values()}

    monkeypatch.syspath_prepend(str(tmp_path))
    package = importlib.import_module(PACKAGE)
    models = importlib.import_module(f"{PACKAGE}.models")

    def operation(name: str) -> Any:
        return importlib.import_module(f"{PACKAGE}.api.jobs.{name}")

    user = make_user()
    project = make_project(user)
    _, key = make_token(user=user, name="Generated", scopes=("jobs",))
    client = package.AuthenticatedClient(base_url=live_site, token=key)

    spec = make_spec().model_dump(mode="json")
    spec["training"]["stop"] = {"env_steps": 10_000_000}
    made = operation("create_job").sync_detailed(
        project.slug, client=client, body=models.JobSpec.from_dict(spec), idempotency_key="one"
    )
    assert made.status_code == 201, made.content
    job_id = made.parsed.id

    def seen() -> Any:
        time.sleep(0.2)  # a token has so many requests a minute
        return operation("get_job").sync(project.slug, job_id, client=client)

    wait_until(lambda: seen().state == "running", within_s=120, what="the job runs")
    stopped = operation("stop_job").sync_detailed(project.slug, job_id, client=client)
    assert stopped.status_code == 200
    wait_until(lambda: seen().over, within_s=120, what="the job is over")
    assert seen().state == "cancelled"
    assert Job.objects.get(pk=job_id).observed == "cancelled"
