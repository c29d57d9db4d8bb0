"""Static files: which of node_modules' files are ours to serve, and under which names.

Only what pages load is listed: node_modules holds some 2,100 files (an SVG an icon), and every one of them would be
hashed and compressed at start. So would the scripts of Django's admin, which our read-only pages do without.
"""

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, overload

from django.conf import settings
from django.contrib.staticfiles.finders import AppDirectoriesFinder, BaseFinder, get_finders
from django.core.files.storage import FileSystemStorage
from django.core.management import call_command
from whitenoise.storage import CompressedManifestStaticFilesStorage

# served name -> file under node_modules
VENDOR_FILES = {
    "vendor/bootstrap/css/bootstrap.min.css": "bootstrap/dist/css/bootstrap.min.css",
    "vendor/bootstrap/css/bootstrap.min.css.map": "bootstrap/dist/css/bootstrap.min.css.map",
    "vendor/uplot/uPlot.esm.js": "uplot/dist/uPlot.esm.js",
    "vendor/uplot/uPlot.min.css": "uplot/dist/uPlot.min.css",
    "vendor/inter/inter-latin-wght-normal.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "vendor/inter/inter-latin-ext-wght-normal.woff2": (
        "@fontsource-variable/inter/files/inter-latin-ext-wght-normal.woff2"
    ),
}

UNUSED_FILES = ("admin/js/*", "admin/css/vendor/*")


class AppFinder(AppDirectoriesFinder):
    """Finds the static files of installed apps, without UNUSED_FILES."""

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, FileSystemStorage]]:
        yield from super().list([*ignore_patterns, *UNUSED_FILES])


class VendorFinder(BaseFinder):
    """Finds VENDOR_FILES in node_modules; a file that is not there is simply not found."""

    def __init__(self, app_names: Any = None, *args: Any, **kwargs: Any) -> None:
        self.node_modules = Path(settings.BASE_DIR) / "node_modules"

    def check(self, **kwargs: Any) -> list[Any]:
        return []

    @overload
    def find(self, path: str, find_all: Literal[False] = False) -> str | None: ...
    @overload
    def find(self, path: str, find_all: Literal[True]) -> list[str]: ...
    def find(self, path: str, find_all: bool = False) -> Any:
        source = self.node_modules / VENDOR_FILES[path] if path in VENDOR_FILES else None
        if source is None or not source.is_file():
            return []  # not None: Django would list that as a match
        return [str(source)] if find_all else str(source)

    def list(self, ignore_patterns: Any) -> Iterator[tuple[str, FileSystemStorage]]:
        """(path within storage, storage) pairs; the storage's prefix makes the served name."""
        for served, file in VENDOR_FILES.items():
            source = self.node_modules / file
            if source.is_file():
                storage = FileSystemStorage(location=source.parent)
                storage.prefix = served.rpartition("/")[0]  # type: ignore[attr-defined]
                yield source.name, storage


class ManifestStorage(CompressedManifestStaticFilesStorage):  # type: ignore[misc]  # WhiteNoise has no types
    """WhiteNoise's hashed and compressed files, with `import` lines of JavaScript modules rewritten as well."""

    support_js_module_import_aggregation = True


def collect_if_changed() -> int:
    """Collect static files unless the collected ones are current; returns how many were collected."""
    fingerprint = _fingerprint()
    collected, note = Path(settings.STATIC_ROOT), Path(settings.STATIC_ROOT) / "collected.sha256"
    if note.exists() and note.read_text() == fingerprint:
        return 0
    if collected.exists():
        shutil.rmtree(collected)
    call_command("collectstatic", interactive=False, verbosity=0, skip_checks=True)
    note.write_text(fingerprint)
    return sum(1 for _ in _sources())


def _sources() -> Iterator[Path]:
    for finder in get_finders():
        for path, storage in finder.list([]):
            yield Path(storage.path(path))


def _fingerprint() -> str:
    """Changes when a source file, or the way they are collected, changes; cheap, as it reads no contents."""
    digest = hashlib.sha256()
    for source in sorted({*_sources(), Path(__file__)}):
        facts = source.stat()
        digest.update(f"{source}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()
