"""Browser tests say what is missing, not that a connection was closed."""

from pathlib import Path

import pytest

from tests.chromium import NoChromium, chromium_path


def test_a_machine_where_playwright_cannot_start_is_told_the_missing_library(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    node = tmp_path / "node"
    node.write_text("#!/bin/sh\necho 'libatomic.so.1: cannot open shared object file' >&2; exit 127\n")
    node.chmod(0o755)
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", str(node))

    with pytest.raises(NoChromium, match=r"libatomic\.so\.1.*apt-get install libatomic1"):
        chromium_path()


def test_a_named_browser_that_is_no_program_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STARLING_CHROMIUM", str(tmp_path / "none"))

    with pytest.raises(NoChromium, match="which is no program"):
        chromium_path()
