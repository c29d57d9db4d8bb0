"""What training says, word by word: of who steps, of decisions to scale, and of what cannot go on."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.classic_control import AcrobotEnv, CartPoleEnv
from gymnasium.wrappers import TransformReward
from pydantic import ValidationError

import training.rl.environments.making as making
from tests.shipped_once import data_from
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import descent, tiny
from tests.training.stellaris_runs import QUICK, loop, reports
from tests.training.test_curvature import NETWORKS, evidence_for
from tests.training.test_native import Rewarded
from tests.training.test_scaling import BOUNDS, a_report, after, with_noise
from tests.training.test_scheduling import a_round, spec, weights_of
from tests.training.test_siren_agent import epoch
from tests.training.test_siren_agent import spec as siren_spec
from tests.training.test_supervised import LOOPS
from tests.training.test_tasks import STORED_ROUND
from training.data.store import MemoryStore, MissingData
from training.engine.checkpoints import FileCheckpointStore, Progress
from training.engine.messages import Call
from training.engine.ports import Control
from training.engine.reports import RoundReport, Usage
from training.engine.stopping import verdict
from training.engine.train import train
from training.rl.environments.making import make_copies, stepped_by
from training.rl.environments.model import EnvironmentSpec
from training.rl.environments.native.families import recognise
from training.rl.measures import noise_scale
from training.rl.measures.curvature import RATIO_LIMIT, ratio
from training.rl.policies.model_card import EvaluationScore, model_card
from training.rl.policies.trained import TrainedPolicy
from training.scaling.agent_weights import as_text
from training.scaling.boosting import Boosting
from training.scaling.learned import Learned
from training.scaling.noise_scale import NoiseScale
from training.scaling.plan import Bounds
from training.scaling.scale_in import ScaleIn
from training.scheduling.minionsrl.model import SchedulingSpec
from training.scheduling.minionsrl.rehearsal import Rehearsal
from training.scheduling.siren.arithmetic_cloud import ArithmeticCloud
from training.scheduling.trainer import initial_state
from training.spec import RETURN, StopRule
from training.tasks.kinds import task_of
from training.tasks.supervised_spec import Supervised


def _patched(environment: Any) -> Any:
    environment.unwrapped.step = environment.unwrapped.step
    return environment


def _noisy(environment: Any) -> Any:
    environment.unwrapped.torque_noise_max = 0.5
    return environment


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (Rewarded, "no native family computes what tests.training.test_native:Rewarded does"),
        (lambda: TransformReward(gymnasium.make("Hopper-v5"), abs), "it is wrapped in TransformReward, "),
        (lambda: _patched(CartPoleEnv()), "its step was replaced"),
        (lambda: _noisy(AcrobotEnv()), "its torques are noisy"),
        (lambda: CartPoleEnv(render_mode="rgb_array"), "it draws itself at each step"),
        (lambda: gymnasium.make("FrozenLake-v1"), "no native family computes what gymnasium.envs.toy_text."),
    ],
)
def test_what_may_compute_something_else_is_left_to_gymnasium(made: Any, reason: str) -> None:
    family, why = recognise(made())
    assert family is None
    assert why.startswith(reason)


def test_a_replaced_method_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CartPoleEnv, "step", lambda self, action: None)
    assert recognise(gymnasium.make("CartPole-v1", disable_env_checker=True))[1] == (
        "CartPoleEnv.step is not Gymnasium's own"
    )


def test_another_version_of_gymnasium_steps_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gymnasium, "__version__", "1.4.1")
    copies = make_copies(EnvironmentSpec(id="Hopper-v5"), 1)
    assert type(copies).__name__ == "GymnasiumCopies"
    assert stepped_by(EnvironmentSpec(id="Hopper-v5")) == (
        "Gymnasium steps Hopper-v5, because Gymnasium 1.4.1 was not compared with native stepping yet."
    )


def test_the_job_says_who_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stepped_by(EnvironmentSpec(id="Hopper-v5")) == (
        "Starling steps Hopper-v5 itself, without Gymnasium's Python around it."
    )
    assert (
        stepped_by(EnvironmentSpec(id="ALE/Pong-v5")) == "Starling steps ALE/Pong-v5 on the emulator itself."
    )
    started = next(train(tiny(), platform=InlinePlatform(), checkpoints=Forgetful(), control=Control))
    assert started.stepping == "Starling steps CartPole-v1 itself, without Gymnasium's Python around it."
    # As in a job's process, which did not import Gymnasium: nothing is built to know it.
    monkeypatch.delitem(sys.modules, "gymnasium")
    monkeypatch.setattr(making, "make", None)
    assert stepped_by(EnvironmentSpec(id="Hopper-v5")).startswith("Starling steps Hopper-v5 itself")


@pytest.mark.parametrize(
    ("ratios", "words"),
    [
        ((2.0, 2.0, 2.0), "the last 3 R are alike"),
        ((2.0, 1.0, None), "round 3 has no R"),
        ((None, None, None), "round 3 has no R"),
        ((None, 2.0), "the last 1 R are alike"),
    ],
)
def test_where_the_window_says_nothing_the_score_is_half(ratios, words):
    plan = Boosting().decide(after(*ratios), BOUNDS, 0, RETURN)
    assert plan.actors == max(8, int(64 * 0.5 * 0.96 ** len(ratios)))
    assert words in plan.why


@pytest.mark.parametrize("rule", ["paper", "released"])
@pytest.mark.parametrize(
    ("ratio", "note"),
    [
        (1e6, "convex in every direction: R is taken as 1,000,000"),
        (0.0, "concave in every direction: R is 0"),
        (None, "the surface is flat: both eigenvalues are 0"),
        (None, "the eigenvalues are not finite numbers"),
    ],
)
def test_where_the_formula_says_nothing_the_reason_says_what_was_taken_and_why(rule, ratio, note):
    plan = Boosting(rule=rule).decide(after(2.0, 1.0, ratio, note=note), BOUNDS, 0, RETURN)
    assert note in plan.why
    assert note not in Boosting(rule=rule).decide(after(2.0, 1.0, 3.0), BOUNDS, 0, RETURN).why


def test_a_noise_scale_is_compared_with_the_first_that_is_known():
    history = with_noise(None, 100.0, 150.0)
    assert "is 1.50 times that of round 2" in NoiseScale(actors_min=8).decide(history, BOUNDS, 0, RETURN).why


def test_bounds_hold_and_are_said():
    plan = Boosting().decide(after(2.0), Bounds(actors_max=10), 0, RETURN)
    assert plan.actors == 10
    assert plan.why.endswith("61 limited to 10 by the bounds")


def test_a_loss_that_is_no_number_any_more_ends_the_run_in_one_sentence() -> None:
    spec = descent(
        data="breast_cancer",
        minibatch=8,
        optimiser={"kind": "sgd", "learning_rate": 100.0},
        model={"kind": "logistic", "l2": 10.0},
    )
    platform = InlinePlatform()
    events = events_of(spec, platform)
    assert (events[-1].reason_code, events[-1].reason) == (
        "failing",
        "The loss is not a finite number any more: choose a smaller learning rate.",
    )
    assert all(call.attempt == 1 for call in platform.submitted)


@pytest.mark.parametrize("loop", LOOPS)
def test_when_no_function_answers_the_run_ends_and_says_why(loop: str) -> None:
    def fault(call: Call) -> str | None:
        return "out of order" if call.kind == "sgd" else None

    last = events_of(descent(loop={"kind": loop}), InlinePlatform(fault=fault))[-1]
    assert (last.reason_code, last.reason) == (
        "failing",
        "no function returns a result any more: out of order",
    )


def test_data_that_is_not_here_is_explained_in_one_sentence() -> None:
    spec = Supervised(data="0" * 64)
    assert spec.subject == "Data 000000000000"
    with pytest.raises(MissingData, match=r"^The data set 000000000000 is not here: it was deleted, or"):
        task_of(spec).begin()


@pytest.mark.parametrize(
    ("changed", "why"),
    [(b"other rows", "was changed: its bytes have another hash"), (None, "is not stored")],
    ids=["changed", "deleted"],
)
def test_a_shard_that_was_changed_or_deleted_under_a_job_is_not_learned_from(
    changed: bytes | None, why: str
) -> None:
    manifest = descent().manifest
    shards = {} if changed is None else {ref.hash: changed for ref in manifest.shards}
    with data_from(MemoryStore(shards | {manifest.hash: manifest.encode()})):
        given = descent(data=manifest.hash)
        last = events_of(given, InlinePlatform())[-1]
    assert last.reason_code == "failing"
    assert last.reason.startswith("the data cannot be read: ")
    assert why in last.reason


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"algorithm": {"kind": "impala"}, "loop": loop(truncation="released")}, "PPO's clipped objective"),
        (
            {
                "algorithm": {"kind": "ppo", "objective": "decoupled"},
                "loop": loop(truncation="differentiated"),
            },
            "PPO's clipped objective",
        ),
        ({"loop": loop(), "scaling": {"kind": "boosting"}}, "scaling by boosting measures each update"),
        (
            {"loop": loop(learners=4)},
            "3 actors that wait fill 3 slices of 1 trajectories, so no more than 3 of 4",
        ),
        (
            {"loop": loop(learners=9, samples_per_round=3 * 16)},
            "3 actors that wait fill 3 slices of 1 trajectories, so no more than 3 of 9",
        ),
        ({"loop": loop(ratio_limit=0.99)}, "greater than or equal to 1"),
        ({"loop": loop(staleness_decay=0.0)}, "greater than 0"),
        ({"loop": loop(staleness_decay=1.01)}, "less than or equal to 1"),
        ({"loop": loop(learners=0)}, "greater than or equal to 1"),
        ({"loop": loop(fit_learners=True, order="launch")}, "cannot repeat a run"),
    ],
)
def test_what_learners_cannot_do_is_refused_in_one_sentence(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        tiny(**changes)
    (error,) = refused.value.errors()  # type: ignore[attr-defined]
    assert error["msg"].count(". ") == 0


def test_the_number_of_learners_that_is_fitted_shrinks_as_the_money_ends() -> None:
    spec = tiny(
        algorithm=QUICK,
        loop=loop(learners=3, fit_learners=True),
        stop={"rounds": 3},
        evaluation={"every_rounds": 100},
    )
    near = Control(bounds=Bounds(learners_share=0.2, because="because 96 % of the job's budget is spent"))
    found = [report.gradients for report in reports(events_of(spec, InlinePlatform(), control=lambda: near))]
    assert [one.learners for one in found] == [3, 1, 1]
    assert found[1].learners_why.endswith(", at most 1 because 96 % of the job's budget is spent")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"actors_max": 7}, "trained to choose from 1 to 6 actors"),
        ({"weights": "not base64"}, "not the weights of a scheduler"),
        ({"weights": "aGVsbG8="}, "not the weights of a scheduler"),
    ],
)
def test_a_scheduler_that_does_not_fit_is_refused(changes, words):
    of = spec()
    document = of.policy(as_text(weights_of(initial_state(of), of)), explore=False).model_dump()
    with pytest.raises(ValidationError, match=words):
        Learned.model_validate({**document, **changes})


def test_without_a_scheduler_nothing_is_guessed():
    with pytest.raises(ValueError, match="no scheduler was chosen"):
        Learned().decide([], Bounds(), 0, RETURN)


@pytest.mark.parametrize(
    ("largest", "smallest", "value", "words"),
    [
        (4.0, -2.0, 2.0, ""),
        (4.0, 1.0, RATIO_LIMIT, "convex in every direction"),
        (4.0, 0.0, RATIO_LIMIT, "convex in every direction"),
        (4.0, -1e-12, RATIO_LIMIT, "convex in every direction"),
        (4.0, -4e-6, RATIO_LIMIT, ""),
        (4.0, -3e-6, RATIO_LIMIT, "hardly concave anywhere"),
        (-1.0, -2.0, 0.0, "concave in every direction"),
        (0.0, -2.0, 0.0, "concave in every direction"),
        (0.0, 0.0, None, "flat"),
        (1e-12, -1e-12, None, "flat"),
        (math.nan, -1.0, None, "not finite"),
        (1.0, -math.inf, None, "not finite"),
    ],
)
def test_what_the_ratio_is_where_the_formula_says_nothing(largest, smallest, value, words):
    found, note = ratio(largest, smallest)
    assert found == value
    assert words in note
    assert bool(note) == bool(words)


@pytest.mark.parametrize(
    ("slices", "words"), [(1, "one actor alone"), (5, "samples that no actor has for itself")]
)
def test_samples_that_cannot_be_distinguished_by_actors_say_so(slices, words):
    network, spaces = NETWORKS["choices"]
    parameters, update_samples = evidence_for(network, spaces)
    found = noise_scale.measure_noise_scale(
        network, spaces, parameters, replace(update_samples, columns=8), slices, clip=0.2
    )
    assert found.scale is None
    assert words in found.note


def test_a_boost_is_explained() -> None:
    def why(*ratios: float) -> str:
        return Boosting().decide(after(*ratios), BOUNDS, 0, RETURN).why

    assert why(2.16, 3.43, 1.5, 2.0, 1.9, 0.78) == (
        "R 0.78 is the lowest of the last 6 rounds: score 0.78 (1.00 × 0.96^6): boost to 50 of 64"
    )
    assert why(2.16, 0.78, 1.5, 2.0, 1.9, 3.43).startswith("R 3.43 is the highest of the last 6 rounds:")
    assert "R is at its upper bound" in why(2.0, 1.0, RATIO_LIMIT)


def test_scaling_in_is_explained() -> None:
    policy = ScaleIn(actors_max=5, actors_min=4, window=2, share=0.8)

    def why(losses: Sequence[float], later: Sequence[float] = ()) -> str:
        history = [
            a_report(k, actors=actors, episode_return_mean=loss, cost_picodollars=10**12)
            for k, (actors, loss) in enumerate([*((5, x) for x in losses), *((4, x) for x in later)], start=1)
        ]
        return policy.decide(history, BOUNDS, 0, Supervised.score).why

    losses = [20.0, 16.0, 12.0, 9.0, 8.0]
    assert why(losses) == "one fewer: a dollar gains 2 of loss, 4 when there were 5 at first"
    assert why(losses, [7.0, 6.0, 5.9, 5.8]).startswith("as before: a dollar gains 0.1")


def test_a_noise_scale_that_is_undefined() -> None:
    assert noise_scale.noise_scale(9.0, 0.1, 8, 64)[1] == (
        "the gradients are nothing but noise: the scale is undefined"
    )


def test_a_loss_that_stayed_low_ends_a_run() -> None:
    progress = Progress(learner=b"", weights=b"", evaluation_means=(0.05, 0.04, 0.1))
    ended = verdict(StopRule(target_return=0.1), progress, Supervised.score, "samples")
    assert ended is not None
    assert ended.reason == "the evaluation loss stayed at 0.1 or below for 3 evaluations"


def test_a_kind_of_training_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="no kind of training is named 'sorcery'"):
        RoundReport.model_validate({**json.loads(STORED_ROUND)["report"], "training": "sorcery"})


def test_rehearsals_without_evidence() -> None:
    with pytest.raises(ValueError, match="no recorded epoch has a loss and the times"):
        ArithmeticCloud.fit([[epoch(usage=Usage())]])
    with pytest.raises(ValueError, match="no recorded round has a return"):
        Rehearsal([[a_round(1, episode_return_mean=None)]], spec())


def test_a_scheduler_that_cannot_be_trained_on() -> None:
    other = initial_state(spec(seed=9)).encode()
    with pytest.raises(ValueError, match="chooses from 1 to 6 actors"):
        initial_state(spec(actors_max=8), begin_with=other)
    siren = siren_spec()
    theirs = initial_state(SchedulingSpec(workload=tiny(), target_return=1.0, actors_max=6))
    with pytest.raises(ValueError, match="decides only how many actors"):
        initial_state(siren, begin_with=theirs.encode())


def test_a_model_card(tmp_path: Path) -> None:
    events_of(tiny(), InlinePlatform(), checkpoints=FileCheckpointStore(tmp_path))
    trained = TrainedPolicy.read(sorted(tmp_path.glob("round-*"))[-1])
    alone = EvaluationScore.from_progress(trained.progress, trained.spec)
    assert alone is not None
    facts = {"name": "Mine", "cost": "$0.01", "simulated": None}
    card = model_card(trained, judged=replace(alone, round_no=1), **facts)
    for sentence in (
        "The spread is not stored in the checkpoint.",
        "It was measured on the policy of round 1, the last that was evaluated.",
        "$0.01; whether its platform was simulated is not stored in the checkpoint",
    ):
        assert sentence in card, sentence
    assert "It was not evaluated, so its score is unknown." in model_card(trained, judged=None, **facts)
