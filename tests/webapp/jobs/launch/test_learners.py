"""Learners that compute gradients: what the check-list says of their place and price, and what functions cannot do."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import make_project, make_spec
from training.calls.planned import sizes_of
from training.environments.catalogue import ENTRIES
from webapp.jobs.form.learner_places import learner_price_words, learner_words
from webapp.jobs.launch import cloud_requirements
from webapp.jobs.launch.cloud_requirements import slice_too_large
from webapp.jobs.spec import JobSpec


def test_the_check_list_says_where_gradients_are_computed_and_what_a_learner_costs() -> None:
    on_lambda = make_spec("hopper-stellaris-lambda")
    assert learner_words(on_lambda) == (
        "Gradients: in functions at $0.104 an hour each, at most 4, paid only while they compute. Versions: on a"
        " m4.large at $0.125 an hour from start to end, busy or not."
    )
    assert learner_price_words(on_lambda) == (
        "Each costs $0.104 an hour while it computes, and nothing while it waits."
    )
    on_a_gpu = make_spec("hopper-stellaris")
    whole = "On a p3.2xlarge at $3.08 an hour from start to end, busy or not."
    assert learner_words(on_a_gpu) == whole
    assert learner_price_words(on_a_gpu) == "Their machine costs the same however many learn."
    in_turn = make_spec("hopper-stellaris", platform__learner_lanes=1)
    assert learner_words(in_turn) == f"{whole} Learners take turns: 1 of 4 at once."
    functions = make_spec("hopper-stellaris", platform__learner="function")
    assert learner_price_words(functions).startswith("Each costs $3.06 an hour while it computes")
    here = make_spec("hopper-stellaris", platform={"kind": "local"}, training__loop__where="actor")
    assert learner_words(here).startswith(
        "Gradients: on the actors' places, at most 4, at no price of their own."
    )
    assert learner_price_words(make_spec("hopper-simulated")) == ""


def on_platform(kind: str, **changes: Any) -> JobSpec:
    document = make_spec("hopper-stellaris-lambda", **changes).model_dump(mode="json")
    return JobSpec.model_validate({**document, "platform": {"kind": kind}})


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["aws_lambda", "azure_container", "hosts"])
def test_gradients_of_pictures_are_refused_where_actors_have_no_torch(kind: str) -> None:
    pictures = {
        "training__environment__id": "ALE/SpaceInvaders-v5",
        "training__network": {"kind": "cnn"},
    }
    project = make_project()
    (problem,) = cloud_requirements.obstacles(project, on_platform(kind, **pictures))
    assert problem.path == "training.loop.where"
    assert "gradients of pictures need torch" in problem.sentence
    allowed = cloud_requirements.obstacles(
        project, on_platform(kind, **pictures, training__loop__where="learner")
    )
    assert all(one.path != problem.path for one in allowed)
    assert cloud_requirements.obstacles(project, make_spec("hopper-stellaris", **pictures)) == []


def problems(has_bucket: bool = False, **changes: Any) -> list[Any]:
    training = make_spec("hopper-stellaris-lambda", **changes).training
    sizes = sizes_of(training, ENTRIES[training.environment.id].spaces(4))
    return list(slice_too_large(training, sizes, has_bucket=has_bucket))


def test_a_slice_that_exceeds_a_call_is_refused_with_the_number_that_would_fit() -> None:
    assert problems() == []
    long = {"training__rollout__steps_per_call": 16_384}
    (problem,) = problems(**long)
    assert problem.path == "training.loop.trajectories_per_gradient"
    assert problem.sentence.endswith("Take 2 at most.")
    assert problems(**long, training__loop__trajectories_per_gradient=2) == []
    wide: dict[str, Any] = {"training__network__hidden": [1024, 1024]}
    (problem,) = problems(**wide)
    assert problem.sentence.endswith("Take a smaller network or fewer learners.")
    alone = {"training__loop__learners": 1, "training__algorithm__kl_coefficient": 0.0}
    assert problems(has_bucket=True, **wide, **alone) == []
    assert problems(**wide, training__loop__where="learner") == []
