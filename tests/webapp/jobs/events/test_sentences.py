"""What a job's page says in sentences: each from figures alone, and nothing where nothing is known."""

from typing import Any

import pytest

from tests.factories import call_failed, make_running_job, make_spec, round_finished
from training.loops.staleness_aware import StalenessAware
from training.tasks.score import Score
from webapp.formatting import format_percent
from webapp.jobs.actor_bounds import change_bounds
from webapp.jobs.charts.figures import LINES
from webapp.jobs.charts.history import EvaluationPoint
from webapp.jobs.events.event_text import describe_event, gradients_sentence
from webapp.jobs.events.job_summary import live_sentences
from webapp.jobs.events.sentences import (
    judged_words,
    learner_sentence,
    learners_sentence,
    no_news_sentence,
    parts_sentence,
    plan_sentence,
    progress_sentence,
    queued_sentence,
    simulated_sentence,
    stalled_sentence,
    useful_learners,
)
from webapp.jobs.models import Job
from webapp.jobs.running.recorder import Recorder

USD = 10**12


def test_progress_is_how_far_it_is_from_the_reference() -> None:
    judged = EvaluationPoint(41, 0, 1840.0, 96.0, 20)
    assert progress_sentence(1700.0, judged, 2383.0) == (
        "543.0 below the reference of 2,383, evaluated after {round} 41."
    )
    assert progress_sentence(1700.0, judged, 1800.0) == (
        "40.0 above the reference of 1,800, evaluated after {round} 41."
    )
    assert progress_sentence(None, judged, 1840.0) == "At the reference of 1,840, evaluated after {round} 41."
    assert progress_sentence(None, judged, None) == "Evaluated after {round} 41; no reference is known."


def test_progress_before_an_evaluation_and_before_anything() -> None:
    assert progress_sentence(12.34, None, None) == "Not evaluated yet."
    assert progress_sentence(12.34, None, 475.0) == "Not evaluated yet; the reference is 475.0."
    assert progress_sentence(None, None, None) == "No return yet."


def test_the_figure_says_how_it_came_about() -> None:
    assert judged_words(None) == "in training, not evaluated yet"
    assert judged_words(EvaluationPoint(41, 0, 1840.0, 96.0, 20)) == "evaluated, 95 % 1,794–1,886"


def test_one_episode_has_no_interval() -> None:
    one = EvaluationPoint(1, 0, 10.0, 0.0, 1)
    assert one.mean_interval is None
    assert judged_words(one) == "evaluated"


def test_the_interval_is_students() -> None:
    """Returns 8, 10, 12: mean 10, sample deviation 2, so 10 ± 4.303 · 2 / √3; what is stored is the population's."""
    span = EvaluationPoint(1, 0, 10.0, (8 / 3) ** 0.5, 3).mean_interval
    assert span == pytest.approx((10 - 4.9686, 10 + 4.9686), abs=1e-3)


def test_where_the_money_went() -> None:
    parts = {"learner": 770, "actors": 170, "cold_starts": 20, "failed": 20, "evaluation": 17, "requests": 3}
    scaled = {key: part * USD // 1000 for key, part in parts.items()}
    assert parts_sentence(scaled, USD) == (
        "Of $1.00: learner 77 %, actors 17 %, cold starts 2 %, failed calls 2 %, evaluation 2 %, the rest < 1 %."
    )
    assert parts_sentence({}, 0) == ""


def test_why_a_round_had_so_many_actors() -> None:
    assert plan_sentence(12, 22, 64, "R 1.8 is mid-range of the last 6 rounds") == (
        "{Round} 12 used 22 of 64 {actor}s: R 1.8 is mid-range of the last 6 rounds."
    )
    assert plan_sentence(3, 8, None, "fixed at 8") == "{Round} 3 used 8 {actor}s: fixed at 8."
    assert plan_sentence(0, 0, 64, "") == ""


@pytest.mark.django_db
def test_a_round_is_held_against_the_most_it_may_have() -> None:
    """Of a fixed number there is no most to speak of; bounds that people set count as well."""
    job, epoch = make_running_job(spec=make_spec())
    _record_why(job, epoch, 2, "fixed at 2")
    assert live_sentences(job)["plan"] == "Round 1 used 2 actors: fixed at 2."
    ramp = {"kind": "ramp", "actors_first": 1, "actors_last": 16, "over_rounds": 5}
    job, epoch = make_running_job(spec=make_spec(training__scaling=ramp))
    _record_why(job, epoch, 4, "a quarter of the way")
    assert live_sentences(job)["plan"] == "Round 1 used 4 of 16 actors: a quarter of the way."
    change_bounds(job=job, user=job.created_by, least=None, most=6)
    job.refresh_from_db()
    assert live_sentences(job)["plan"] == "Round 1 used 4 of 6 actors: a quarter of the way."


def _record_why(job: Job, epoch: int, actors: int, why: str) -> None:
    event = round_finished(1, actors=actors)
    report = event.report.model_copy(update={"plan_reason": why})
    Recorder(job.pk, epoch, keep_checkpoints=3).record(event.model_copy(update={"report": report}))
    job.refresh_from_db()


def _flat(*means: float) -> list[EvaluationPoint]:
    return [EvaluationPoint(5 * at, 0, mean, 1.0, 5) for at, mean in enumerate(means, start=1)]


def test_no_news_only_after_several_evaluations() -> None:
    assert no_news_sentence(_flat(1, 9, 5, 6), 30, 0, 30) == ""
    assert no_news_sentence(_flat(1, 9, 5, 6, 7), 35, 380 * USD // 1000, 25) == (
        "No improvement in 25 {rounds} ($0.380): stopping now keeps checkpoint 25."
    )
    assert no_news_sentence(_flat(1, 9, 5, 6, 7), 35, 0, None).endswith("there is no checkpoint yet.")
    assert no_news_sentence([], 35, 0, None) == ""


def test_a_loss_is_reported_as_one() -> None:
    loss = Score("loss", higher_is_better=False, decimals=3)
    rising = _flat(9, 1, 5, 6, 7)
    assert no_news_sentence(rising, 35, 0, 25, loss).startswith("No improvement in 25 {rounds}")
    assert no_news_sentence(rising, 35, 0, 25) != no_news_sentence(rising, 35, 0, 25, loss)
    assert no_news_sentence(_flat(9, 5, 4, 3, 2), 35, 0, 25, loss) == ""
    judged = EvaluationPoint(3, 0, 0.25, 0.0, 0)
    assert progress_sentence(0.5, judged, 0.2, loss).startswith("0.050 above the reference of 0.200")
    assert judged_words(judged, loss) == "evaluated"
    assert progress_sentence(None, None, None, loss) == "No loss yet."


def test_whose_numbers_a_simulated_job_has() -> None:
    assert simulated_sentence("lambda", "7 measured and 11 assumed", 18) == (
        "No money is spent: profile lambda, of its 18 numbers 7 measured and 11 assumed."
    )


def test_why_it_waits() -> None:
    assert (
        queued_sentence(3, 2, 12, 12)
        == "All 12 places for running jobs are taken; 2 jobs are ahead of this one."
    )
    assert queued_sentence(3, 0, 12, 12) == "All 12 places for running jobs are taken; it is next."
    assert queued_sentence(2, 0, 1, 12) == "Waiting for a worker to take it."
    assert "the worker may be away" in queued_sentence(34, 0, 1, 12)


def test_why_it_stands_still() -> None:
    assert stalled_sentence(13, 5, 2.3, 3, 4.0) == ""
    assert stalled_sentence(13, 48, 20.0, 3, 41.0) == ""  # a long round among long rounds
    assert stalled_sentence(13, 48, 2.3, 3, 41.0) == (
        "{Round} 13 has taken 48 s so far; {rounds} before it took 2.3 s: 3 calls in flight, the oldest for 41 s."
    )
    assert "no call is running" in stalled_sentence(1, 48, None, 0, None)


def test_a_job_says_on_what_its_round_was_learned_from() -> None:
    report = {"round_no": 1_200, "update": {"device": "cuda"}}
    assert learner_sentence(report, simulated=False) == "{Round} 1,200 was learned from on a GPU."
    on_a_core = {"round_no": 3, "update": {"device": "cpu"}}
    assert learner_sentence(on_a_core, simulated=True) == (
        "{Round} 3 was learned from on a core; its time is the simulated cloud's."
    )
    assert learner_sentence({}, simulated=False) == ""
    assert learner_sentence({"round_no": 3, "update": None}, simulated=False) == ""


FOUND: dict[str, Any] = {
    "learners": 4,
    "gradients": 40,
    "steps": 26,
    "staleness_mean": 1.04,
    "bound": 1.6,
    "starved_share": 0.62,
    "dropped": {},
    "wasted_picodollars": 0,
    "queue_mean": 0.5,
}


def test_a_round_says_what_its_gradients_became() -> None:
    text = "40 gradients in 26 steps, 1.0 versions behind on average, bound 1.6."
    assert gradients_sentence(FOUND) == text
    wasted = FOUND | {"dropped": {"too_old": 2}, "wasted_picodollars": 200_000_000, "bound": None}
    assert gradients_sentence(wasted) == (
        "40 gradients in 26 steps, 1.0 versions behind on average. 2 dropped (over 100 versions old), $0.000200 wasted."
    )
    refused = FOUND | {"dropped": {"refused_gradient": 1, "refused_run": 2}}
    assert "1 dropped (not as requested), 2 dropped (of another run)" in gradients_sentence(refused)
    assert gradients_sentence(None) == ""


def test_a_checkpoint_says_what_it_had_no_room_for() -> None:
    payload: dict[str, Any] = {"round_no": 7, "byte_count": 3 * 2**20, "best": False, "left_out": 0}
    plain = describe_event("checkpoint", payload).text
    assert plain.startswith("Checkpoint of round 7 saved")
    assert describe_event("checkpoint", payload | {"left_out": 12}).text == (
        f"{plain} More data waits than a checkpoint holds: resumed from it, the job samples 12 trajectories again."
    )


ROUND: dict[str, Any] = {
    "actors": 16,
    "total_s": 2.0,
    "gradients": FOUND | {"learners_busy": 1.5, "actors_busy": 14.0},
}


def test_a_round_says_how_many_learners_its_data_was_enough_for_and_what_they_cost() -> None:
    """3 s of gradients for 28 s of sampling by 16 actors, which is 1.75 s."""
    useful = useful_learners(ROUND, StalenessAware(actors_wait=False))
    assert useful == 2
    waited = f"Learners waited for data {format_percent(0.62)} of the time:"
    assert (
        learners_sentence(ROUND, useful, "Each costs $1.") == f"{waited} 2 of 4 would suffice. Each costs $1."
    )
    assert learners_sentence(ROUND, 4, "") == f"{waited} more than 4 would bring nothing."
    assert learners_sentence(ROUND, 7, "") == f"{waited} 7 in place of 4 would shorten its {{rounds}}."


def test_a_round_that_decides_its_learners_says_why_there_are_so_many() -> None:
    why = "3 s of gradients a round for 1.75 s of sampling, at most 8"
    decided = ROUND | {"gradients": ROUND["gradients"] | {"learners": 2, "learners_why": why}}
    assert learners_sentence(decided, 2, "").startswith(
        f"2 learners allowed: {why}. Learners waited for data"
    )


def test_where_actors_wait_a_round_has_work_for_as_many_learners_as_slices() -> None:
    assert useful_learners(ROUND, StalenessAware(trajectories_per_gradient=4)) == 4
    assert useful_learners(ROUND, StalenessAware(trajectories_per_gradient=3)) == 6


def test_charts_read_the_figures_of_gradients_and_nothing_of_other_rounds() -> None:
    assert LINES["gradient_staleness"].read({"gradients": FOUND}) == 1.04
    assert LINES["dropped_gradients"].read({"gradients": FOUND | {"dropped": {"numbers": 3}}}) == 3
    for name in ("gradient_staleness", "dropped_gradients", "ratio_mean", "staleness_bound"):
        assert LINES[name].read({}) is None


def test_a_call_that_failed() -> None:
    text = describe_event("call_failed", call_failed().model_dump(mode="json")).text
    assert text == "A call (rollout) of round 1 failed: It fell over. It is retried."
