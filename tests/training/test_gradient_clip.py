"""How gradients are clipped, what is reported of them, and that older specs and reports stay what they were."""

from dataclasses import replace

import numpy as np
import pytest

from tests.training.batches import SPACES, batch_of, state_away_from_zero
from tests.training.test_closed_form import learned_by
from training.rl.algorithms.autograd import Autograd
from training.rl.algorithms.closed_form import ClosedForm
from training.rl.algorithms.losses import clamped_square
from training.rl.algorithms.ppo import PPO
from training.rl.figures import UpdateReport
from training.rl.networks import MLP
from training.spec import TrainingSpec

LONGEST = 0.01


def first_step(descent, clip, *, shared=False):
    """The report of one step, and the norms of the gradients that Adam was given: of all, the policy's, the critic's.

    From empty moments, Adam's first moment after a step is a tenth of the gradient.
    """
    network = MLP(hidden=(8, 8), shared=shared)
    algorithm = PPO(
        epochs=1,
        minibatch_size=100,
        gradient_clip=clip,
        max_gradient_norm=LONGEST,
        value_coefficient=3.0,
    )
    state = state_away_from_zero(algorithm, network, SPACES["continuous"], 3)
    zeros = {name: np.zeros_like(array) for name, array in state.parameters.items()}
    state = replace(state, first_moments=zeros)
    learned = learned_by(descent, algorithm, state, batch_of(state, network, 3), network)
    moments = learned.state.first_moments

    def norm(prefixes):
        return 10 * np.sqrt(
            sum((array**2).sum() for name, array in moments.items() if name.startswith(prefixes))
        )

    return learned.report, [norm(one) for one in (("",), ("policy", "trunk"), ("value",))]


@pytest.mark.parametrize("shared", [False, True], ids=["apart", "shared"])
@pytest.mark.parametrize("descent", [ClosedForm, Autograd])
def test_a_gradient_is_clipped_by_the_norms_that_are_requested(descent, shared):
    report, (whole, policy, critic) = first_step(descent, "none", shared=shared)
    measured = report.gradient_norm, report.policy_gradient_norm, report.critic_gradient_norm
    assert measured == pytest.approx((whole, policy, critic), rel=1e-4)
    assert whole == pytest.approx(np.hypot(policy, critic), rel=1e-5)
    assert min(policy, critic) > LONGEST, "otherwise nothing is clipped"
    joint, norms = first_step(descent, "joint", shared=shared)
    assert norms == pytest.approx([LONGEST, LONGEST * policy / whole, LONGEST * critic / whole], rel=1e-3)
    separate, norms = first_step(descent, "separate", shared=shared)
    assert norms[1:] == pytest.approx([LONGEST, LONGEST], rel=1e-3)
    # What is reported are the norms before clipping.
    assert joint == separate == report


def test_the_clamped_square_by_hand():
    values, targets = np.array([1.0, 5.0, -2.0, 0.0]), np.array([0.0, 0.0, 0.0, 3.0])
    loss, slopes = clamped_square(np, values, targets, 10.0)
    # Squares 1, 25, 4 and 9: only the second is above 10, and it no longer depends on its value.
    assert loss == pytest.approx((1 + 10 + 4 + 9) / 4)
    assert slopes == pytest.approx(np.array([2.0, 0.0, -4.0, -6.0]) / 4)
    loss, slopes = clamped_square(np, values, targets, None)
    assert loss == pytest.approx((1 + 25 + 4 + 9) / 4)
    assert slopes[1] == pytest.approx(10.0 / 4)


def test_specs_and_reports_from_before_these_fields_stay_what_they_were():
    """Their JSON is part of hashes: of recipes, and of the runs that forecasts learn from."""
    stored = TrainingSpec().model_dump(mode="json")
    assert not {"gradient_clip", "value_error"} & set(stored["algorithm"])
    assert TrainingSpec.model_validate(stored) == TrainingSpec()
    assert TrainingSpec.model_validate(stored).model_dump(mode="json") == stored
    chosen = TrainingSpec(algorithm=PPO(gradient_clip="none", value_error="clamped_square"))
    document = chosen.model_dump(mode="json")
    assert (document["algorithm"]["gradient_clip"], document["algorithm"]["value_error"]) == (
        "none",
        "clamped_square",
    )
    assert TrainingSpec.model_validate(document) == chosen
    report = dict.fromkeys(UpdateReport.model_fields, 0.0) | {"device": "cpu"}
    for name in ("policy_gradient_norm", "critic_gradient_norm"):
        del report[name]
    assert UpdateReport.model_validate(report).critic_gradient_norm is None
