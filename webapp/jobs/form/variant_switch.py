"""Switching a variant, such as PPO for A2C: every field that both have keeps its value.

Two variants have a field in common if it has one name and holds the same kind of value in both, and neither model says
that it is its `own`. A form, a value set by path and a form begun by another page all ask here what is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel, ValidationError

from webapp.jobs.form.form_tree import Choice, Leaf
from webapp.jobs.form.spec_fields import discriminator_of, is_own, means_the_same, shape_of


def in_common(one: type[BaseModel], other: type[BaseModel]) -> list[str]:
    """The names of the fields that ask the same in both models."""
    theirs = other.model_fields
    return [
        name
        for name, info in one.model_fields.items()
        if name in theirs
        and shape_of(info) == shape_of(theirs[name])
        and not (shape_of(info).constant or is_own(info) or is_own(theirs[name]))
    ]


def kept(values: Mapping[str, Any], old: type[BaseModel], new: type[BaseModel]) -> dict[str, Any]:
    """Of the values of one variant, those that another one has as well."""
    return {name: values[name] for name in in_common(old, new) if name in values}


def switched(model: type[BaseModel], path: str, values: Mapping[str, Any], tag: Any) -> dict[str, Any]:
    """The values of a union's member at a path of the model, as another member of it keeps them, `tag` included.

    What is no union, or names no member, keeps nothing.
    """
    variants = _variants_at(model, path)
    if not variants:
        return {}
    discriminator = discriminator_of(next(iter(variants.values())))
    old, new = variants.get(str(values.get(discriminator))), variants.get(str(tag))
    return {discriminator: tag} | (kept(values, old, new) if old and new else {})


def _variants_at(model: type[BaseModel], path: str) -> Mapping[str, type[BaseModel]]:
    """The members of the union at that path, which leads through plain models."""
    *above, name = path.split(".")
    here: type[BaseModel] | None = model
    for table in above:
        info = here.model_fields.get(table) if here else None
        here = shape_of(info).model if info else None
    info = here.model_fields.get(name) if here else None
    return shape_of(info).variants if info else {}


# In a form


class _Drawn(BaseModel):
    """What a page without JavaScript says of a choice as it was drawn."""

    tag: str
    values: dict[str, bool | str]


def followed(choices: Iterable[Choice], sent: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was sent, with other variants' controls following the one that was chosen when the page was drawn.

    A browser with JavaScript does that by itself and sends nothing drawn. A control that was typed into stays.
    """
    found: dict[str, Any] = {}
    for choice in choices:
        drawn = _drawn(sent.get(choice.drawn_name))
        if drawn is not None:
            for variant in choice.variants:
                found |= _taken_over(choice, drawn.tag, variant.tag, partial(_is_typed, drawn))
    return {**{name: sent[name] for name in sent}, **found} if found else sent


def _drawn(sent: Any) -> _Drawn | None:
    try:
        return _Drawn.model_validate_json(sent) if sent else None
    except ValidationError:
        return None


def _is_typed(drawn: _Drawn, leaf: Leaf) -> bool:
    was = drawn.values.get(leaf.question)
    return was is None or not means_the_same(leaf.shape, leaf.typed, was)


def with_switches(
    choices: Iterable[Choice], stood: Mapping[str, Any], values: Mapping[str, Any]
) -> dict[str, Any]:
    """`stood`, the values of all controls, with `values` over them; a variant chosen there takes over what it may."""
    found: dict[str, Any] = {}
    for choice in choices:
        before, after = (one.get(choice.selector.name) for one in (stood, values))
        if after is not None:
            found |= _taken_over(choice, before, after, lambda leaf: leaf.name in values)
    return {**stood, **found, **values}


def _taken_over(choice: Choice, before: Any, after: Any, stays: Callable[[Leaf], bool]) -> dict[str, Any]:
    """By name, what controls of the variant `after` take over from the variant `before`."""
    old, new = choice.variant(before), choice.variant(after)
    if old is None or new is None or old is new:
        return {}
    source = old.by_question()
    return {
        leaf.name: source[question].typed
        for question, leaf in new.by_question().items()
        if question in source and not stays(leaf)
    }
