"""The tree that a form's templates render: controls, groups of controls, choices between variants; and how it
differs from its starting point."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from webapp.jobs.form.spec_fields import FieldShape, as_typed, means_the_same

_PAPERS = ("minionsrl", "nitro", "stellaris", "siren")


@dataclass
class Leaf:
    """One control.

    `bound` is Django's bound field; the tree is built before the form. `is_chosen` is false in a variant that
    is not chosen. `question` identifies fields of different variants that share their value; "" if none may.
    `was` is the value it is compared with, None without one; `was_shown` the same as another variant's
    control shows it. `not_in` is the title of the compared variant, if that has no such field.
    `is_short` is true in the part of the form that is shown first.
    """

    name: str
    path: tuple[str, ...]
    info: FieldInfo
    shape: FieldShape
    advanced: bool
    unit: str
    is_chosen: bool = True
    question: str = ""
    bound: Any = None
    was: Any = None
    was_shown: str = ""
    not_in: str = ""
    is_short: bool = False

    template = "jobs/form/leaf.html"

    @property
    def typed(self) -> Any:
        """The control's value."""
        return as_typed(self.bound.value())

    @property
    def changed(self) -> bool:
        """Whether the value differs from the one it is compared with."""
        return self.was is not None and not means_the_same(self.shape, self.typed, self.was)

    @property
    def words(self) -> str:
        """The control's value for display."""
        return self._as_shown(self.typed)

    @property
    def was_words(self) -> str:
        return self.was_shown or self._as_shown(self.was)

    @property
    def can_reset(self) -> bool:
        """Whether the control can be reset."""
        choices = getattr(self.bound.field, "choices", None)
        return choices is None or self.was in dict(choices)

    def _as_shown(self, typed: Any) -> str:
        if isinstance(typed, bool):
            return "on" if typed else "off"
        choices = dict(getattr(self.bound.field, "choices", ()))
        return str(choices.get(typed, typed)) or "empty"


@dataclass
class FieldGroup:
    """The fields of one model under one heading."""

    title: str
    path: tuple[str, ...]
    model: type[BaseModel]
    description: str = ""
    items: list[Leaf | FieldGroup | UnionChoice] = field(default_factory=list)

    template = "jobs/form/group.html"

    def leaves(self) -> Iterator[Leaf]:
        """Yield all controls below, also those of variants that are not chosen."""
        for item in self.items:
            if isinstance(item, Leaf):
                yield item
            else:
                yield from item.leaves()

    def choices(self) -> Iterator[UnionChoice]:
        """Yield all choices below; a nested choice follows its parent."""
        for item in self.items:
            if isinstance(item, UnionChoice):
                yield item
                for variant in item.variants:
                    yield from variant.choices()
            elif isinstance(item, FieldGroup):
                yield from item.choices()

    @property
    def has_basic(self) -> bool:
        return any(not leaf.advanced for leaf in self.leaves())

    @property
    def has_advanced(self) -> bool:
        return any(leaf.advanced for leaf in self.leaves())

    @property
    def has_problems(self) -> bool:
        return any(leaf.bound.errors for leaf in self.leaves())

    @property
    def advanced_has_problems(self) -> bool:
        return any(leaf.advanced and leaf.bound.errors for leaf in self.leaves())

    # A single field needs no heading: its label says what it is.

    @property
    def basic_heading(self) -> bool:
        return bool(self.title) and sum(not leaf.advanced for leaf in self.leaves()) > 1

    @property
    def advanced_heading(self) -> bool:
        return bool(self.title) and sum(leaf.advanced for leaf in self.leaves()) > 1


@dataclass
class UnionVariant(FieldGroup):
    """One member of the union whose tag the control `of` chooses."""

    of: str = ""
    tag: str = ""
    selected: bool = False

    template = "jobs/form/variant.html"

    @property
    def paper(self) -> str:
        """Where the page of papers says what this member was worth; empty where it is of none."""
        name = self.title.split("-")[0].lower()
        return name if name in _PAPERS else ""

    def by_question(self) -> dict[str, Leaf]:
        """Return the controls that share their values with other variants."""
        return {leaf.question: leaf for leaf in self.leaves() if leaf.question}


@dataclass
class UnionChoice:
    """A union: a select, and a group for each member.

    A part of a choice (see `part_of`) names the `whole`; it may be drawn without the select.
    """

    selector: Leaf
    path: tuple[str, ...]
    variants: list[UnionVariant] = field(default_factory=list)
    shows_selector: bool = True
    whole: UnionChoice | None = None

    template = "jobs/form/choice.html"

    def leaves(self) -> Iterator[Leaf]:
        if self.shows_selector:
            yield self.selector
        for variant in self.variants:
            yield from variant.leaves()

    def variant(self, tag: Any) -> UnionVariant | None:
        return next((variant for variant in self.variants if variant.tag == tag), None)

    @property
    def chosen(self) -> UnionVariant | None:
        """The chosen variant; None for an unknown value."""
        return next((variant for variant in self.variants if variant.selected), None)

    @property
    def initial_name(self) -> str:
        return f"{self.selector.name}.drawn"

    @property
    def initial_state(self) -> str:
        """The chosen variant and its values as JSON. A page without JavaScript sends it back, so that typed
        values can be distinguished from initial ones."""
        chosen = (self.whole or self).chosen
        values = chosen.by_question() if chosen else {}
        tag = chosen.tag if chosen else ""
        return json.dumps({"tag": tag, "values": {key: leaf.typed for key, leaf in values.items()}})

    @property
    def has_basic(self) -> bool:
        return self.shows_selector or any(variant.has_basic for variant in self.variants)

    @property
    def has_advanced(self) -> bool:
        return any(variant.has_advanced for variant in self.variants)


AnyGroup = TypeVar("AnyGroup", bound=FieldGroup)


def part_of(group: AnyGroup, keeps: Callable[[Leaf], bool]) -> AnyGroup:
    """Return the group with only the controls that `keeps` accepts, and without groups that hold none."""
    items: list[Leaf | FieldGroup | UnionChoice] = []
    for item in group.items:
        if isinstance(item, Leaf):
            items += [item] if keeps(item) else []
        elif isinstance(item, UnionChoice):
            variants = [part_of(variant, keeps) for variant in item.variants]
            part = replace(item, variants=variants, shows_selector=keeps(item.selector), whole=item)
            items += [part] if any(part.leaves()) else []
        else:
            inner = part_of(item, keeps)
            items += [inner] if inner.items else []
    return replace(group, items=items)


# Differences from the starting point: marks on the fields, and the list in the review

_NOT_LISTED = ("name", "tags", "group")


@dataclass(frozen=True)
class ListChange:
    """A row of the list. `beside` has sentences about fields that only one of two variants has."""

    words: str
    beside: tuple[str, ...] = ()


def mark_changes(tree: FieldGroup, start: FieldGroup) -> None:
    """Give each control its value in `start`, another form of the same model."""
    for leaf, before in zip(tree.leaves(), start.leaves(), strict=True):
        leaf.was = before.typed
    for choice, began in zip(tree.choices(), start.choices(), strict=True):
        base = began.chosen
        known = {leaf.path: leaf for leaf in base.leaves()} if base else {}
        for variant in choice.variants:
            if base is not None and variant.tag != base.tag:
                for leaf in variant.leaves():
                    _mark_other(leaf, known.get(leaf.path), base.title)


def _mark_other(leaf: Leaf, base: Leaf | None, title: str) -> None:
    """Mark a control of a variant that the start does not use. `base` is the start's control at the same path."""
    if base is None:
        leaf.was, leaf.not_in = None, title
    elif leaf.question != base.question or not leaf.question:
        leaf.was, leaf.was_shown = base.typed, base.words


def changes_in(tree: FieldGroup) -> Iterator[ListChange]:
    """Yield every changed value, without name and labels."""
    for item in tree.items:
        if isinstance(item, FieldGroup):
            yield from changes_in(item)
        elif isinstance(item, UnionChoice):
            if item.selector.changed:
                # Another kind of training has hardly a field in common, so there is nothing to list field by field.
                of_its_own = any(list(variant.choices()) for variant in item.variants)
                yield ListChange(_row(item.selector), () if of_its_own else tuple(_only_in_one(item)))
                if of_its_own:
                    continue
            if item.chosen is not None:
                yield from changes_in(item.chosen)
        elif item.changed and item.name not in _NOT_LISTED:
            yield ListChange(_row(item))


def _row(leaf: Leaf) -> str:
    return f"{leaf.bound.label}: {leaf.was_words} → {leaf.words}"


def _only_in_one(choice: UnionChoice) -> Iterator[str]:
    old, new = choice.variant(choice.selector.was), choice.chosen
    if old is None or new is None:
        return
    paths = {leaf.path for leaf in new.leaves()}
    added = [f"{leaf.bound.label} {leaf.words}" for leaf in _as_on_the_page(new) if leaf.not_in]
    gone = [f"{leaf.bound.label} {leaf.was_words}" for leaf in _as_on_the_page(old) if leaf.path not in paths]
    for title, found in ((new.title, added), (old.title, gone)):
        if found:
            yield f"Only in {title}: {', '.join(found)}."


def _as_on_the_page(variant: FieldGroup) -> list[Leaf]:
    return sorted(variant.leaves(), key=lambda leaf: (not leaf.is_short, leaf.advanced))
