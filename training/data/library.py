"""The data sets that this process can read, by the names that specs give them.

A process chooses its store once, when it starts. Without a choice, data sets that come with Starling are made in
memory.
"""

from __future__ import annotations

from collections.abc import Callable

from training.data.dataset import write_dataset
from training.data.manifest import DataShape, Manifest
from training.data.shipped import SHIPPED
from training.data.store import DataStore, MemoryStore, MissingData, WritableDataStore

_store: WritableDataStore = MemoryStore()
_make_shipped: Callable[[str], Manifest] | None = None
_manifests: dict[str, Manifest] = {}


def use(store: WritableDataStore, make_shipped: Callable[[str], Manifest] | None = None) -> None:
    """Read data sets from this store from now on. `make_shipped` returns the manifest of one that comes with Starling
    and puts its shards there; without it this process makes them.
    """
    global _store, _make_shipped
    _store, _make_shipped = store, make_shipped
    forget()


def forget() -> None:
    """Drop the manifests that this process keeps: the store reads another folder now."""
    _manifests.clear()


def store() -> DataStore:
    return _store


def manifest_of(name: str) -> Manifest:
    """Return the manifest of a data set: by its hash, or by the key of one that comes with Starling, which is made at
    its first use.

    Raises MissingData, one sentence, if there is no such data set here.
    """
    manifest = _manifests.get(name)
    if manifest is None:
        manifest = _manifests[name] = _shipped(name) if name in SHIPPED else _stored(name)
    return manifest


def shape_of(name: str) -> DataShape:
    """Return what a model must know of a data set; one that comes with Starling is not made for it.

    Raises MissingData, one sentence, if there is no such data set here.
    """
    return SHIPPED[name].shape if name in SHIPPED else manifest_of(name).shape


def name_of(name: str) -> str:
    """Return what people call a data set; one that comes with Starling is not made for it. Raises MissingData."""
    return SHIPPED[name].name if name in SHIPPED else manifest_of(name).name


def _shipped(key: str) -> Manifest:
    if _make_shipped is not None:
        return _make_shipped(key)
    return write_dataset(SHIPPED[key].make(), _store)


def _stored(name: str) -> Manifest:
    try:
        return Manifest.decode(_store.get(name))
    except MissingData:
        raise MissingData(
            f"The data set {name[:12]} is not here: it was deleted, or it is another project's."
        ) from None
    except ValueError as error:
        raise MissingData(f"The data set {name[:12]} cannot be read: {error}") from None
