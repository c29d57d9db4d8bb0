"""One field of a pydantic model as one form control: its label, its input and how the input is read.

Controls check nothing. A control gives the plain value (a number stays text until pydantic reads it), and the
model reports problems, so limits and sentences exist once.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from django import forms
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from webapp.formatting import ungroup


@dataclass(frozen=True)
class FieldShape:
    """A field's type without Annotated and Optional."""

    annotation: Any
    optional: bool = False

    @property
    def choices(self) -> tuple[Any, ...]:
        return get_args(self.annotation) if get_origin(self.annotation) is Literal else ()

    @property
    def constant(self) -> bool:
        """Whether it is a Literal with one value, which the form fills in."""
        return len(self.choices) == 1

    @property
    def model(self) -> type[BaseModel] | None:
        return self.annotation if _is_model(self.annotation) else None

    @property
    def variants(self) -> dict[str, type[BaseModel]]:
        """Return the members of a discriminated union by tag; empty for other types."""
        members = get_args(self.annotation) if _is_union(self.annotation) else ()
        members = tuple(_without_annotated(member) for member in members)
        if not members or not all(_is_model(member) for member in members):
            return {}
        return {tag_of(member): member for member in members}

    @property
    def listed(self) -> bool:
        return get_origin(self.annotation) in (tuple, list)


def shape_of(info: FieldInfo) -> FieldShape:
    annotation = _without_annotated(info.annotation)
    if not _is_union(annotation):
        return FieldShape(annotation)
    members = tuple(member for member in get_args(annotation) if member is not type(None))
    optional = len(members) < len(get_args(annotation))
    rest = _without_annotated(members[0]) if len(members) == 1 else Union[members]  # noqa: UP007 - built at run time
    return FieldShape(rest, optional)


def tag_of(model: type[BaseModel]) -> str:
    """Return the tag of a union's member."""
    return str(shape_of(model.model_fields[discriminator_of(model)]).choices[0])


def discriminator_of(model: type[BaseModel]) -> str:
    """Return the name of the field that tells a union's members apart: `kind`, or the first constant one."""
    names = ["kind"] if "kind" in model.model_fields else list(model.model_fields)
    return next(name for name in names if shape_of(model.model_fields[name]).constant)


def extra(info: FieldInfo, key: str) -> Any:
    """Return `unit`, `advanced`, `follows` or `own` from the field's `json_schema_extra`."""
    return info.json_schema_extra.get(key) if isinstance(info.json_schema_extra, dict) else None


def is_own(info: FieldInfo) -> bool:
    """Return whether a variant's field differs in meaning from fields of that name in other variants."""
    return bool(extra(info, "own") or extra(info, "follows"))


def title_of(name: str, info: FieldInfo | None = None) -> str:
    if info is not None and info.title:
        return info.title
    return name.replace("_", " ").capitalize()


def describe_model(model: type[BaseModel]) -> tuple[str, str]:
    """Return a model's title and description from a docstring such as "Ramp: from one number to another."."""
    text = " ".join((model.__doc__ or "").split("\n\n")[0].split()) if "__doc__" in model.__dict__ else ""
    title, colon, sentence = text.partition(": ")
    if not colon or len(title) > 40:
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"(Options|Spec)$", "", model.__name__))
        return words.capitalize(), text
    return title, sentence[:1].upper() + sentence[1:]


# Controls


class PlainText(forms.CharField):
    """A number, a list of numbers or a text, kept as typed, so that a page with errors shows it again."""

    def __init__(self, shape: FieldShape, **options: Any) -> None:
        self.shape = shape
        numeric = shape.annotation in (int, float, Decimal)
        attrs = {"inputmode": "decimal" if numeric else "text", "autocomplete": "off", "spellcheck": "false"}
        super().__init__(required=False, widget=forms.TextInput(attrs=attrs), **options)

    def prepare_value(self, value: Any) -> Any:
        return as_typed(value)


def control(shape: FieldShape, options: Mapping[str, Any]) -> forms.Field:
    """Return the form field for one leaf of a model."""
    if shape.annotation is bool:
        return forms.BooleanField(required=False, **options)
    if shape.choices or (isinstance(shape.annotation, type) and issubclass(shape.annotation, Enum)):
        values = shape.choices or tuple(member.value for member in shape.annotation)
        blank = [("", "None")] if shape.optional else []
        choices = [*blank, *((str(value), str(value).replace("_", " ")) for value in values)]
        # Unknown values must reach the model, which says what is allowed.
        return AnyChoice(choices=choices, required=False, **options)
    return PlainText(shape, **options)


class AnyChoice(forms.ChoiceField):
    """A select that passes any value on to the model."""

    def valid_value(self, value: Any) -> bool:
        return True


@dataclass(frozen=True)
class Named:
    """A value with a label and a description."""

    value: str
    title: str
    words: str


class NamedChoice(AnyChoice):
    """A select of named values that describes the chosen one. The name "" means no choice."""

    def __init__(self, named: Sequence[Named], **options: Any) -> None:
        self.named = named
        super().__init__(choices=[(one.value, one.title) for one in named], required=False, **options)

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else value


def as_typed(value: Any) -> Any:
    """Return a model's value as a user would type it."""
    if value is None:
        return ""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(str(item) for item in value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value.value) if isinstance(value, Enum) else str(value)


def means_the_same(shape: FieldShape, one: Any, other: Any) -> bool:
    """Return whether two typed values are equal, such as 0.50 and 0.5. Texts are compared as they are."""
    return _comparable(clean_value(shape, one)) == _comparable(clean_value(shape, other))


def _comparable(value: Any) -> float | str:
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def clean_value(shape: FieldShape, typed: Any) -> Any:
    """Return the value for the model: without spaces and thousands separators, lists split, blank as None."""
    if isinstance(typed, bool):
        return typed
    text = str(typed or "").strip()
    if shape.listed:
        (item, *_) = get_args(shape.annotation)
        parts = [part for part in text.strip("()[]").replace(";", ",").split(",") if part.strip()]
        return [clean_value(FieldShape(item), part) for part in parts]
    if shape.optional and not text:
        return None
    if shape.choices:
        return next((choice for choice in shape.choices if str(choice) == text), text)
    if shape.annotation in (int, float, Decimal):
        return _number(shape.annotation, text)
    return text


def _number(kind: type, text: str) -> Any:
    bare = ungroup(text)  # 100,000 is a number; 0,5 is passed on, and the model refuses it
    if kind is not int:
        return bare
    try:
        value = float(bare)
    except ValueError:
        return text
    return int(value) if "e" in bare.lower() and value.is_integer() else bare


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _is_union(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _without_annotated(annotation: Any) -> Any:
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation
