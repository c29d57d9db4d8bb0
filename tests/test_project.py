"""What strangers look for first: that it installs, its version, and that CONTRIBUTING and SECURITY tell the truth."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from email.parser import HeaderParser
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _run(program: str, *paths: Path, cwd: Path = ROOT) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", program],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def _requirements(name: str) -> set[str]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return {str(Requirement(line)) for line in lines if line}


@pytest.fixture(scope="module")
def metadata(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an editable install writes down, made by the build backend itself."""
    folder = tmp_path_factory.mktemp("metadata")
    program = (
        f"from setuptools import build_meta; build_meta.prepare_metadata_for_build_editable({str(folder)!r})"
    )
    _run(program)
    (made,) = folder.glob("*.dist-info")
    return made


def test_the_package_needs_what_the_requirements_list(metadata: Path) -> None:
    said = HeaderParser().parsestr((metadata / "METADATA").read_text())
    assert (said["Name"], said["Version"]) == ("starling", PROJECT["version"])
    files = {"": "requirements.txt"}
    files |= {extra: f"requirements-{extra}.txt" for extra in said.get_all("Provides-Extra", [])}
    assert set(files) == {"", "dev", "ray", "bench"}
    for extra, file in files.items():
        ending = f'; extra == "{extra}"' if extra else ""
        needs = {
            str(Requirement(one.removesuffix(ending)))
            for one in said.get_all("Requires-Dist", [])
            if (one.endswith(ending) if extra else "; extra ==" not in one)
        }
        assert needs == _requirements(file)


def test_the_benchmarks_gymnasium_is_ours() -> None:
    """uv installs it against RLlib's wish."""
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["override-dependencies"]
    ours = {Requirement(one).name: Requirement(one).specifier for one in _requirements("requirements.txt")}
    assert {str(Requirement(one)) for one in overrides} <= _requirements("requirements-bench.txt")
    assert all(Requirement(one).specifier == ours[Requirement(one).name] for one in overrides)


def test_the_package_holds_the_rooms_and_nothing_else(metadata: Path) -> None:
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert set((metadata / "top_level.txt").read_text().split()) == rooms
    assert {"training", "cloud", "webapp"} <= rooms


def test_the_command_of_the_package_runs(metadata: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = [
        one for one in (metadata / "entry_points.txt").read_text().splitlines() if one.startswith("starling")
    ]
    name, _, target = line.partition(" = ")
    command = EntryPoint(name, target, "console_scripts").load()
    with pytest.raises(SystemExit) as ended:
        command(["--help"])
    assert ended.value.code == 0
    assert "usage: starling" in capsys.readouterr().out


def test_all_pages_name_one_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    latest, day = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == latest == citation["version"]
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
print(spec.scaling.decide([], Bounds(actors_max=16), seed=0).why)
"""
    said = _run(program, tmp_path, ROOT, cwd=tmp_path)
    assert said.strip() == "halved every 3 rounds; 64 limited to 16 by the bounds"
