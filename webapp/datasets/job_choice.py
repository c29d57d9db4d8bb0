"""Data sets in jobs: the choices of forms, and what prevents a job from learning from the one it names."""

from __future__ import annotations

from collections.abc import Sequence

from training.data import library
from training.data.manifest import Manifest
from training.data.shipped import SHIPPED
from training.data.store import MissingData
from training.tasks.supervised_spec import Supervised
from webapp.accounts.models import Project
from webapp.datasets import files, queries
from webapp.datasets.models import DataState
from webapp.datasets.text import feature_words
from webapp.formatting import plural
from webapp.jobs.form.spec_fields import Named
from webapp.jobs.form.spec_problems import SpecProblem
from webapp.jobs.spec import JobSpec

FIELD = "training.data"
_OFFERED = 100


def list_options(project: Project) -> list[Named]:
    """The project's data sets, newest first, then those shipped with Starling."""
    ready = queries.data_sets_of(project).filter(state=DataState.READY).defer("survey")[:_OFFERED]
    own = {
        data_set.manifest: Named(
            data_set.manifest,
            data_set.name,
            f"{plural(data_set.facts['rows'], 'row')} to learn from, {feature_words(data_set)},"
            f" {plural(len(data_set.facts['classes']), 'class', 'classes')}.",
        )
        for data_set in ready
    }
    return [*own.values(), *(Named(one.key, one.title, f"{one.words}.") for one in SHIPPED.values())]


def manifest_of(project: Project, data: str) -> Manifest | None:
    """What the data set is that a spec would name so; None if the project has none."""
    if data in SHIPPED:
        try:
            return library.manifest_of(data)
        except MissingData:
            return None
    return files.read_manifest(data) if queries.ready_with(project, data) is not None else None


def obstacles(project: Project, spec: JobSpec) -> Sequence[SpecProblem]:
    training = spec.training
    if not isinstance(training, Supervised):
        return []
    manifest = manifest_of(project, training.data)
    if manifest is None:
        words = f"this project has no data set {training.data[:12]}. Choose another, or upload its table."
        return [SpecProblem(FIELD, f"Data set ({FIELD}): {words}")]
    gone = 0 if training.data in SHIPPED else files.missing_shards(manifest)
    if gone:
        verb = "is" if gone == 1 else "are"
        words = f"{plural(gone, 'file')} of {manifest.name} {verb} gone or changed. Upload the table again."
        return [SpecProblem(FIELD, f"Data set ({FIELD}): {words}")]
    return [*_too_few_rows(training, manifest), *_too_little_memory(spec, training, manifest)]


def _too_few_rows(training: Supervised, manifest: Manifest) -> list[SpecProblem]:
    functions, rows = training.scaling.largest, manifest.rows
    wanted = functions * training.minibatch
    if rows >= wanted:
        return []
    path = "training.minibatch"
    return [
        SpecProblem(
            path,
            f"Minibatch ({path}): {plural(functions, 'function')} with {plural(training.minibatch, 'row')} each need"
            f" {wanted:,} rows, and {manifest.name} has {rows:,} to learn from. Take fewer functions or a smaller"
            " minibatch.",
        )
    ]


def _too_little_memory(spec: JobSpec, training: Supervised, manifest: Manifest) -> list[SpecProblem]:
    """Return the problem of functions that would end for lack of memory, each of them paid."""
    if not spec.platform.has_functions:
        return []
    changing = training.scaling.memory_range_mb
    path, least_mb = (
        ("training.scaling", changing[0])
        if changing
        else (f"training.{training.memory_field}", training.memory_mb)
    )
    needed_mb = training.needed_memory_mb
    if needed_mb <= least_mb:
        return []
    return [
        SpecProblem(
            path,
            f"Memory of a function ({path}): a call with {training.progress_a_call:,} rows of {manifest.name} needs"
            f" about {needed_mb:,} MB, and may have {least_mb:,} MB. Give it more memory, or take a smaller minibatch"
            " or fewer local steps.",
        )
    ]
