"""The starting point of a job's form: a preset, another job or a checkpoint; and what the form is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, QueryDict
from pydantic import ValidationError

from training.supervised.models import simplest_model
from training.tasks.supervised_spec import Supervised
from training.tasks.training import Training
from webapp.accounts.models import Project
from webapp.formatting import read_whole
from webapp.jobs import lineage, queries
from webapp.jobs.form.presets import Preset, presets
from webapp.jobs.form.variant_switch import switch_variant
from webapp.jobs.launch.project_choices import data_sets
from webapp.jobs.models import Job, OriginKind
from webapp.jobs.policies.downloads import KeptCheckpoint, list_checkpoints
from webapp.jobs.seed_groups import without_seed
from webapp.jobs.spec import JobSpec

FILE = "file"
_NAMED = (
    *("preset", "environment", "memory_mb", "copies", "connection", "scheduler", "profile"),
    *("scaling", "actors"),
)


@dataclass(frozen=True)
class StartingPoint:
    """A form's starting point.

    `address` is its part of the form's URL. `start` holds the initial values. The form is compared with
    `compared`, called `title`; None if there is nothing to compare with.
    """

    address: str
    title: str
    start: JobSpec | Mapping[str, Any]
    compared: JobSpec | Mapping[str, Any] | None
    preset: Preset | None = None
    job: Job | None = None
    checkpoints: tuple[KeptCheckpoint, ...] = ()
    checkpoint: str = ""

    def made_from(self, checkpoint: str) -> lineage.Source | None:
        """Return the launch's source job, with the chosen checkpoint of a fork."""
        if self.job is None:
            return None
        if not self.checkpoints:
            return lineage.Source(self.job, OriginKind.CLONE)
        chosen = next((kept for kept in self.checkpoints if kept.name == checkpoint), None)
        return lineage.fork_of(self.job, chosen or self._chosen)

    @property
    def _chosen(self) -> KeptCheckpoint:
        named = (kept for kept in self.checkpoints if kept.name == self.checkpoint)
        return next(named, self.checkpoints[0])

    @property
    def chosen_name(self) -> str:
        return self._chosen.name if self.checkpoints else ""


def starting_point(project: Project, query: Mapping[str, Any]) -> StartingPoint:
    """Return the starting point that the URL names. Http404 for a job outside the project."""
    if job_id := query.get("clone") or query.get("fork"):
        job = queries.job_in(project, str(job_id))
        return _forked(job, query) if query.get("fork") else _cloned(job)
    preset, spec = begun_with(query)
    named = {key: query[key] for key in _NAMED if query.get(key)}
    if named.get("environment") != spec.training.subject:
        named.pop("environment", None)  # there is no such one
    if data := query.get("data"):
        return _of_data(project, str(data), str(query.get("scheduler", "")))
    if name := query.get(FILE):
        return StartingPoint(urlencode({FILE: name}), f"the file {name}", spec, None)
    return StartingPoint(
        urlencode({**named, "preset": preset.name}), f"the preset {preset.title}", spec, preset.spec, preset
    )


def _of_data(project: Project, data: str, scheduler: str) -> StartingPoint:
    """Return a job that learns from this data set, with the simplest model that can. Http404 if there is none."""
    manifest = data_sets().manifest_of(project, data)
    if manifest is None:
        raise Http404("There is no such data set in this project.")
    model = simplest_model(manifest.shape).model_dump(mode="json")
    learned = {"kind": "supervised", "data": data, "model": model}
    known = [preset.spec for preset in presets().values()]
    base = next((spec for spec in known if isinstance(spec.training, Supervised)), known[0])
    spec = _changed(base, {"name": manifest.name[:100], "training": learned})
    named = {"data": data}
    if scheduler:
        named["scheduler"] = scheduler
        spec = _changed(spec, {"training.scaling": _decided_by(scheduler, spec.training)})
    return StartingPoint(urlencode(named), f"the data set {manifest.name}", spec, None)


def of_address(project: Project, address: str) -> StartingPoint:
    """Return the starting point stored in a draft; the default one if its job is gone."""
    try:
        return starting_point(project, QueryDict(address))
    except Http404:
        return starting_point(project, {})


def _cloned(job: Job) -> StartingPoint:
    name = without_seed(job.name)
    return StartingPoint(
        urlencode({"clone": job.pk}), f"“{job.name}”", _renamed(job, name), _renamed(job, name), job=job
    )


def _forked(job: Job, query: Mapping[str, Any]) -> StartingPoint:
    rows = tuple(list_checkpoints(job))
    if not rows:
        raise Http404("This job has no checkpoint to begin with.")
    start = _renamed(job, f"{without_seed(job.name)[:94]}, fork")
    return StartingPoint(
        urlencode({"fork": job.pk, "checkpoint": str(query.get("checkpoint", ""))}),
        f"“{job.name}”",
        start,
        start,
        job=job,
        checkpoints=rows,
        checkpoint=str(query.get("checkpoint", "")),
    )


def _renamed(job: Job, name: str) -> JobSpec | dict[str, Any]:
    """Return the job's spec outside its group; an older version's as stored, so that the form shows its problems."""
    document = {**job.spec, "name": name, "group": ""}
    try:
        return JobSpec.model_validate(document)
    except ValidationError:
        return document


def begun_with(query: Mapping[str, Any]) -> tuple[Preset, JobSpec]:
    """Return the preset that the query names, or the first with the environment it names, and its spec with
    the query's values.

    Values that do not fit are left out.
    """
    subject = query.get("environment", "")
    known = presets()
    fitting = (candidate for candidate in known.values() if candidate.spec.training.subject == subject)
    preset = known.get(query.get("preset", "")) or next(fitting, next(iter(known.values())))
    spec = preset.spec
    for change in _changes(query, spec.training):
        spec = _changed(spec, change)
    return preset, spec


def _decided_by(scheduler: str, training: Training) -> dict[str, Any]:
    """Return the scaling policy that decides with a scheduler of such trainings."""
    return {"kind": "siren" if isinstance(training, Supervised) else "learned", "scheduler": scheduler}


def _changes(query: Mapping[str, Any], training: Training) -> list[dict[str, Any]]:
    """Return the values in the URL by path."""
    changes: list[dict[str, Any]] = []
    if query.get("environment"):
        changes.append({"training.environment.id": query["environment"]})
    if (memory_mb := read_whole(query.get("memory_mb", ""))) is not None:
        changes.append({"training.rollout.memory_mb": memory_mb})
    if (copies := read_whole(query.get("copies", ""))) is not None:
        changes.append({"training.rollout.environments_per_actor": copies})
    if query.get("connection"):
        changes.append({"platform": {"kind": "aws_lambda", "connection": query["connection"]}})
    if query.get("scheduler"):
        changes.append({"training.scaling": _decided_by(query["scheduler"], training)})
    if query.get("scaling"):
        actors = {"actors": int(query["actors"])} if query.get("actors", "").isdecimal() else {}
        changes.append({"training.scaling": {"kind": query["scaling"], **actors}})
    if query.get("profile"):
        changes.append({"platform": {"kind": "simulated", "profile": query["profile"]}})
    return changes


def _changed(spec: JobSpec, changes: Mapping[str, Any]) -> JobSpec:
    document = spec.model_dump(mode="json")
    for path, value in changes.items():
        *tables, field = path.split(".")
        here = document
        for table in tables:
            here = here[table]
        if isinstance(value, Mapping):  # a variant keeps the values that it shares with the preset's
            value = {**switch_variant(JobSpec, path, here[field], value["kind"]), **value}
        here[field] = value
    try:
        return JobSpec.model_validate(document)
    except (ValidationError, KeyError):
        return spec
