"""A fresh job form that begins with what another page found out, handed over in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from webapp.jobs.form.presets import Preset, presets
from webapp.jobs.form.variant_switch import switched
from webapp.jobs.spec import JobSpec


def begun_with(query: Mapping[str, Any]) -> tuple[Preset, JobSpec]:
    """The preset named there, or the first that has the environment named there; and its spec with the rest filled in.

    What does not fit is left out: the form then begins as it otherwise would.
    """
    environment = query.get("environment", "")
    known = presets()
    fitting = (one for one in known.values() if one.spec.training.environment.id == environment)
    preset = known.get(query.get("preset", "")) or next(fitting, next(iter(known.values())))
    spec = preset.spec
    for change in _changes(query):
        spec = _changed(spec, change)
    return preset, spec


def _changes(query: Mapping[str, Any]) -> list[dict[str, Any]]:
    """By path, what each value in the address stands for."""
    found: list[dict[str, Any]] = []
    if query.get("environment"):
        found.append({"training.environment.id": query["environment"]})
    if query.get("memory_mb", "").isdecimal():
        found.append({"training.rollout.memory_mb": int(query["memory_mb"])})
    if query.get("connection"):
        found.append({"platform": {"kind": "aws_lambda", "connection": query["connection"]}})
    if query.get("scheduler"):
        found.append({"training.scaling": {"kind": "learned", "scheduler": query["scheduler"]}})
    if query.get("profile"):
        found.append({"platform": {"kind": "simulated", "profile": query["profile"]}})
    return found


def _changed(spec: JobSpec, changes: Mapping[str, Any]) -> JobSpec:
    document = spec.model_dump(mode="json")
    for path, value in changes.items():
        *tables, field = path.split(".")
        here = document
        for table in tables:
            here = here[table]
        if isinstance(value, Mapping):  # a variant, which keeps what it has in common with the preset's
            value = {**switched(JobSpec, path, here[field], value["kind"]), **value}
        here[field] = value
    try:
        return JobSpec.model_validate(document)
    except (ValidationError, KeyError):
        return spec
