"""What a launch says of its job: where it computes and at what price, and what would not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.factories import make_spec
from training.rl.environments.catalogue import ENTRIES
from training.rl.message_sizes import sizes_of
from webapp.jobs.form.learner_places import learner_price_words, learner_words
from webapp.jobs.launch.aws_functions import gradient_too_large
from webapp.jobs.launch.preflight import platform_obstacle
from webapp.jobs.launch.requirements import PRICE_IT

NO_GPU = (
    "Learner's machine (platform.learner_sku): a c5.4xlarge has no GPU for learners to share. Name a machine with one,"
    " or let actors compute the gradients."
)


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


def _on_actors(learners: int) -> Any:
    loop = {"where": "actor", "learners": learners, "actors_wait": False}
    changes = {f"training__loop__{name}": value for name, value in loop.items()}
    return make_spec("hopper-stellaris", platform__profile="stellaris-cluster", **changes)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (lambda: make_spec("hopper-stellaris", platform__learner_sku="c5.4xlarge"), NO_GPU),
        (
            lambda: make_spec(
                "hopper-stellaris",
                platform__learner_sku="c5.4xlarge",
                platform__learner="function",
                platform__learners_per_gpu=4,
            ),
            "Learner's machine (platform.learner_sku): a c5.4xlarge has no GPU for functions to share. Name a machine"
            " with one, or one learner on a GPU.",
        ),
        (
            lambda: _on_actors(17),
            "Learners at most (training.loop.learners): the job asks for 17, and no more than 16 actors may run at"
            " once. Ask for 16 at most.",
        ),
        (
            lambda: make_spec("hopper-simulated", platform__region="eu-west-1"),
            "Region (platform.region): without a price no budget can be kept, and there is no price for 'c5.4xlarge' in"
            f" eu-west-1; there is one in us-east-1. {PRICE_IT}",
        ),
    ],
)
def test_why_a_job_cannot_run_on_its_platform(spec: Callable[[], Any], sentence: str) -> None:
    found = platform_obstacle(spec())
    assert found is not None
    assert found.sentence == sentence


def test_a_gradient_that_a_functions_answer_cannot_hold() -> None:
    training = make_spec("hopper-stellaris-lambda", training__network__hidden=[1024, 1024]).training
    (problem,) = gradient_too_large(training, sizes_of(training, ENTRIES[training.environment.id].spaces(4)))
    assert problem.sentence == (
        "Network (training.network): a gradient of 8.1 MiB does not fit into the answer of a function, which holds 4.5"
        " MiB. Take a smaller network, or compute gradients on the learner's machine (training.loop.where)."
    )
