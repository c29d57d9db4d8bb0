"""What is shipped: our sources in a thin zip, everything for AWS in a light one, and a context for an image."""

from __future__ import annotations

import ast
import importlib.metadata
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloud.actor import bundle
from cloud.actor.bundle import BundleError
from tests.cloud import calls

# Runs one call out of a bundle, with nothing of this checkout on the path.
_RUN_ONE_CALL = """
import json, sys
sys.path.insert(0, sys.argv[1])
from cloud.actor.handler import handler
class Context:
    aws_request_id = "r1"
    def get_remaining_time_in_millis(self): return 60_000
answer = handler(json.load(open(sys.argv[2])), Context())
loaded = sorted(name for name in sys.modules if name.startswith(("cloud.", "torch", "boto", "webapp")))
modules = [sys.modules[name] for name in ("cloud", "training", "numpy")]
where = sorted(module.__file__ for module in modules)
json.dump({"answer": answer, "loaded": loaded, "where": where}, open(sys.argv[3], "w"))
"""


def _unpacked(data: bytes, folder: Path) -> Path:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        archive.extractall(folder)
    return folder


def test_the_same_sources_give_the_same_bytes() -> None:
    first, second = bundle.thin(), bundle.thin()
    assert first.data == second.data
    assert first.sha256 == second.sha256
    assert first.unzipped_bytes < 2**20


def test_nothing_of_the_servers_side_is_shipped() -> None:
    names = zipfile.ZipFile(io.BytesIO(bundle.thin().data)).namelist()
    cloud = {name for name in names if name.startswith("cloud/") and not name.startswith("cloud/actor/")}
    assert cloud == {"cloud/__init__.py", "cloud/failures.py"}
    assert "cloud/actor/handler.py" in names
    assert "cloud/actor/bundle.py" not in names
    assert "training/functions/rollout.py" in names
    assert not [
        name
        for name in names
        if name.startswith(("training/data/readers/", "training/data/formats/", "training/rl/policies/"))
    ]
    assert all(name.startswith(("cloud/", "training/")) for name in names)


def test_whatever_shipped_modules_import_is_shipped() -> None:
    """But for what only a learner's machine does, and pybase64, which actors do without."""
    of_the_learner = {"torch", "onnx", "PIL", "pymupdf_fonts"}
    with zipfile.ZipFile(io.BytesIO(bundle.thin().data)) as archive:
        imported = {name for file in archive.namelist() for name in _imported(archive.read(file))}
    files = [file for name in bundle.PACKAGES for file in importlib.metadata.distribution(name).files or ()]
    brought = {file.parts[0].removesuffix(".py") for file in files}
    elsewhere = imported - brought - set(sys.stdlib_module_names) - {"cloud", "training"}
    assert elsewhere == {*of_the_learner, "pybase64"}


def _imported(source: bytes) -> Iterator[str]:
    """Yield the top names of the modules that a file imports anywhere in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def _run_one_call(site: Path, folder: Path, *python: str) -> dict[str, object]:
    import base64
    import time

    from cloud.actor import wire
    from cloud.actor.answers import answer_to
    from cloud.actor.blobs import BlobShelf

    call = calls.rollout("c", BlobShelf().publish(0, calls.weights()))
    request = wire.ActorRequest(
        run="r", call=call, not_after_unix_s=time.time() + 60, weights=calls.weights()
    )
    event, result = folder / "event.json", folder / "result.json"
    event.write_bytes(wire.to_json("c", wire.pack_request(request)))
    done = subprocess.run(
        [*python, "-c", _RUN_ONE_CALL, str(site), str(event), str(result)],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"starling call {call.id} request r1\n"
    reported: dict[str, object] = json.loads(result.read_text())
    reply = reported["answer"]
    assert isinstance(reply, dict)
    answer, outcome = answer_to(call, "r", base64.b64decode(reply["body"]))
    assert outcome is not None, answer.reason
    return reported


def test_a_call_runs_out_of_the_bundle_alone(tmp_path: Path) -> None:
    site = _unpacked(bundle.thin().data, tmp_path / "site")
    reported = _run_one_call(site, tmp_path, sys.executable)
    loaded = reported["loaded"]
    assert isinstance(loaded, list)
    others = {name for name in loaded if not name.startswith("cloud.actor")}
    assert others == {"cloud.failures"}
    assert any(str(site) in str(place) for place in reported["where"])  # type: ignore[union-attr]


@pytest.mark.slow
def test_the_light_bundle_fits_a_function_and_runs_without_this_environment(tmp_path: Path) -> None:
    """Asks the package registry. Built for this interpreter's version, so that it can be run here too."""
    for_aws = bundle.light()
    assert for_aws.unzipped_bytes < bundle.UNZIPPED_LIMIT_BYTES
    assert len(for_aws.data) < bundle.ZIPPED_LIMIT_BYTES
    names = zipfile.ZipFile(io.BytesIO(for_aws.data)).namelist()
    assert not [name for name in names if name.startswith(("torch/", "boto3/", "scipy/", "cv2/"))]
    here = bundle.light(f"{sys.version_info.major}.{sys.version_info.minor}")
    site = _unpacked(here.data, tmp_path / "site")
    # -S: no packages of this environment are seen.
    reported = _run_one_call(site, tmp_path, sys.executable, "-I", "-S")
    where = reported["where"]
    assert isinstance(where, list)
    assert all(str(site) in place for place in where)
    made = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _MAKE_ALL, str(site)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert made.returncode == 0, made.stderr


_MAKE_ALL = """
import sys
sys.path.insert(0, sys.argv[1])
from training.rl.environments.making import make
from training.rl.environments.model import EnvironmentSpec
for name in ("Hopper-v5", "Humanoid-v5", "ALE/Qbert-v5", "CartPole-v1"):
    environment = make(EnvironmentSpec(id=name))
    environment.reset(seed=1)
    environment.step(environment.action_space.sample())
"""


def test_a_context_for_an_image(tmp_path: Path) -> None:
    folder = bundle.write_context(tmp_path / "image")
    assert (folder / "src/cloud/actor/handler.py").exists()
    wanted = (folder / "requirements.txt").read_text().splitlines()
    assert any(line.startswith("mujoco-core==") for line in wanted)
    assert not any(line.startswith("torch==") for line in wanted)
    dockerfile = (folder / "Dockerfile").read_text()
    assert "USER actor" in dockerfile
    assert bundle.HANDLER in dockerfile
    with pytest.raises(BundleError, match="not empty"):
        bundle.write_context(folder)
