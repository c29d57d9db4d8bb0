"""What is said of a wrong spec: its field, what is allowed, and what was given."""

import errno
import io
import os
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import pytest
from django.core.management import call_command
from pydantic import BaseModel, Field, ValidationError

from webapp.jobs.form.forms import job_form
from webapp.jobs.form.spec_documents import LARGEST_BYTES, SpecError, read_spec, read_spec_file
from webapp.jobs.form.spec_problems import problems
from webapp.jobs.running.checkpoint_files import CheckpointFiles, CheckpointNotWritten
from webapp.jobs.spec import Limits

_LIMITS = Limits(local=16, simulated=1024)

WRONG = [
    ("training.environment.id=Nowhere-v1", "Environment (training.environment.id): there is no environment"),
    (
        "training.rollout.steps_per_call=0",
        "Steps per call (training.rollout.steps_per_call) must be a whole number between 1 and 65,536; 0 was given.",
    ),
    (
        "training.rollout.stpes=3",
        "training.rollout.stpes is not a field; allowed here are: steps_per_call, environments_per_actor,",
    ),
    ("budget_usd=0", "Budget (budget_usd) must be a number greater than 0 and at most 1,000,000"),
    ("budget_usd=-1", "Budget (budget_usd) must be a number greater than 0"),
    ("budget_usd=nan", "Budget (budget_usd) must be a number greater than 0"),
    ("budget_usd=inf", "Budget (budget_usd) must be a number greater than 0"),
    (
        "training.stop.target_return=nan",
        "Target return (training.stop.target_return) must be a number, or nothing",
    ),
    (
        "training.rollout.deadline_s=inf",
        "Longest call (training.rollout.deadline_s) must be a number between 1.0 and 900.0",
    ),
    ("training.network.hidden=32, 32", "Hidden layers (training.network.hidden) must be a list"),
    ("training.network.kind=cnn", "training.network: a convolutional network needs pictures"),
    (
        "training.environment.id=ALE/Pong-v5",
        "training.network: a fully connected network cannot look at pictures",
    ),
    ("budget_usd=lots", "Budget (budget_usd) must be a number greater than 0"),
    (
        "training.scaling.actors=17",
        "Actors (training.scaling.actors) must be at most 16 on the local platform; 17 was given.",
    ),
    ("training.network.kind=magic", "training.network.kind must be one of mlp, cnn; 'magic' was given."),
    ("training.scaling.kind=magic", "training.scaling.kind must be one of fixed, ramp"),
    (
        "platform.kind=mainframe",
        "platform.kind must be one of local, simulated, aws_lambda, azure_container, hosts, ray;"
        " 'mainframe' was given.",
    ),
    (
        "training.seed=1.5",
        "Seed (training.seed) must be a whole number between 0 and 2,147,483,647; 1.5 was given.",
    ),
    ("training.stop.env_steps.x=1", "training.stop.env_steps.x is not a field: env_steps is a value"),
    ("training=3", "training must be a table of fields; 3 was given."),
    ("name=", "Name (name) must be a text of length 1 to 100; '' was given."),
    ("rounds", "--set takes path=value, such as training.seed=7; 'rounds' was given."),
]


@pytest.mark.parametrize(("change", "sentence"), WRONG, ids=[change for change, _ in WRONG])
def test_a_wrong_value_is_named(change: str, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_spec("cartpole", [change], _LIMITS)
    assert str(refused.value).startswith(sentence)
    assert len(refused.value.problems) == 1


class _Changed(BaseModel):
    limit_usd: Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=6)] | None = None


def test_what_may_be_left_out_has_its_limits_told_too() -> None:
    with pytest.raises(ValidationError) as refused:
        _Changed.model_validate({"limit_usd": "0"})
    (one,) = problems(refused.value, _Changed)
    assert one.sentence == (
        "limit_usd must be a number greater than 0 and at most 1,000,000, with at most 6 decimal places, or nothing;"
        " '0' was given."
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"{",
            "spec.json is not JSON: at line 1, column 2, expecting property name enclosed in double quotes.",
        ),
        (
            b"[1]",
            "spec.json must hold one table of fields, such as name, training, platform and budget_usd.",
        ),
        (b"\xff\xfe", "spec.json is not JSON: it is no text in UTF-8."),
        (
            b" " * (LARGEST_BYTES + 1),
            "spec.json is larger than 256 KB; a spec is a short JSON document.",
        ),
        (b'{"a":' * 5_000, "spec.json is not JSON: it nests deeper than 50 tables."),
    ],
    ids=["cut", "list", "bytes", "large", "deep"],
)
def test_a_file_that_is_no_spec(content: bytes, sentence: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_spec_file(io.BytesIO(content), "spec.json")
    assert str(refused.value) == sentence


def test_checkpoints_that_have_no_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(SystemExit):
        call_command("train", "cartpole", checkpoints=file / "below")
    assert capsys.readouterr().err == (
        f"--checkpoints {file}/below must be a folder to write to; {file} is not a folder.\n"
    )


def test_a_checkpoint_that_finds_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("training.engine.checkpoints.os.fsync", no_space)
    with pytest.raises(CheckpointNotWritten) as refused:
        CheckpointFiles(tmp_path).save(1, b"weights")
    assert str(refused.value) == (
        f"The checkpoint of round 1 could not be written to {tmp_path}: no space left on device. Make room there or"
        " allow writing, then start again."
    )


def test_titles_of_what_is_trained() -> None:
    (choice,) = [one for one in job_form().tree.choices() if one.path == ("training",)]
    assert [variant.title for variant in choice.variants] == ["Reinforcement learning", "A model from data"]
