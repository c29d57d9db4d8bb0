from __future__ import annotations

from pathlib import Path

import pytest

from tests.research.tiny_experiment import made_in


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of the tiny experiment, to be read only."""
    return made_in(tmp_path_factory.mktemp("data"))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("research.runs.run_file.RESULTS", tmp_path / "results")
    return tmp_path
