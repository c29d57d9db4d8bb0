"""What strangers look for first: that it installs, its version, and that CONTRIBUTING and SECURITY tell the truth."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from PIL import Image

import client as starling
from tests import nightly

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "client" / "pyproject.toml").read_text())["project"]


def _run(program: str, *paths: Path, cwd: Path = ROOT) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _requirements(name: str) -> set[str]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return {str(Requirement(line)) for line in lines if line}


def _copied_client(to: Path) -> Path:
    """A build leaves folders beside its sources."""
    return shutil.copytree(ROOT / "client", to / "client", ignore=shutil.ignore_patterns("__pycache__"))


def test_the_client_needs_nothing_but_python(tmp_path: Path) -> None:
    """By what an editable install writes down, made by the build backend itself."""
    program = f"from setuptools import build_meta; build_meta.prepare_metadata_for_build_editable({str(tmp_path)!r})"
    _run(program, cwd=_copied_client(tmp_path))
    (made,) = tmp_path.glob("*.dist-info")
    said = HeaderParser().parsestr((made / "METADATA").read_text())
    assert (said["Name"], said["Version"]) == ("starling", PROJECT["version"])
    assert said.get_all("Requires-Dist", []) == said.get_all("Provides-Extra", []) == []


def test_the_benchmarks_gymnasium_is_ours() -> None:
    """uv installs it against RLlib's wish."""
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["override-dependencies"]
    ours = {Requirement(one).name: Requirement(one).specifier for one in _requirements("requirements.txt")}
    assert {str(Requirement(one)) for one in overrides} <= _requirements("requirements-bench.txt")
    assert all(Requirement(one).specifier == ours[Requirement(one).name] for one in overrides)


def test_the_tests_have_the_flights_that_people_install() -> None:
    assert _requirements("requirements-flights.txt") <= _requirements("requirements-dev.txt")


_IMPORTED = """
import sys
import starling
assert starling.launch and starling.Run and starling.Starling
foreign = {"django", "torch", "numpy", "pandas", "IPython", "webapp", "cloud", "training"}
assert not foreign & set(sys.modules), foreign & set(sys.modules)
print(starling.__file__)
"""


@pytest.mark.slow
def test_the_wheel_brings_the_client_and_its_command_into_an_empty_environment(tmp_path: Path) -> None:
    folder = _copied_client(tmp_path)
    _run("from setuptools import build_meta; build_meta.build_wheel('dist')", cwd=folder)
    (wheel,) = (folder / "dist").glob("starling-*.whl")
    with zipfile.ZipFile(wheel) as files:
        assert {name.partition("/")[0].partition("-")[0] for name in files.namelist()} == {"starling"}
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    python = environment / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-index", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, timeout=300)
    bare = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}

    def said(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=300)

    imported = said(str(python), "-c", _IMPORTED)
    assert (imported.returncode, imported.stderr) == (0, "")
    assert imported.stdout.startswith(str(environment))
    version = said(str(environment / "bin" / "starling"), "--version")
    assert version.stdout.strip() == f"starling {PROJECT['version']}"
    command = said(str(environment / "bin" / "starling"), "jobs", "list")
    assert command.returncode == 1
    assert "token is set" in command.stderr


def test_all_pages_name_one_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    latest, day = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == latest == citation["version"] == starling.__version__
    assert str(citation["date-released"]) == day


def test_every_hook_is_a_program_of_the_project() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    programs = {hook["entry"].split()[0] for hook in hooks}
    assert programs == {".venv/bin/ruff", ".venv/bin/mypy", ".venv/bin/lint-imports"}
    here = Path(sys.executable).parent
    assert all((here / Path(program).name).is_file() for program in programs)


def test_the_workflow_calls_what_a_person_would() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/check.yml").read_text())
    steps = [step.get("run") for job in workflow["jobs"].values() for step in job["steps"]]
    assert ".ci/run" in steps
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_the_picture_that_the_readme_opens_with_moves_and_is_small() -> None:
    picture = re.findall(r"^!\[.+\]\((\S+)\)$", (ROOT / "README.md").read_text(), re.MULTILINE)[0]
    with Image.open(ROOT / picture) as moving:
        assert getattr(moving, "n_frames", 1) > 20
    assert (ROOT / picture).stat().st_size < 1_000_000


def test_every_promise_names_a_test_that_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text()))
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text(), re.MULTILINE)
    }
    assert len(named) > 20
    assert not named - there


def _blocks(heading: str) -> list[str]:
    """The Python code below a heading of CONTRIBUTING."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = re.split(r"^## ", text.partition(f"## {heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)


def test_a_scaling_policy_is_added_as_contributing_says(tmp_path: Path) -> None:
    """In a copy of the room: one file, its name in the union, and its test."""
    shutil.copytree(ROOT / "training", tmp_path / "training", ignore=shutil.ignore_patterns("__pycache__"))
    policy, test = _blocks("Add a scaling policy")
    (tmp_path / "training/scaling/halving.py").write_text(policy)
    union = tmp_path / "training/scaling/__init__.py"
    added = union.read_text().replace(
        "AnyScaling = Annotated[\n    Fixed", "AnyScaling = Annotated[\n    Halving | Fixed"
    )
    added = added.replace("AnyScaling =", "from training.scaling.halving import Halving\n\nAnyScaling =")
    assert "Halving | Fixed" in added
    union.write_text(added)
    program = f"""{test}
from tests.training.specs import tiny
from training.spec import TrainingSpec
import training

assert training.__file__.startswith({str(tmp_path)!r})
test_halving_by_hand()
document = tiny().model_dump(mode="json")
spec = TrainingSpec.model_validate({{**document, "scaling": {{"kind": "halving", "every_rounds": 3}}}})
print(spec.scaling.decide([], Bounds(actors_max=16), seed=0, score=RETURN).why)
"""
    said = _run(program, tmp_path, ROOT, cwd=tmp_path)
    assert said.startswith("halved every 3 rounds; 64 ")
    assert "limited to 16" in said


def test_the_nightly_report_goes_on_after_a_tier_that_failed(tmp_path: Path) -> None:
    assert nightly.main(["no-such-tier", "help"], tmp_path) == 1
    report = (tmp_path / "report.md").read_text()
    assert re.findall(r"^## make ([\w-]+): (\w+)", report, re.MULTILINE) == [
        ("no-such-tier", "failed"),
        ("help", "passed"),
    ]
    assert all(f"\n{tier}:" in (ROOT / "Makefile").read_text() for tier in nightly.TIERS)


def test_the_nightly_report_names_the_tests_that_failed(tmp_path: Path) -> None:
    report, log = tmp_path / "slow.xml", tmp_path / "slow.log"
    report.write_text(
        '<testsuite><testcase classname="tests.a" name="holds"/>'
        '<testcase classname="tests.a" name="breaks"><failure/></testcase></testsuite>'
    )
    log.write_text("1 failed, 1 passed\n")
    heading, _, counted, *failed = nightly.tier_lines("test-slow", 1, 120.0, report, log)
    assert heading.startswith("## make test-slow: failed")
    assert heading.endswith(" 2 min")
    assert counted.startswith("2 tests, 1 failed.")
    assert failed == ["- tests.a::breaks"]
