"""Browser tests say what is missing, not that a connection was closed."""

import os
import signal
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from rig.chromium import NoChromium, chromium_path
from tests.kept_browser import KeptBrowser


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

    with pytest.raises(NoChromium, match=r"none\b"):
        chromium_path()


@pytest.mark.browser
def test_a_browser_that_does_not_answer_is_killed_and_the_next_test_has_another() -> None:
    with sync_playwright() as playwright:
        kept = KeptBrowser(playwright, chromium_path())
        first = kept.get()
        assert kept.get() is first
        context = first.new_context()
        context.new_page().set_content("<p>here</p>")
        for pid in kept.pids():
            os.kill(pid, signal.SIGSTOP)
        kept.close(context, within_s=1.0)
        second = kept.get()
        assert not first.is_connected()
        other = second.new_context()
        other.new_page().set_content("<p>here too</p>")
        kept.close(other)
        assert kept.get() is second
