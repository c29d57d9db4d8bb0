"""The form of a scheduler's training, generated from `TrainingRequest` as the job form is from a job's spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from training.scheduling.agents import agent_for
from webapp.accounts.models import Project
from webapp.jobs.form.forms import SpecForm
from webapp.jobs.form.presets import presets
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.launch.project_choices import data_sets
from webapp.schedulers import queries, services
from webapp.schedulers.request import AGENT_NAMES, TrainingRequest, workload_of
from webapp.schedulers.text import choices, subject

_PRESETS_DATA = Named("", "The preset's", "")
_FROM_SCRATCH = Named("", "Nothing: from scratch", "An agent that knows nothing yet.")


def training_form(project: Project, data: Mapping[str, Any] | None, query: Mapping[str, Any]) -> SpecForm:
    """`query` may name the workload and the scheduler to begin with."""
    begin_with = [
        Named(
            one.key,
            str(one),
            f"Knows {subject(one.training.parsed_spec)}, chooses from {choices(one.training.parsed_spec)}. Ten real"
            " episodes are usually enough.",
        )
        for one in queries.versions_of(project)
    ]
    named = {
        "workload": _workloads(),
        "data": [_PRESETS_DATA, *data_sets().list_options(project)],
        "begin_with": [_FROM_SCRATCH, *begin_with],
        "platform.profile": _files(profiles, "lambda"),
        "platform.stack": _files(stacks, stacks.OURS),
    }
    return SpecForm(
        TrainingRequest,
        data,
        _start(project, query),
        lambda request: services.obstacles(project, request),
        named,
        untagged={"scheduling": "minionsrl"},
    )


def _start(project: Project, query: Mapping[str, Any]) -> TrainingRequest:
    start = TrainingRequest()
    workload = query.get("workload", "")
    if workload_of(workload) is not None:
        named = {"workload": workload, "name": presets()[workload].title[:60], "data": query.get("data", "")}
        start = TrainingRequest.model_validate(named)
    version = queries.version_in(project, query.get("begin_with", ""))
    return start if version is None else services.continue_with(start, version)


def _workloads() -> list[Named]:
    return [
        Named(one.name, one.title, f"{one.description} Agent: {AGENT_NAMES[agent_for(one.spec.training)]}.")
        for one in presets().values()
    ]


def _files(files: Any, first: str) -> list[Named]:
    names = sorted(files.names(), key=lambda name: (name != first, name))
    return [Named(name, files.load(name).title, files.load(name).words) for name in names]
