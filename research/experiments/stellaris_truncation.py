"""What truncation alone does to a synchronous learner: from the second pass on a cap of 1 changes plain PPO, too.

One learner takes whole rounds and actors wait for it, so that nothing is stale. Without truncation this is the
synchronous loop bit for bit, which the oracle checks on the baseline's own runs.
"""

from typing import Any

from research.claims import Higher
from research.experiment import Experiment, ExperimentSetting
from research.stellaris import HOPPER, REASONS, endpoint, recipe, stellaris

_WHOLE_ROUNDS: dict[str, Any] = {"learners": 1, "trajectories_per_gradient": 16, "order": "launch"}
SEEDS = tuple(range(400, 410))

EXPERIMENT = Experiment(
    title="Truncation alone, without any staleness",
    question="Does capping importance ratios at 1 change what one synchronous PPO learner learns?",
    endpoint=endpoint(),
    oracle=(
        "The untruncated arm must have the final returns of synchronous PPO with 10 steps of 4,096 (`stellaris_82k`)"
        " bit for bit on the seeds that both have."
    ),
    can_claim=(
        "Ten seeds of one task after 82,000 steps: whether the final return is within a quarter of that without"
        " truncation. Nothing about data that is stale, and little about skill: at the papers' learning rate Hopper"
        " has hardly begun to be learned by then (about 175)."
    ),
    base=recipe(),
    paper="stellaris",
    reasons=REASONS,
    arms=(
        stellaris("untruncated", "PPO, ratios not capped", truncation="off", **_WHOLE_ROUNDS),
        stellaris("truncated", "PPO, ratios capped at 1", **_WHOLE_ROUNDS),
    ),
    settings=(ExperimentSetting(environment=HOPPER, seeds=SEEDS),),
    run_s=60.0,
    claims=(
        Higher(arm="truncated", against=("untruncated",), environments=(HOPPER,), alike=True, primary=True),
    ),
    beside=(
        "The slides show truncation only as a part of the whole, with many learners. Its cap of 1 also holds where"
        " nothing is stale: after the first of ten passes the policy has moved away from the one that sampled, so"
        " that ratios above 1 are cut although PPO's own clip would allow 1.3."
    ),
)
