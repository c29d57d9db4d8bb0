"""What differs between a form and its starting point: marks on the fields, and the list in the review."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from webapp.jobs.form.form_tree import Choice, Group, Leaf

_NOT_LISTED = ("name", "tags", "group")


@dataclass(frozen=True)
class Change:
    """A row of the list. `beside` has sentences about fields that only one of two variants has."""

    words: str
    beside: tuple[str, ...] = ()


def mark_changes(tree: Group, start: Group) -> None:
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
    """Mark a control of a variant that the start does not use. `base` is the start's control at the same
    path."""
    if base is None:
        leaf.was, leaf.not_in = None, title
    elif leaf.question != base.question or not leaf.question:
        leaf.was, leaf.was_shown = base.typed, base.words


def changes_in(tree: Group) -> Iterator[Change]:
    """Yield every changed value, without name and labels."""
    for item in tree.items:
        if isinstance(item, Group):
            yield from changes_in(item)
        elif isinstance(item, Choice):
            if item.selector.changed:
                yield Change(_row(item.selector), tuple(_only_in_one(item)))
            if item.chosen is not None:
                yield from changes_in(item.chosen)
        elif item.changed and item.name not in _NOT_LISTED:
            yield Change(_row(item))


def _row(leaf: Leaf) -> str:
    return f"{leaf.bound.label}: {leaf.was_words} → {leaf.words}"


def _only_in_one(choice: Choice) -> Iterator[str]:
    old, new = choice.variant(choice.selector.was), choice.chosen
    if old is None or new is None:
        return
    paths = {leaf.path for leaf in new.leaves()}
    added = [f"{leaf.bound.label} {leaf.words}" for leaf in _as_on_the_page(new) if leaf.not_in]
    gone = [f"{leaf.bound.label} {leaf.was_words}" for leaf in _as_on_the_page(old) if leaf.path not in paths]
    for title, found in ((new.title, added), (old.title, gone)):
        if found:
            yield f"Only in {title}: {', '.join(found)}."


def _as_on_the_page(variant: Group) -> list[Leaf]:
    return sorted(variant.leaves(), key=lambda leaf: leaf.advanced)
