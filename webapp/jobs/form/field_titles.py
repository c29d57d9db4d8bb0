"""The titles that the form gives to the fields of stored specs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from training.tasks.kinds import declaration_of, kind_of
from webapp.jobs.form.spec_fields import FieldShape, describe_model, shape_of, title_of
from webapp.jobs.spec import JobSpec


def title_at(path: str, documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the form's title of a dotted path; the path itself if no model has it.

    `documents` are specs that have it.
    """
    for document in documents:
        title = _title(path.split("."), document)
        if title:
            return declaration_of(kind_of(document["training"])).say(title)
    return path


def variant_titles(path: str) -> dict[str, str]:
    """Return the titles of a choice by its tag, for a path that ends in `kind`; empty for other paths."""
    *above, last = path.split(".")
    shape = _shape_at(above) if last == "kind" and above else None
    return {tag: describe_model(model)[0] for tag, model in shape.variants.items()} if shape else {}


def _title(names: Sequence[str], document: Mapping[str, Any]) -> str:
    model: type[BaseModel] | None = JobSpec
    here: Any = document
    title = ""
    for name in names:
        if model is None or not isinstance(here, Mapping) or name not in here:
            return ""
        info: FieldInfo | None = model.model_fields.get(name)
        if info is None:
            return ""
        if shape_of(info).constant:
            return title  # the tag of a choice: the choice is what people choose
        title, here = title_of(name, info), here[name]
        model = _model_of(shape_of(info), here)
    return title


def _model_of(shape: FieldShape, value: Any) -> type[BaseModel] | None:
    if shape.variants and isinstance(value, Mapping):
        return shape.variants.get(str(value.get("kind")))
    return shape.model


def _shape_at(names: Sequence[str]) -> FieldShape | None:
    """Return the shape of a field that no choice is above of, but for the kind of training."""
    model: type[BaseModel] | None = JobSpec
    shape: FieldShape | None = None
    for name in names:
        models = [model] if model is not None else list(shape.variants.values()) if shape else []
        infos = [candidate.model_fields[name] for candidate in models if name in candidate.model_fields]
        if not infos:
            return None
        shape = shape_of(infos[0])
        model = shape.model
    return shape
