"""Which processes stem from another one, by what the system says of each."""

from __future__ import annotations

from pathlib import Path


def below(pid: int) -> list[int]:
    """Children of `pid`, theirs, and so on; without those that only wait to be reaped."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(stat.parent.name)] = int(parent)
    found: list[int] = []
    ahead = [pid]
    while ahead:
        parent = ahead.pop()
        children = [child for child, of in parents.items() if of == parent]
        found += children
        ahead += children
    return found
