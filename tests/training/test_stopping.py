"""The stop rule, case by case."""

import pytest

from training.engine.checkpoints import Progress
from training.engine.stopping import fraction_done, verdict
from training.spec import StopRule


def after(**changes):
    return Progress(learner=b"", weights=b"", **changes)


@pytest.mark.parametrize(
    ("rule", "progress", "code"),
    [
        ({"env_steps": 100}, {"total_progress": 99}, None),
        ({"env_steps": 100}, {"total_progress": 100}, "steps"),
        ({"env_steps": None, "rounds": 5}, {"round_no": 5}, "rounds"),
        ({"env_steps": None, "minutes": 2}, {"elapsed_s": 119.0}, None),
        ({"env_steps": None, "minutes": 2}, {"elapsed_s": 120.0}, "minutes"),
        ({"target_return": 10}, {"evaluation_means": (10.0, 11.0)}, None),
        ({"target_return": 10}, {"evaluation_means": (10.0, 9.9, 10.0, 10.0)}, None),
        ({"target_return": 10}, {"evaluation_means": (1.0, 10.0, 11.0, 10.0)}, "target"),
        (
            {"target_return": 10, "env_steps": 1},
            {"evaluation_means": (10.0,) * 3, "total_progress": 1},
            "target",
        ),
        ({"no_progress_evaluations": 2}, {"evaluation_means": (1.0, 3.0, 2.0)}, None),
        ({"no_progress_evaluations": 2}, {"evaluation_means": (1.0, 3.0, 2.0, 3.0)}, "no_progress"),
    ],
)
def test_verdicts(rule, progress, code):
    found = verdict(StopRule(**rule), after(**progress))
    assert (found.code if found else None) == code


def test_schedules_follow_whatever_limit_is_nearer():
    rule = StopRule(env_steps=100, rounds=10)
    assert fraction_done(rule, after(total_progress=50, round_no=1)) == 0.5
    assert fraction_done(rule, after(total_progress=50, round_no=9)) == 0.9
    assert fraction_done(StopRule(env_steps=None), after(total_progress=50)) == 0.0
