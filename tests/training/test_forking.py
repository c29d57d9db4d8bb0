"""A run that begins with what another one has learned."""

import pytest

from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import cartpole
from training.engine.checkpoints import CheckpointError, Progress
from training.engine.messages import RoundFinished, Stopped
from training.rl.learner import LearnerState
from training.spec import TrainingSpec
from training.tasks.kinds import task_of


def _spec(**changes: object) -> TrainingSpec:
    algorithm = {"kind": "ppo", "epochs": 2, "minibatch_size": 64, "normalise_observations": True}
    small = {"scaling": {"kind": "fixed", "actors": 2}, "evaluation": {"every_rounds": 100, "episodes": 1}}
    return cartpole(**{"algorithm": algorithm, **small, "stop": {"rounds": 3}, **changes})


@pytest.fixture(scope="module")
def learned() -> bytes:
    store = Forgetful()
    events_of(_spec(), InlinePlatform(), checkpoints=store)
    (data,) = store.saved.values()
    return data


def test_a_fork_has_the_weights_and_normaliser_and_nothing_else_of_the_run_it_comes_from(
    learned: bytes,
) -> None:
    spec = _spec(algorithm={"kind": "impact", "normalise_observations": True, "normalise_rewards": True})
    before = LearnerState.decode(Progress.decode(learned, _spec()).learner)
    fork = task_of(spec).fork(Progress.decode(learned, spec))
    state = LearnerState.decode(fork.learner)
    assert (fork.round_no, fork.total_progress, fork.history, fork.slot_states) == (0, 0, (), {})
    assert (state.version, state.optimiser_steps) == (0, 0)
    for name, array in before.parameters.items():
        assert (state.parameters[name] == array).all()
        assert (state.target_parameters[name] == array).all()
        assert not state.first_moments[name].any()
    assert before.observation_moments is not None
    assert state.observation_moments is not None
    assert state.observation_moments.count == before.observation_moments.count > 0
    assert fork.weights == state.actor_weights(spec.network)


def test_it_trains_from_round_one_by_its_own_rule_and_seed(learned: bytes) -> None:
    events = events_of(_spec(seed=7, stop={"rounds": 2}), InlinePlatform(), begin_with=learned)
    assert [event.report.round_no for event in events if isinstance(event, RoundFinished)] == [1, 2]
    assert isinstance(events[-1], Stopped)
    fresh = events_of(_spec(seed=7, stop={"rounds": 2}), InlinePlatform())
    first = [
        next(event.report.figures.update for event in run if isinstance(event, RoundFinished))
        for run in (events, fresh)
    ]
    assert first[0] != first[1], "it began as a run that knows nothing"


def test_weights_are_not_put_before_other_observations_than_they_know(learned: bytes) -> None:
    for strange, words in (
        ({"environment": {"id": "Acrobot-v1"}}, "another environment"),
        ({"network": {"kind": "mlp", "hidden": [8]}}, "another network"),
        ({"algorithm": {"kind": "ppo"}}, "were normalised; they fit only those"),
    ):
        with pytest.raises(CheckpointError, match=words):
            events_of(_spec(**strange), InlinePlatform(), begin_with=learned)
