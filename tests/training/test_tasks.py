"""The seam between the engine and a kind of training: versions and rounds, scores, and the stored form of reports."""

import json

import pytest

from cloud.actor.wire import MeasuredWork
from tests.training.inline_platform import InlinePlatform
from tests.training.runs import Forgetful, events_of
from tests.training.specs import tiny
from training.engine.checkpoints import Progress
from training.engine.messages import Evaluated, RoundFinished
from training.engine.reports import RoundReport, Usage, sum_usages
from training.engine.stopping import verdict
from training.loops.asynchronous import Asynchronous
from training.loops.state import MakeVersion
from training.loops.synchronous import SynchronousState
from training.spec import StopRule
from training.tasks.kinds import TASKS
from training.tasks.score import Score

LOSS = Score("loss", higher_is_better=False)
_UPDATE = (
    '{"policy_loss":0.1,"value_loss":1.0,"entropy":0.5,"approximate_kl":0.01,"clip_fraction":0.1,'
    '"explained_variance":0.0,"gradient_norm":1.0,"learning_rate":0.001,"device":"cpu"}'
)
_NOTHING = (
    '{"env_steps":0,"inferences":0,"episodes":0,"minibatches":0,"samples":0,"macs":0,"pictures":false,'
    '"hessian_products":0,"bytes_in":0,"bytes_out":0,"cold_start":false,"provisioned":false,"detours":0,'
    '"startup_s":0.0,"run_s":0.0,"environment_s":0.0,"inference_s":0.0,"transfer_s":0.0,"billed_s":null,'
    '"memory_mb":0}'
)
# As the first release wrote them.
STORED_ROUND = (
    '{"kind":"round","report":{"round_no":3,"version":3,"actors":2,"plan_reason":"fixed","env_steps":96,'
    '"total_env_steps":288,"episodes":4,"episode_return_mean":21.5,"episode_length_mean":21.5,'
    f'"update":{_UPDATE},"curvature":null,'
    '"noise_scale":{"scale":null,"note":"undefined","slices":2},"policy_shift":null,"staleness_mean":0.5,'
    '"dropped_trajectories":1,"started_s":1.0,"collect_s":0.75,"update_s":0.25,"total_s":1.0,"cold_starts":0,'
    f'"failed_calls":1,"retried_calls":1,"usage":{_NOTHING},"learner_usage":{_NOTHING},"cost_picodollars":7,'
    '"spend":{"spent_picodollars":1,"reserved_picodollars":2,"limit_picodollars":3}}}'
)
STORED_EVALUATION = (
    '{"kind":"evaluation","round_no":3,"total_env_steps":288,"at_s":1.5,"episode_returns":[1.0,2.0],'
    '"return_mean":1.5,"return_std":0.5,"length_mean":9.0,"cost_picodollars":7}'
)


@pytest.mark.parametrize(("model", "stored"), [(RoundFinished, STORED_ROUND), (Evaluated, STORED_EVALUATION)])
def test_stored_reports_load_and_are_written_as_they_were(model, stored):
    assert model.model_validate_json(stored).model_dump_json() == stored
    assert model.model_validate(json.loads(stored)).model_dump(mode="json") == json.loads(stored)


def test_what_a_call_fetched_and_computed_is_stored_where_it_was_measured():
    one = Usage(fetched_bytes=5, fetch_s=0.5, compute_s=1.5, push_s=0.25, processor_s=2.0, most_memory_mb=90)
    stored = one.model_dump(mode="json")
    assert Usage.model_validate(stored) == one
    assert {"fetch_s", "push_s", "most_memory_mb"} <= set(stored)
    assert "fetch_s" not in Usage().model_dump()
    both = sum_usages([one, one.model_copy(update={"most_memory_mb": 70})])
    assert (both.fetched_bytes, both.fetch_s, both.compute_s, both.push_s) == (10, 1.0, 3.0, 0.5)
    assert (both.processor_s, both.most_memory_mb) == (4.0, 90)
    assert MeasuredWork.of(one).usage() == one


def test_figures_are_distinguished_from_what_every_round_has():
    report = RoundFinished.model_validate_json(STORED_ROUND).report
    assert report.score == report.figures.episode_return_mean == 21.5
    assert report.figures.update.learning_rate == 0.001
    assert Evaluated.model_validate_json(STORED_EVALUATION).score == 1.5
    with pytest.raises(ValueError, match="'sorcery'"):
        RoundReport.model_validate({**json.loads(STORED_ROUND)["report"], "training": "sorcery"})
    with pytest.raises(ValueError, match="nothing_of_ours"):
        RoundReport.model_validate({**json.loads(STORED_ROUND)["report"], "nothing_of_ours": 1})


class _ThreeVersionsARound(SynchronousState):
    """A loop that learns from the data of a wave three times, and reports the versions together."""

    def _wave_is_over(self):
        self._batch = super()._wave_is_over()
        return self._batch

    def land(self, landing):
        if landing.name != self._updating or self.versions == 2:
            yield from super().land(landing)
            return
        self.after = (landing.name,)
        self._made(landing.samples)
        yield MakeVersion(landing.name)
        yield self._update(self._batch)


class _ThreeVersions(Asynchronous):
    decides = _ThreeVersionsARound


def test_a_round_is_not_a_version():
    """A loop may make several versions a round. They are reported together; each has its own seed."""
    spec = tiny(
        algorithm={"learning_rate_decay": True},
        scaling={"kind": "fixed", "actors": 2},
        stop={"rounds": 2},
    ).model_copy(update={"loop": _ThreeVersions(staleness_limit=4)})
    platform, store = InlinePlatform(), Forgetful()
    reports = [one.report for one in events_of(spec, platform, checkpoints=store) if one.kind == "round"]
    assert [report.round_no for report in reports] == [1, 2]
    assert [report.version for report in reports] == [3, 6]
    assert [report.progress for report in reports] == [3 * 2 * 16] * 2
    assert reports[-1].total_progress == 2 * 3 * 2 * 16
    updates = [call for call in platform.submitted if call.kind == "update"]
    assert len({call.seed for call in updates}) == 6
    assert len({call.id for call in platform.submitted}) == len(platform.submitted)
    a_round = updates[:3]
    assert reports[0].learner_usage.samples == sum(2 * 2 * 16 for _ in a_round)
    # Data of version 0 was learned from at versions 0, 1 and 2.
    assert reports[0].staleness_mean == pytest.approx(1.0)
    progress = Progress.decode(store.saved[2], spec)
    assert (progress.version, progress.total_progress) == (6, 2 * 3 * 2 * 16)
    assert Progress.decode(progress.encode(spec), spec) == progress


@pytest.mark.parametrize(
    ("rule", "scores", "code"),
    [
        ({"target_return": 0.1}, (0.05, 0.04, 0.1), "target"),
        ({"target_return": 0.1}, (0.05, 0.11, 0.1), None),
        ({"no_progress_evaluations": 2}, (0.3, 0.2, 0.25, 0.2), "no_progress"),
        ({"no_progress_evaluations": 2}, (0.3, 0.2, 0.1), None),
    ],
)
def test_a_loss_stops_a_run_by_going_down(rule, scores, code):
    progress = Progress(learner=b"", weights=b"", evaluation_means=scores)
    found = verdict(StopRule(**rule), progress, LOSS, "samples")
    assert (found.code if found else None) == code
    if code == "target":
        assert found.reason.startswith("the evaluation loss")


def test_progress_is_reported_in_its_own_unit():
    progress = Progress(learner=b"", weights=b"", total_progress=100)
    assert verdict(StopRule(env_steps=100), progress, LOSS, "samples").reason == "reached 100 samples"


def test_every_kind_of_training_declares_its_progress_and_score():
    for kind, task in TASKS.items():
        assert task.spec_model.model_fields["kind"].default == kind
        assert task.spec_model.progress_unit
        assert isinstance(task.spec_model.score, Score)
