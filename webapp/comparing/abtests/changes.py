"""The one change between the two sides of a test: what may change, and the spec with the change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import ValidationError

from webapp.comparing.groups import different_paths, format_value, question_of
from webapp.comparing.sweeps import fields_of
from webapp.jobs.form.field_titles import title_at, variant_titles
from webapp.jobs.form.spec_documents import SpecError, set_value
from webapp.jobs.form.spec_problems import problems
from webapp.jobs.spec import JobSpec

_CHOICES = ("training.algorithm.kind", "training.scaling.kind", "training.loop.kind")
_LONGEST = 100


class ChangeRefused(ValueError):
    """The change cannot be made. The text says why."""


@dataclass(frozen=True)
class ChangeChoice:
    """Something that may change: a whole change (`training.algorithm.kind=a2c`), or a field that needs a value."""

    value: str
    title: str

    @property
    def needs_value(self) -> bool:
        return "=" not in self.value


class FieldChange(NamedTuple):
    """A change in words: the field's title, and its values before and after."""

    field_title: str
    old_value: str
    new_value: str


def choices(spec: JobSpec) -> list[tuple[str, list[ChangeChoice]]]:
    """Return what may change, under headings: other variants of each choice, then single fields."""
    document = spec.model_dump(mode="json")
    listed = []
    for path in _CHOICES:
        here: Any = document
        for name in path.split("."):
            here = here.get(name, {}) if isinstance(here, dict) else {}
        if not here:
            continue
        others = [
            ChangeChoice(f"{path}={tag}", title)
            for tag, title in variant_titles(path).items()
            if tag != here and _fits(spec, f"{path}={tag}")
        ]
        listed.append((title_at(path, [document]), others))
    fields = [
        ChangeChoice(field.path, f"{field.title}, now {format_value(field.value)}")
        for field in fields_of(spec).values()
        if field.path.startswith("training.")
    ]
    listed.append(("One value", fields))
    return [(title, rows) for title, rows in listed if rows]


def _fits(spec: JobSpec, change: str) -> bool:
    try:
        changed(spec, change)
    except ChangeRefused:
        return False
    return True


def changed(spec: JobSpec, change: str) -> JobSpec:
    """Return the spec with the change. ChangeRefused for a value that does not fit, or that changes nothing."""
    document = spec.model_dump(mode="json")
    try:
        set_value(document, change, JobSpec)
        changed_spec = JobSpec.model_validate(document)
    except SpecError as error:
        raise ChangeRefused(str(error)) from None
    except ValidationError as error:
        raise ChangeRefused(problems(error, JobSpec)[0].sentence) from None
    paths = _paths(spec, changed_spec)
    if not paths:
        raise ChangeRefused(
            f"{change} changes nothing: the job has this value, or its seed alone would differ."
        )
    if not all(path.startswith("training.") for path in paths):
        raise ChangeRefused(f"{change} changes where the job runs. Change something below `training`.")
    return changed_spec


def describe_change(spec: JobSpec, change: str) -> FieldChange:
    """Return the change as people read it. Raises ChangeRefused."""
    path = change.partition("=")[0].strip()
    before, after = spec.model_dump(mode="json"), changed(spec, change).model_dump(mode="json")
    titles = variant_titles(path)
    was, now = (question_of(test_side).get(path) for test_side in (before, after))
    old, new = (titles.get(str(value), format_value(value))[:_LONGEST] for value in (was, now))
    return FieldChange(title_at(path, [after, before])[:_LONGEST], old, new)


def _paths(one: JobSpec, other: JobSpec) -> list[str]:
    return different_paths([question_of(spec.model_dump(mode="json")) for spec in (one, other)])
