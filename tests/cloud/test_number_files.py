"""Profiles and stacks of an installation's own, beside those that come with Starling."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cloud.timing.calibration.toml_writer import write_toml
from cloud.timing.numbers import profile as profiles
from cloud.timing.numbers import stack as stacks
from cloud.timing.numbers.files import NumberFiles
from cloud.timing.numbers.profile import Profile
from cloud.timing.numbers.quantity import ProfileError


@pytest.fixture
def files(tmp_path: Path) -> NumberFiles[Profile]:
    found = NumberFiles(profiles.PROFILES, "profile", "actors", profiles.read)
    found.add_folder(tmp_path / "not there")
    found.add_folder(tmp_path)
    return found


def _write(path: Path, title: str) -> None:
    write_toml(path, profiles.load("lambda").model_copy(update={"title": title}), "made for a test")


def test_what_lies_in_the_folder_is_offered_and_loaded(files: NumberFiles[Profile], tmp_path: Path) -> None:
    before = files.names()
    _write(tmp_path / "mine.toml", "Mine, measured")
    write_toml(tmp_path / "a-stack.toml", stacks.load("starling-stack"), "another kind")
    (tmp_path / "broken.toml").write_text("[actors]\nkind = ")
    (tmp_path / "half.toml").write_text('title = "Half"\n[actors]\nkind = "functions"\n')
    assert files.names() == sorted([*before, "mine"])
    assert files.load("mine").title == "Mine, measured"


def test_a_file_with_a_fault_is_named_with_its_line(files: NumberFiles[Profile], tmp_path: Path) -> None:
    (tmp_path / "half.toml").write_text('title = "Half"\n[actors]\nkind = "functions"\n')
    with pytest.raises(ProfileError, match=r"half\.toml:\d+:"):
        files.load("half")


def test_a_file_that_was_written_again_is_read_again(files: NumberFiles[Profile], tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    _write(path, "First")
    first = files.load("mine")
    assert files.load("mine") is first
    _write(path, "Second")
    os.utime(path, ns=(1, 1))
    assert files.load("mine").title == "Second"


def test_no_file_replaces_one_that_comes_with_starling(files: NumberFiles[Profile], tmp_path: Path) -> None:
    _write(tmp_path / "lambda.toml", "Not the one")
    assert files.load("lambda").title == "AWS Lambda"
    assert files.names().count("lambda") == 1


@pytest.mark.parametrize("name", ["", "../lambda", "no-such", ".hidden", "a/b"])
def test_other_names_are_refused(files: NumberFiles[Profile], name: str) -> None:
    with pytest.raises(ProfileError, match="no profile named"):
        files.load(name)
