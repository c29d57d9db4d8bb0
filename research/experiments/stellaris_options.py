"""Stellaris' named options that no other experiment runs: other weights of what is stale, and staleness by KL."""

from research.claims import Higher
from research.experiment import Experiment, ExperimentSetting
from research.stellaris import BESIDE, HOPPER, PLACE, REASONS, SEEDS, endpoint, recipe, stellaris

_OPTIONS = (
    stellaris("weigh_gradients", "Stellaris, gradients weighed as printed", aggregation="weigh_gradients"),
    stellaris("inverse", "Stellaris, weights 1/δ", weighting="inverse"),
    stellaris(
        "threshold", "Stellaris, weights above 2 versions", weighting="threshold", staleness_threshold=2
    ),
    stellaris("by_kl", "Stellaris, staleness counted in KL", distance="kl"),
)

EXPERIMENT = Experiment(
    title="Stellaris' other options",
    question="Do other weights of stale gradients, or staleness measured by KL, change what Stellaris learns?",
    endpoint=endpoint(),
    oracle=(
        "Adam makes a common factor of all gradients disappear: weighed as printed, a lone gradient's step must be as"
        " long as without weights (a test of aggregation), so that this arm may differ from one without weights only"
        " where gradients of unlike age are joined. Above 2 versions a weight must be rarer than at the default."
    ),
    can_claim=(
        "Five seeds of one task after 82,000 steps: whether a final return is within a quarter of the default's."
        " Holding keeps gradients about one version behind, at which the default's weight is 1, so that options of"
        " weights have little to act on; nothing about learners that are many versions behind."
    ),
    base=recipe(),
    paper="stellaris",
    reasons=REASONS,
    arms=(stellaris("stellaris", "Stellaris", home="stellaris_82k"), *_OPTIONS),
    settings=(ExperimentSetting(environment=HOPPER, seeds=SEEDS),),
    pricing_targets=(PLACE,),
    run_s=60.0,
    claims=tuple(
        Higher(
            arm=arm.name,
            against=("stellaris",),
            environments=(HOPPER,),
            alike=True,
            primary=arm.name == "weigh_gradients",
            repeats=("stellaris-ablation",),
        )
        for arm in _OPTIONS
    ),
    beside=BESIDE,
)
