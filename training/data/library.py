"""The data sets that this process can read, by the names that specs give them.

A process chooses its store once, when it starts. Without a choice, data sets that come with Starling are made in
memory.
"""

from __future__ import annotations

from training.data.dataset import write_dataset
from training.data.manifest import Manifest
from training.data.shipped import SHIPPED
from training.data.store import DataStore, MemoryStore, MissingData, WritableDataStore

_store: WritableDataStore = MemoryStore()
_manifests: dict[str, Manifest] = {}


def use(store: WritableDataStore) -> None:
    """Read data sets from this store from now on."""
    global _store
    _store = store
    _manifests.clear()


def store() -> DataStore:
    return _store


def manifest_of(name: str) -> Manifest:
    """Return the manifest of a data set: by its hash, or by the key of one that comes with Starling, which is made at
    its first use.

    Raises MissingData, one sentence, if there is no such data set here.
    """
    found = _manifests.get(name)
    if found is None:
        found = _manifests[name] = _shipped(name) if name in SHIPPED else _stored(name)
    return found


def _shipped(key: str) -> Manifest:
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
