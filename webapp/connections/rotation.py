"""Rotation of the master key. Stored secrets stay readable throughout, also if the rotation is interrupted."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from webapp.connections import key_ring, queries
from webapp.connections.models import SealedRow
from webapp.connections.sealing import CannotUnseal, rewrap

_ROWS_AT_ONCE = 200


@dataclass(frozen=True)
class Rotation:
    """The result of a rotation: rows now under `key_id`, rows that could not be opened, and removed keys."""

    key_id: str
    rewrapped: int
    unopened: tuple[str, ...]
    retired: tuple[str, ...]


def rotate(*, retire: bool = False) -> Rotation:
    """Wrap every row's data key with the first master key. If Starling keeps the keys, a new one is made first.

    With `retire`, keys that no row needs are removed from the file. A row that cannot be opened stays unchanged and is
    reported, and its key stays.
    """
    if not key_ring.from_environment():
        key_ring.ring()  # makes the file if there is none, and refuses one that is not private
        with key_ring.locked(alone=True):
            key_ring.add_first(key_ring.new_key())
    rewrapped, unopened = _rewrap_all()
    retired: list[str] = []
    if retire and not key_ring.from_environment():
        with key_ring.locked(alone=True):
            retired = key_ring.remove_others(set(queries.secrets_by_key()))
    return Rotation(key_ring.ring().first.id, rewrapped, tuple(unopened), tuple(retired))


def _rewrap_all() -> tuple[int, list[str]]:
    rewrapped = 0
    unopened: list[str] = []
    for table in SealedRow.__subclasses__():
        done, left = _rewrap_table(table)
        rewrapped, unopened = rewrapped + done, unopened + left
    return rewrapped, unopened


def _rewrap_table(table: type[SealedRow]) -> tuple[int, list[str]]:
    ring, rewrapped, after = key_ring.ring(), 0, 0
    unopened: list[str] = []
    while True:
        with transaction.atomic():
            rows = list(
                table._default_manager.select_for_update(of=("self",))
                .filter(pk__gt=after)
                .exclude(key_id=ring.first.id)
                .order_by("pk")[:_ROWS_AT_ONCE]
            )
            for row in rows:
                try:
                    fresh = rewrap(row.sealed(), row.place(), ring.by_id, ring.first)
                except CannotUnseal as error:
                    unopened.append(f"{row}: {error}")
                    continue
                row.key_id, row.wrapped_key = fresh.key_id, fresh.wrapped_key
                row.save(update_fields=["key_id", "wrapped_key"])
                rewrapped += 1
        if not rows:
            return rewrapped, unopened
        after = rows[-1].pk
