"""The code that runs in a cloud: our sources and, in a zip, the wheels they need for the cloud's platform.

Builds are repeatable: the same sources and versions give the same bytes, so a bundle's hash identifies it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import cloud

HANDLER = "cloud.actor.handler.handler"
LAMBDA_PYTHON = "3.13"
UNZIPPED_LIMIT_BYTES = 250 * 2**20
ZIPPED_LIMIT_BYTES = 50 * 2**20

_ROOT = Path(cloud.__file__).resolve().parent.parent
_OURS = (
    "cloud/__init__.py",
    "cloud/failures.py",
    "cloud/actor",
    "training",
)
_DOCKERFILE = f"""# One image for AWS Lambda and, with another command, for containers that pull their work.
FROM python:{LAMBDA_PYTHON}-slim
RUN useradd --system --uid 10001 --no-create-home actor
WORKDIR /opt/starling
COPY requirements.txt .
RUN pip install --no-cache-dir --no-deps simplejson snapshot-restore-py && \\
    pip install --no-cache-dir --no-deps -r requirements.txt
COPY src/ .
ENV PYTHONPATH=/opt/starling PYTHONUNBUFFERED=1 \\
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
USER actor
ENTRYPOINT ["python", "-m", "awslambdaric"]
CMD ["{HANDLER}"]
"""
# The builder itself is not shipped, nor what reads uploads (functions get shards) or exports trained policies.
_NOT_SHIPPED = (
    "cloud/actor/bundle.py",
    "training/data/readers/",
    "training/data/formats/",
    "training/rl/policies/",
)
_PLATFORMS = (
    "manylinux_2_28_x86_64",
    "manylinux_2_27_x86_64",
    "manylinux_2_17_x86_64",
    "manylinux2014_x86_64",
)
# Everything that actors import. Dependencies are not resolved, so nothing else is installed.
PACKAGES = (
    "numpy",
    "threadpoolctl",
    "gymnasium",
    "farama-notifications",
    "cloudpickle",
    "mujoco-core",
    # Gymnasium imports these two with MuJoCo, though nothing is drawn.
    "glfw",
    "imageio",
    "ale-py",
    "pydantic",
    "pydantic-core",
    "annotated-types",
    "typing-extensions",
    "typing-inspection",
    "msgpack",
    "zstandard",
    "packaging",
)
RUNTIME_PACKAGES = ("awslambdaric", "simplejson", "snapshot-restore-py")
"""AWS's runtime client and what it imports: a function has it from AWS, an image brings it."""
_USELESS_FOLDERS = {"tests", "test", "__pycache__", "include", "docs", "bin"}
_USELESS_ENDINGS = (".pyi", ".pyc", ".h", ".hpp", ".lib", ".a", ".exe", ".pxd", ".cmake")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


class BundleError(RuntimeError):
    """It could not be built, or no cloud would accept it. The text is one sentence."""


@dataclass(frozen=True)
class Bundle:
    """A zip for a function. `python` is the version whose wheels are in it."""

    data: bytes
    unzipped_bytes: int
    python: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def runtime(self) -> str:
        return f"python{self.python}"


def thin() -> Bundle:
    """Return our sources only, for an emulator, which gives its functions this machine's copies of the packages."""
    return _zipped(_sources(), f"{sys.version_info.major}.{sys.version_info.minor}")


def portable() -> Bundle:
    """Return our sources and their requirements, for machines with a Python that can install packages."""
    with tempfile.TemporaryDirectory(prefix="starling-bundle-") as folder:
        needs = Path(folder) / "requirements.txt"
        needs.write_text("\n".join([*pinned(), ""]))
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        return _zipped([*_sources(), ("requirements.txt", needs)], version)


def light(python: str = LAMBDA_PYTHON) -> Bundle:
    """Return everything that actors need, without torch. Fetches wheels from the package registry."""
    with tempfile.TemporaryDirectory(prefix="starling-bundle-") as folder:
        site = Path(folder) / "site"
        _install(site, python)
        _require_whole(site)
        bundle = _zipped([*_sources(), *_useful(site)], python)
    if bundle.unzipped_bytes > UNZIPPED_LIMIT_BYTES:
        held_mb = bundle.unzipped_bytes / 2**20
        raise BundleError(f"the bundle has {held_mb:.0f} MiB unpacked; a function may have 250 MiB")
    return bundle


def pinned() -> list[str]:
    """Return the versions that are installed here: actors compute with those of the learner's machine."""
    return [f"{name}=={importlib.metadata.version(name)}" for name in PACKAGES]


def write_context(folder: Path) -> Path:
    """Write a folder for `docker build`: one image for functions and containers. Return the folder."""
    if folder.exists() and any(folder.iterdir()):
        raise BundleError(f"{folder} is not empty")
    copy_sources(folder / "src")
    (folder / "requirements.txt").write_text("\n".join([*pinned(), "awslambdaric", ""]))
    (folder / "Dockerfile").write_text(_DOCKERFILE)
    (folder / ".dockerignore").write_text("**/__pycache__\n")
    return folder


def copy_sources(folder: Path) -> None:
    """Copy our own files into a folder, as an image has them."""
    for name, path in _sources():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)


def _sources() -> list[tuple[str, Path]]:
    """Return our own files with their names in a bundle."""
    files: list[tuple[str, Path]] = []
    for name in _OURS:
        place = _ROOT / name
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            inside = path.relative_to(_ROOT).as_posix()
            if not inside.startswith(_NOT_SHIPPED):
                files.append((inside, path))
    return files


def _install(site: Path, python: str) -> None:
    platforms = [word for platform in _PLATFORMS for word in ("--platform", platform)]
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"),
        *("--only-binary=:all:", "--implementation", "cp", "--python-version", python),
        *platforms,
        *("--target", str(site)),
        *pinned(),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise BundleError(f"the wheels could not be fetched: {done.stderr.strip().splitlines()[-1:]}")


def _require_whole(site: Path) -> None:
    for name in ("numpy", "gymnasium", "mujoco", "ale_py", "pydantic", "msgpack", "zstandard"):
        if not (site / name).exists():
            raise BundleError(f"the wheels hold no {name}")


def _useful(site: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of the wheels that a running actor can need: no tests, headers or types."""
    for path in sorted(site.rglob("*")):
        inside = path.relative_to(site)
        useless = _USELESS_FOLDERS & set(inside.parts[:-1]) or path.name.endswith(_USELESS_ENDINGS)
        if path.is_file() and not useless:
            yield inside.as_posix(), path


def _zipped(files: Iterable[tuple[str, Path]], python: str) -> Bundle:
    buffer, total = io.BytesIO(), 0
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, path in sorted(files):
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.external_attr = (0o755 if path.suffix == ".so" or ".so." in path.name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            data = path.read_bytes()
            total += len(data)
            archive.writestr(entry, data)
    return Bundle(buffer.getvalue(), total, python)
