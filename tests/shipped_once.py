"""Data sets that come with Starling are made once, not again in the data folder of each test that reads one.

Making one starts a process and takes seconds. The copies are kept for the next run while the code that makes them is
the same. `tests/webapp/datasets/test_jobs_with_data.py` has one made by the product itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from rig.servers import ROOT
from tests.database import KEPT
from training.data import library
from training.data.manifest import Manifest
from training.data.store import WritableDataStore
from webapp.datasets import files


def shipped_once(key: str) -> Manifest:
    """`files.shipped_manifest`, which finds the data set made if any test's process has made it before."""
    if files.shipped_note(key).is_file():
        return files.shipped_manifest(key)
    with _one_process_at_a_time():
        kept = _folder() / key
        if kept.is_dir():
            shutil.copytree(kept, files.folder(), dirs_exist_ok=True)
            return files.shipped_manifest(key)
        made = files.shipped_manifest(key)
        _keep(made, key, kept)
    return made


@contextmanager
def data_from(store: WritableDataStore) -> Iterator[None]:
    """While the block runs, this process reads data sets from `store`, and makes those that come with Starling."""
    library.use(store)
    try:
        yield
    finally:
        library.use(files.DataFolderStore(), shipped_once)


def _keep(made: Manifest, key: str, kept: Path) -> None:
    """Copy what was made as it lies in a data folder: its files among the shards, and the note that names it."""
    unfinished = kept.with_name(f"{key}.{os.getpid()}")
    for file in (files.shipped_note(key), *(files.shards() / name for name in files.names_of(made))):
        copy = unfinished / file.relative_to(files.folder())
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
    unfinished.rename(kept)


def _folder() -> Path:
    made_by = sorted((ROOT / "training" / "data").rglob("*.py"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in made_by))
    digest.update(version("scikit-learn").encode())
    return KEPT / f"shipped-{digest.hexdigest()[:16]}"


@contextmanager
def _one_process_at_a_time() -> Iterator[None]:
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / "shipped.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = _folder()
        for older in KEPT.glob("shipped-*"):
            if older != folder:
                shutil.rmtree(older)
        folder.mkdir(exist_ok=True)
        yield
