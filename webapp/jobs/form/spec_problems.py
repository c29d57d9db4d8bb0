"""The problems of a spec as sentences: each names the field and what is allowed. The form and the command
line use them.

A field is named by its title and its path, such as `training.algorithm.clip`. The path leaves out the
tags of unions.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from training.tasks.score import USUAL
from webapp.jobs.form.spec_fields import shape_of

_MOST_PROBLEMS = 100


class SpecProblem(NamedTuple):
    """One problem. `path` is empty for the document as a whole."""

    path: str
    sentence: str


class _Place(NamedTuple):
    path: str
    field: FieldInfo | None
    model: type[BaseModel] | None
    """The model whose fields are allowed here; None if the place is a value."""


def problems(error: ValidationError, model: type[BaseModel]) -> list[SpecProblem]:
    """Return one sentence for each of the first validation errors against `model`, in the order of the document."""
    listed = []
    for detail in error.errors(include_url=False)[:_MOST_PROBLEMS]:
        place = _locate(model, detail["loc"])
        listed.append(SpecProblem(place.path, _sentence(dict(detail), place)))
    return listed


def _locate(model: type[BaseModel], location: Sequence[int | str]) -> _Place:
    """Follow an error's location through the models. Tags of unions choose a member and are not part of the path."""
    names: list[str] = []
    here: type[BaseModel] | None = model
    field: FieldInfo | None = None
    tags: dict[str, type[BaseModel]] = {}
    for part in location:
        if str(part) in tags:
            here, tags = tags[str(part)], {}
            continue
        names.append(str(part))
        tags = {}
        field = here.model_fields.get(str(part)) if here is not None else field
        if here is not None and field is not None:
            shape = shape_of(field)
            here, tags = shape.model, shape.variants
    return _Place(".".join(names), field, here)


def _sentence(detail: dict[str, Any], place: _Place) -> str:
    name = _name(place)
    given = _given(detail.get("input"))
    match detail["type"]:
        case "extra_forbidden":
            allowed = ", ".join(place.model.model_fields) if place.model is not None else "none"
            return f"{place.path} is not a field; allowed here are: {allowed}."
        case "missing":
            return f"{name} is missing; it must be {_allowed(place.field)}."
        case "value_error":
            return _ended(f"{name or 'The document'}: {detail['ctx']['error']}")
        case "union_tag_invalid":
            tags = str(detail["ctx"]["expected_tags"]).replace("'", "")
            return f"{place.path}.kind must be one of {tags}; {_given(detail['ctx']['tag'])} was given."
        case "union_tag_not_found" if isinstance(detail["input"], dict):
            tags = ", ".join(shape_of(place.field).variants if place.field else ())
            return f"{place.path}.kind is missing; it must be one of {tags}."
        case "model_type" | "model_attributes_type" | "dict_type" | "union_tag_not_found":
            return f"{name or 'The document'} must be a table of fields; {given} was given."
    return f"{name} must be {_allowed(place.field)}; {given} was given."


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def _name(place: _Place) -> str:
    title = USUAL.say(place.field.title or "") if place.field is not None else ""
    return f"{title} ({place.path})" if title else place.path


def _given(value: Any) -> str:
    if isinstance(value, dict | list | tuple):
        return "a list" if isinstance(value, list | tuple) else "a table"
    if value is None:
        return "nothing"
    shown = repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _allowed(field: FieldInfo | None) -> str:
    """Return what a field accepts, as text, from its type and its limits."""
    if field is None:
        return "a valid value"
    members = [member for member in get_args(field.annotation) if member is not type(None)]
    optional = get_origin(field.annotation) in (Union, types.UnionType) and type(None) in get_args(
        field.annotation
    )
    annotation, metadata = members[0] if optional else field.annotation, [*field.metadata]
    if get_origin(annotation) is Annotated:
        # An optional field has its limits in its type, not in the field.
        annotation, *notes = get_args(annotation)
        metadata += [limit for note in notes for limit in getattr(note, "metadata", [note])]
    allowed = f"{_type_words(annotation)} {_limit_words(metadata)}".strip()
    return f"{allowed}, or nothing" if optional else allowed


def _type_words(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin is Literal:
        choices = ", ".join(str(choice) for choice in get_args(annotation))
        return f"one of {choices}" if len(get_args(annotation)) > 1 else choices
    if origin in (tuple, list):
        return f"a list, each item {_type_words(get_args(annotation)[0])},"
    names = {
        "int": "a whole number",
        "float": "a number",
        "Decimal": "a number",
        "bool": "true or false",
        "str": "a text",
    }
    return names.get(getattr(annotation, "__name__", ""), "a valid value")


_BOUNDS = (("ge", "at least"), ("gt", "greater than"), ("le", "at most"), ("lt", "less than"))


def _limit_words(metadata: Sequence[Any]) -> str:
    limits = _limits(metadata)
    if "ge" in limits and "le" in limits:
        words = [f"between {_number(limits['ge'])} and {_number(limits['le'])}"]
    else:
        words = [" and ".join(f"{word} {_number(limits[key])}" for key, word in _BOUNDS if key in limits)]
    if "min_length" in limits or "max_length" in limits:
        words.append(f"of length {limits.get('min_length', 0)} to {limits.get('max_length', 'any')}")
    if "decimal_places" in limits:
        words.append(f"with at most {limits['decimal_places']} decimal places")
    return ", ".join(filter(None, words))


def _limits(metadata: Sequence[Any]) -> dict[str, Any]:
    keys = (*(key for key, _ in _BOUNDS), "min_length", "max_length", "decimal_places")
    return {
        key: getattr(limit, key)
        for limit in metadata
        for key in keys
        if getattr(limit, key, None) is not None
    }


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


CONNECTION = "platform.connection"


def at_connection(words: str) -> SpecProblem:
    """Return a problem that is shown at the job's connection."""
    return SpecProblem(CONNECTION, f"Connection ({CONNECTION}): {words}")
