"""Switching a variant, such as PPO to A2C: every field that both have keeps its value.

Two variants share a field if it has the same name and type in both, and neither model marks it as `own`.
Forms, values set by path and prefilled URLs all use these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from webapp.jobs.form.form_tree import Leaf, UnionChoice
from webapp.jobs.form.spec_fields import FieldShape, discriminator_of, is_own, means_the_same, shape_of


def shared_fields(one: type[BaseModel], other: type[BaseModel]) -> list[str]:
    """Return the names of the fields that two models share."""
    theirs = other.model_fields
    return [
        name
        for name, info in one.model_fields.items()
        if name in theirs
        and shape_of(info) == shape_of(theirs[name])
        and not (shape_of(info).constant or is_own(info) or is_own(theirs[name]))
    ]


def shared_values(values: Mapping[str, Any], old: type[BaseModel], new: type[BaseModel]) -> dict[str, Any]:
    """Return the values of one variant that another one shares."""
    return {name: values[name] for name in shared_fields(old, new) if name in values}


def switch_variant(model: type[BaseModel], path: str, values: Mapping[str, Any], tag: Any) -> dict[str, Any]:
    """Return a union's values at a path, converted to its member `tag`, with `tag` included.

    Empty if the path is no union or the tag names no member.
    """
    variants = _variants_at(model, path)
    if not variants:
        return {}
    discriminator = discriminator_of(next(iter(variants.values())))
    old, new = variants.get(str(values.get(discriminator))), variants.get(str(tag))
    return {discriminator: tag} | (shared_values(values, old, new) if old and new else {})


def _variants_at(model: type[BaseModel], path: str) -> Mapping[str, type[BaseModel]]:
    """Return the members of the union at that path, through plain models and through members of other unions."""
    *above, name = path.split(".")
    here = [model]
    for table in above:
        here = [member for shape in _shapes_of(here, table) for member in _models_of(shape)]
    variants: dict[str, type[BaseModel]] = {}
    for shape in _shapes_of(here, name):
        variants = {**shape.variants, **variants}
    return variants


def _shapes_of(models: Iterable[type[BaseModel]], name: str) -> list[FieldShape]:
    return [shape_of(model.model_fields[name]) for model in models if name in model.model_fields]


def _models_of(shape: FieldShape) -> list[type[BaseModel]]:
    return [shape.model] if shape.model is not None else list(shape.variants.values())


# In a form


class _InitialState(BaseModel):
    """A choice as the page drew it, from a page without JavaScript."""

    tag: str
    values: dict[str, bool | str]


def sync_shared_values(choices: Iterable[UnionChoice], sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the submitted data with shared values copied to the newly chosen variant, except where the user
    typed another one.

    A browser with JavaScript does the same and sends no drawn state.
    """
    inherited: dict[str, Any] = {}
    for choice in choices:
        initial = _initial_state(sent.get(choice.initial_name))
        if initial is not None:
            for variant in choice.variants:
                inherited |= _inherited_values(choice, initial.tag, variant.tag, partial(_is_typed, initial))
    return {**{name: sent[name] for name in sent}, **inherited} if inherited else sent


def _initial_state(sent: Any) -> _InitialState | None:
    try:
        return _InitialState.model_validate_json(sent) if sent else None
    except ValidationError:
        return None


def _is_typed(initial: _InitialState, leaf: Leaf) -> bool:
    was = initial.values.get(leaf.question)
    return was is None or not means_the_same(leaf.shape, leaf.typed, was)


def with_switches(
    choices: Iterable[UnionChoice], current: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return `values` over `current`, the values of all controls; a variant chosen there takes over shared values."""
    inherited: dict[str, Any] = {}
    for choice in choices:
        before, after = (form_values.get(choice.selector.name) for form_values in (current, values))
        if after is not None:
            inherited |= _inherited_values(choice, before, after, lambda leaf: leaf.name in values)
    return {**current, **inherited, **values}


def _inherited_values(
    choice: UnionChoice, before: Any, after: Any, stays: Callable[[Leaf], bool]
) -> dict[str, Any]:
    """Return, by name, the values that controls of the variant `after` take over from the variant `before`."""
    old, new = choice.variant(before), choice.variant(after)
    if old is None or new is None or old is new:
        return {}
    source = old.by_question()
    return {
        leaf.name: source[question].typed
        for question, leaf in new.by_question().items()
        if question in source and not stays(leaf)
    }
