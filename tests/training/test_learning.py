"""It learns. Oracle: the environment's own threshold for solved, on seeds never used for training."""

import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import events_of
from tests.training.specs import cartpole


def solved(seed):
    events = events_of(cartpole(seed=seed), InlinePlatform())
    return events[-1]


def test_cartpole_is_solved_within_100_000_steps():
    last = solved(0)
    assert (last.reason_code, last.env_steps <= 100_000) == ("target", True)
    assert last.evaluation_return_mean >= 475


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_cartpole_is_solved_with_every_seed(seed):
    last = solved(seed)
    assert last.evaluation_return_mean >= 475
    assert last.env_steps <= 100_000
