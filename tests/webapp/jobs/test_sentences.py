"""What is said of why a job is in its state."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_job, make_project, make_spec
from tests.webapp.jobs.policies.test_policy import job_with_checkpoints
from training.engine.checkpoints import CheckpointError
from webapp.alerts.text import end_sentence
from webapp.clock import SYSTEM_CLOCK
from webapp.job_states import Observed
from webapp.jobs.actor_bounds import words
from webapp.jobs.events.event_text import describe_event
from webapp.jobs.lineage import Source, remember
from webapp.jobs.models import EventKind, OriginKind, PlatformNote
from webapp.jobs.policies.downloads import checkpoint_path, list_checkpoints
from webapp.jobs.reasons import (
    Reason,
    ReasonCode,
    fail_after_retries,
    look_of,
)
from webapp.jobs.running.platform_notes import cache_words
from webapp.overview.running_jobs import MoneyGroup, Rate


def test_a_code_that_is_not_known_any_more_is_shown_with_its_own_words() -> None:
    assert look_of("paused", "retired") == look_of("paused")
    state = {"text": "As it was noted then", "observed": "paused", "reason_code": "retired"}
    assert describe_event(EventKind.STATE, state).text == "As it was noted then."
    end = {"reason": "as the engine said then", "reason_code": "retired", "rounds": 1, "env_steps": 256}
    assert describe_event(EventKind.STOPPED, end).text == "As the engine said then. 1 round, 256 steps."


def test_a_job_that_is_given_up_keeps_the_code_of_its_last_run() -> None:
    crashed = fail_after_retries(Reason.PROCESS_DIED.change(how="exit code 3"), 6)
    assert (crashed.state, crashed.code) == (Observed.FAILED, ReasonCode.CRASHED)
    assert crashed.sentence == (
        "The job's process ended unexpectedly (exit code 3). That was the 6th time without a new checkpoint;"
        " the job is given up."
    )
    lost = fail_after_retries(Reason.WORKER_KILLED.change(), 20)
    assert lost.sentence.endswith("Run it again where it has more room.")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("least", "most", "sentence"),
    [
        (3, 3, "3 actors in every round."),
        (2, 8, "From 2 to 8 actors in a round."),
        (2, None, "At least 2 actors in a round."),
        (None, 8, "At most 8 actors in a round."),
        (None, None, "As many actors as the scaling policy decides."),
    ],
)
def test_bounds_on_the_number_of_actors(least: int | None, most: int | None, sentence: str) -> None:
    assert words(make_job(), least, most) == sentence


def test_the_top_bar_counts_jobs_by_their_money() -> None:
    rate = Rate(MoneyGroup(1, 0), {"simulated": MoneyGroup(5, 0)}, 2)
    assert rate.words == "Running: 1 real, 5 simulated, 2 free"


@pytest.mark.django_db
def test_what_a_cache_did() -> None:
    job = make_job()
    PlatformNote.objects.create(job=job, cache_hits=3, cache_misses=3, cache_bytes=0, at=SYSTEM_CLOCK.now())
    assert cache_words(job) == (
        "Trajectory cache: 3 of 6 rollouts were there already and cost nothing; it holds 0 kB."
    )


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"network": {"kind": "mlp", "hidden": [4]}},
            "Network (training.network): a fork keeps that of Roses, because it starts with its weights. Reset it, or"
            " start a new job.",
        ),
    ],
)
def test_a_fork_that_does_not_fit(changes: dict[str, Any], sentence: str) -> None:
    job = make_job(spec=make_spec(name="Roses"))
    spec = job.parsed_spec()
    other = spec.model_copy(
        update={
            "training": type(spec.training).model_validate(
                {**spec.training.model_dump(mode="json"), **changes}
            )
        }
    )
    (problem,) = Source(job, OriginKind.FORK).obstacles(other)
    assert problem.sentence == sentence


@pytest.mark.django_db
def test_a_fork_whose_checkpoint_finds_no_room(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    settings.STARLING_DATA = tmp_path
    job = job_with_checkpoints(make_project(), rounds=1)
    chosen = list_checkpoints(job)[0]
    file = checkpoint_path(job.pk, chosen.name)
    monkeypatch.setattr(shutil, "copyfile", full)
    with pytest.raises(CheckpointError) as refused:
        remember(make_job(job.project), Source(job, OriginKind.FORK, chosen.name, 1, chosen.sha256, file))
    assert str(refused.value) == f"{file.name} cannot be copied: No space left on device"


@pytest.mark.django_db
def test_how_a_job_ended() -> None:
    job = make_job(spec=make_spec(name="Roses"))
    job.observed, job.total_progress = Observed.SUCCEEDED, 288
    assert end_sentence(job).startswith("Roses finished after 288 steps")
