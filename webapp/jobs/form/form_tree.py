"""The tree that a form's templates walk: controls, groups of them, and choices between variants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from webapp.jobs.form.spec_fields import Shape, as_typed, means_the_same


@dataclass
class Leaf:
    """One control. `bound` is Django's bound field; the tree is made before the form is.

    `asked`: whether it is asked for, as those of variants that are not chosen are not.
    `question`: inside a variant, what other variants' controls have alike that ask the same; "" if none may.
    `was`: what it is compared with; None where there is nothing. `was_shown`: the same as another variant's control
    shows it, "" for this one's. `not_in`: the title of the variant that the form is compared with, which has none.
    """

    name: str
    path: tuple[str, ...]
    info: FieldInfo
    shape: Shape
    advanced: bool
    unit: str
    asked: bool = True
    question: str = ""
    bound: Any = None
    was: Any = None
    was_shown: str = ""
    not_in: str = ""

    template = "jobs/form/leaf.html"

    @property
    def typed(self) -> Any:
        """What stands in the control."""
        return as_typed(self.bound.value())

    @property
    def changed(self) -> bool:
        """Whether it means something else than what it is compared with."""
        return self.was is not None and not means_the_same(self.shape, self.typed, self.was)

    @property
    def words(self) -> str:
        """What stands in the control, as people read it."""
        return self._as_shown(self.typed)

    @property
    def was_words(self) -> str:
        return self.was_shown or self._as_shown(self.was)

    @property
    def has_way_back(self) -> bool:
        """Whether the control could hold what it was."""
        choices = getattr(self.bound.field, "choices", None)
        return choices is None or self.was in dict(choices)

    def _as_shown(self, typed: Any) -> str:
        if isinstance(typed, bool):
            return "on" if typed else "off"
        choices = dict(getattr(self.bound.field, "choices", ()))
        return str(choices.get(typed, typed)) or "empty"


@dataclass
class Group:
    """The fields of one model under one heading."""

    title: str
    path: tuple[str, ...]
    model: type[BaseModel]
    description: str = ""
    items: list[Leaf | Group | Choice] = field(default_factory=list)

    template = "jobs/form/group.html"

    def leaves(self) -> Iterator[Leaf]:
        """All controls below, those of variants not chosen included."""
        for item in self.items:
            if isinstance(item, Leaf):
                yield item
            else:
                yield from item.leaves()

    def choices(self) -> Iterator[Choice]:
        """All choices below, those inside variants after the one that they are in."""
        for item in self.items:
            if isinstance(item, Choice):
                yield item
                for variant in item.variants:
                    yield from variant.choices()
            elif isinstance(item, Group):
                yield from item.choices()

    @property
    def has_basic(self) -> bool:
        return any(not leaf.advanced for leaf in self.leaves())

    @property
    def has_advanced(self) -> bool:
        return any(leaf.advanced for leaf in self.leaves())

    @property
    def advanced_has_problems(self) -> bool:
        return any(leaf.advanced and leaf.bound.errors for leaf in self.leaves())

    # A single field says by its own label what it is about.

    @property
    def basic_heading(self) -> bool:
        return bool(self.title) and sum(not leaf.advanced for leaf in self.leaves()) > 1

    @property
    def advanced_heading(self) -> bool:
        return bool(self.title) and sum(leaf.advanced for leaf in self.leaves()) > 1


@dataclass
class Variant(Group):
    """One member of a union."""

    tag: str = ""
    selected: bool = False

    template = "jobs/form/variant.html"

    def by_question(self) -> dict[str, Leaf]:
        """The controls whose values other variants may take over."""
        return {leaf.question: leaf for leaf in self.leaves() if leaf.question}


@dataclass
class Choice:
    """A union: a select, and a group for each member."""

    selector: Leaf
    path: tuple[str, ...]
    variants: list[Variant] = field(default_factory=list)

    template = "jobs/form/choice.html"

    def leaves(self) -> Iterator[Leaf]:
        yield self.selector
        for variant in self.variants:
            yield from variant.leaves()

    def variant(self, tag: Any) -> Variant | None:
        return next((one for one in self.variants if one.tag == tag), None)

    @property
    def chosen(self) -> Variant | None:
        """None where something is asked for that there is not."""
        return next((one for one in self.variants if one.selected), None)

    @property
    def drawn_name(self) -> str:
        return f"{self.selector.name}.drawn"

    @property
    def drawn(self) -> str:
        """The chosen variant and its values as JSON. A page without JavaScript sends it back, so that what was typed
        can be told from what only stood there."""
        values = self.chosen.by_question() if self.chosen else {}
        tag = self.chosen.tag if self.chosen else ""
        return json.dumps({"tag": tag, "values": {key: leaf.typed for key, leaf in values.items()}})

    @property
    def has_basic(self) -> bool:
        return True

    @property
    def has_advanced(self) -> bool:
        return any(variant.has_advanced for variant in self.variants)
