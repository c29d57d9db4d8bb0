"""The parts of the job form's page, and which fields are in each."""

from __future__ import annotations

from typing import Any

from webapp.jobs.form.form_tree import Group

SECTIONS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("what", "What is learned", ("name", "tags", "group", "training")),
    ("where", "Where it runs", ("platform",)),
    ("how-much", "How much", ("training.stop", "budget_usd", "at_line")),
)
"""Key, heading and the paths shown there; a longer path wins, and what no path names comes last."""


def sections(tree: Group) -> list[dict[str, Any]]:
    """The tree's parts in the order of the page: each with its key, its heading and a group to draw."""
    parts = {key: Group("", (), tree.model) for key, _, _ in SECTIONS}
    own_place = {path: key for key, _, paths in SECTIONS for path in paths}
    for item in tree.items:
        key = own_place.get(".".join(item.path), SECTIONS[-1][0])
        if isinstance(item, Group):
            moved = [child for child in item.items if ".".join(child.path) in own_place]
            for child in moved:
                parts[own_place[".".join(child.path)]].items.append(child)
            rest = Group("", item.path, item.model, items=[c for c in item.items if c not in moved])
            parts[key].items.append(rest)
        else:
            parts[key].items.append(item)
    return [{"key": key, "title": title, "group": parts[key]} for key, title, _ in SECTIONS]
