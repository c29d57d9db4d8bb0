"""Gradients that waited in a checkpoint, and a run that goes on with another measure of staleness."""

from __future__ import annotations

import pytest

from tests.training.runs import events_of
from tests.training.specs import tiny
from tests.training.stellaris_runs import QUICK, Recording, loop, paused_with_gradients
from training.engine.checkpoints import CheckpointError


def test_gradients_that_waited_while_staleness_was_counted_in_versions_are_not_resumed_by_kl() -> None:
    spec = tiny(algorithm=QUICK, loop=loop(), scaling={"actors": 5}, stop={"rounds": 3})
    kept = paused_with_gradients(spec)
    other = tiny(algorithm=QUICK, loop=loop(distance="kl"), scaling={"actors": 5}, stop={"rounds": 3})
    with pytest.raises(CheckpointError, match="KL"):
        events_of(other, Recording(), resume=kept)
    kept = paused_with_gradients(other)
    assert events_of(other, Recording(), resume=kept)[-1].reason_code == "rounds"
    assert events_of(spec, Recording(), resume=kept)[-1].reason_code == "rounds"
