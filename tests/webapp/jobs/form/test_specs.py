"""Specs from presets and files, and what is said of wrong ones: the field, and what is allowed."""

import errno
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from pydantic import ValidationError

from tests.factories import make_spec
from training.engine.checkpoints import FileCheckpointStore
from webapp.jobs.form.presets import preset_names, presets
from webapp.jobs.form.spec_documents import SpecError, read_spec
from webapp.jobs.form.spec_problems import problems
from webapp.jobs.spec import JobSpec, Limits

_LIMITS = Limits(local=16, simulated=1024)


def test_every_preset_is_a_valid_spec_within_the_limits() -> None:
    assert list(presets()) == preset_names()
    assert preset_names()[:3] == ["cartpole", "hopper", "hopper-simulated"]
    for preset in presets().values():
        assert preset.spec.check_limits(_LIMITS) == []
        assert JobSpec.model_validate_json(preset.spec.model_dump_json()) == preset.spec
    assert presets()["hopper-simulated"].spec.simulated


def test_values_are_set_by_path() -> None:
    changes = ["training.seed=7", "training.stop.target_return=none", "name=Mine", "budget_usd=0.25"]
    spec = read_spec("cartpole", changes, _LIMITS)
    assert (spec.training.seed, spec.training.stop.target_return, spec.name) == (7, None, "Mine")
    assert str(spec.budget_usd) == "0.25"


CHOSEN = [
    (
        ["training.algorithm.kind=impact"],
        "algorithm",
        {"kind": "impact", "learning_rate": 0.001, "epochs": 20, "replay_uses": 2},
    ),
    (["training.loop.kind=asynchronous"], "loop", {"kind": "asynchronous"}),
    (["training.network.hidden=[32, 16]"], "network", {"kind": "mlp", "hidden": (32, 16)}),
    (
        ["training.scaling.over_rounds=7", "training.scaling.kind=ramp"],
        "scaling",
        {"kind": "ramp", "over_rounds": 7},
    ),
    (["training.algorithm.clip=0.3"], "algorithm", {"kind": "ppo", "clip": 0.3, "epochs": 20}),
    (["training.algorithm.kind=ppo"], "algorithm", {"kind": "ppo", "epochs": 20}),
]


@pytest.mark.parametrize(("changes", "part", "expected"), CHOSEN, ids=[str(row[0]) for row in CHOSEN])
def test_members_of_unions_and_lists_are_set_by_path(
    changes: list[str], part: str, expected: dict[str, Any]
) -> None:
    """Another member keeps what both have, whatever the order; the same one keeps all that the preset says."""
    found = getattr(read_spec("cartpole", changes, _LIMITS).training, part)
    assert {name: getattr(found, name) for name in expected} == expected


def test_changes_may_mend_a_file(tmp_path: Path) -> None:
    file = tmp_path / "spec.toml"
    file.write_text("budget_usd = -1")
    assert str(read_spec(str(file), ["budget_usd=2"], _LIMITS).budget_usd) == "2"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("spec.toml", "name = [", "is not TOML"),
        ("spec.toml", b"\xff\xfe", "is not TOML"),
        ("spec.json", "{", "is not JSON"),
        ("spec.json", b"\x00\x01\xfe\xff", "is not JSON"),
        ("spec.json", "[" * 100_000, "is not JSON"),
        ("spec.json", "[1]", "one table"),
        ("spec.yaml", "a: b: c", "is not YAML: at line 1, column 5"),
        ("spec.yml", "- 1", "one table"),
        ("spec.toml", "#" * 1_000_001, "larger than 1,000,000 bytes"),
    ],
)
def test_a_malformed_file_is_named(tmp_path: Path, name: str, content: Any, sentence: str) -> None:
    file = tmp_path / name
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SpecError, match=sentence):
        read_spec(str(file), [], _LIMITS)


def test_a_file_is_a_whole_spec(tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    file.write_text(make_spec().model_dump_json())
    assert read_spec(str(file), [], _LIMITS) == make_spec()


def test_a_name_that_is_nothing_lists_the_presets() -> None:
    with pytest.raises(SpecError, match=r"'carpole' .*\(cartpole, hopper, .*\)"):
        read_spec("carpole", [], _LIMITS)
    with pytest.raises(SpecError, match=", ".join(preset_names())):
        read_spec("x" * 5000, [], _LIMITS)


def test_several_errors_are_several_sentences() -> None:
    document = {"budget_usd": 0, "training": {"seed": -1, "rollout": {"x": 1}}}
    with pytest.raises(ValidationError) as refused:
        JobSpec.model_validate(document)
    assert [problem.path for problem in problems(refused.value, JobSpec)] == [
        "training.rollout.x",
        "training.seed",
        "budget_usd",
    ]


def _no_space(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class TestCommand:
    """`manage.py train`, without a database: pytest-django refuses one to tests that do not ask for it."""

    def test_bad_input_ends_with_2_and_one_sentence(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            call_command("train", "cartpole", changes=["budget_usd=0"])
        assert ended.value.code == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert output.err.startswith("Budget (budget_usd) must be")
        assert output.err.count("\n") == 1

    def test_a_damaged_checkpoint_ends_with_2(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        store = FileCheckpointStore(tmp_path)
        path = tmp_path / store.save(1, b"learned so far").name
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        with pytest.raises(SystemExit) as ended:
            call_command("train", "cartpole", resume=path)
        assert ended.value.code == 2
        assert re.search(r"damaged: .*hash [0-9a-f]{12}", capsys.readouterr().err)

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            (
                "training.environment.id=LunarLander-v3",
                "LunarLander-v3 cannot be used",
            ),
            ("training.environment.id=Blackjack-v1", "only Box observations"),
            ("training.environment.id=FrozenLake-v1", "only Box observations"),
        ],
    )
    def test_an_environment_that_cannot_be_had_ends_with_2(
        self, change: str, sentence: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        with pytest.raises(SystemExit) as ended:
            call_command("train", "cartpole", changes=[change], checkpoints=tmp_path / "kept")
        assert ended.value.code == 2
        output = capsys.readouterr()
        assert (output.out, output.err.count("\n")) == ("", 1)
        assert output.err.startswith("Environment (training.environment.id): ")
        assert sentence in output.err
        assert not (tmp_path / "kept").exists()

    def test_checkpoints_must_go_into_a_folder(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path
    ) -> None:
        file = tmp_path / "file"
        file.touch()
        for place in (file, file / "below"):
            with pytest.raises(SystemExit) as ended:
                call_command("train", "cartpole", checkpoints=place)
            assert ended.value.code == 2
            assert capsys.readouterr().err.partition("; ")[2].startswith(f"{file} ")

    def test_a_full_disk_ends_with_one_sentence(
        self, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("training.engine.checkpoints.os.fsync", _no_space)
        with pytest.raises(SystemExit) as ended:
            call_command(
                "train", "cartpole", changes=["training.checkpoints.every_rounds=1"], checkpoints=tmp_path
            )
        assert ended.value.code == 1
        error = capsys.readouterr().err
        assert f" {tmp_path}: no space left" in error
        assert error.count("\n") == 1
        assert list(tmp_path.iterdir()) == []

    def test_events_then_a_summary(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        changes = [
            "training.stop.rounds=2",
            "training.scaling.actors=2",
            "training.checkpoints.every_rounds=1",
        ]
        call_command("train", "cartpole", as_json=True, changes=changes, checkpoints=tmp_path)
        events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        kinds = [event["kind"] for event in events if event["kind"] != "tick"]
        assert kinds[:3] == ["started", "round", "checkpoint"]
        assert kinds[-2:] == ["stopped", "summary"]
        kept = [event for event in events if event["kind"] == "checkpoint" and not event.get("best")]
        assert kinds.count("round") == len(kept) == 2
        summary = events[-1]
        assert (summary["reason_code"], summary["rounds"], summary["env_steps"]) == ("rounds", 2, 128)
        assert summary["evaluation_return_mean"] > 0
        assert summary["cost_usd"] == 0
        assert len(list(tmp_path.glob("round-*"))) == 2
